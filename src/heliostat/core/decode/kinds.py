"""What a scalar may be: each kind reads it as written, writes it back, and knows its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from heliostat.core import units
from heliostat.core.decode.log import Bad, Given, Log, Path, dotted, nearest
from heliostat.core.decode.tree import Scalar, Tree
from heliostat.core.units import Malformed

T = TypeVar("T")
Plain = Any  # what YAML can hold: text, numbers, flags, lists and mappings
Schema = dict[str, Any]

VARIABLE = r"\$\{"  # a value still to be filled in: the schema lets it pass


class Kind(Generic[T]):
    """How one sort of value is read, written and described."""

    word = "a value"  # "wants …"

    def read(self, tree: Tree, path: Path, log: Log) -> T:
        """Return the value, or raise Bad; problems of parts go to the log."""
        raise NotImplementedError

    def write(self, value: T) -> Plain:
        """The canonical form, such that reading it gives the value back."""
        raise NotImplementedError

    def schema(self) -> Schema:
        raise NotImplementedError

    def show(self, value: T, tree: Tree) -> str:
        """One line for `helio plan`."""
        del tree
        return str(self.write(value))

    def take(self, key: Scalar, tree: Tree, path: Path, log: Log) -> T:
        """Read, and note where it was given."""
        log.given[path] = Given(key.mark, tree, "")
        value = self.read(tree, path, log)
        log.given[path] = Given(key.mark, tree, self.show(value, tree))
        return value


class Word(Kind[T]):
    """A kind that is always one scalar."""

    may_be_empty = False

    def parse(self, text: str) -> T:
        raise NotImplementedError

    def read(self, tree: Tree, path: Path, log: Log) -> T:
        del log
        if not isinstance(tree, Scalar) or (tree.empty and not self.may_be_empty):
            raise Bad(tree.mark, f"`{dotted(path)}` wants {self.word}, not {tree}")
        try:
            return self.parse(tree.text)
        except Malformed as wrong:
            text = wrong.text or f"wants {self.word}, not {tree}"
            # A hint repeats the value, which must stay unseen when it came from the environment.
            raise Bad(tree.mark, f"`{dotted(path)}` {text}", "" if tree.written else wrong.hint) from None


class Text(Word[str]):
    """Any text, or text of one form."""

    def __init__(
        self,
        word: str = "text",
        form: str = "",
        *,
        empty: bool = False,
        check: Callable[[str], str] | None = None,
        hint: Callable[[str], str] | None = None,
    ) -> None:
        self.word = word
        self.form = form
        self.check = check  # returns the text to keep, or raises Malformed
        self.hint = hint  # what was probably meant by a text of another form
        self.may_be_empty = empty

    def parse(self, text: str) -> str:
        if not self.may_be_empty and not text.strip():
            raise Malformed(f"wants {self.word}, not an empty text")
        kept = self.check(text) if self.check else text
        if self.form and not re.fullmatch(self.form, text):
            raise Malformed(hint=self.hint(text) if self.hint else "")
        return kept

    def write(self, value: str) -> Plain:
        return value

    def show(self, value: str, tree: Tree) -> str:
        return tree.written if isinstance(tree, Scalar) and tree.written else value

    def schema(self) -> Schema:
        if self.form:
            bare = re.fullmatch(self.form, "1") or re.fullmatch(self.form, "3.11")
            types = ["string", "number"] if bare else "string"
            return {"type": types, "pattern": f"^(?:{self.form})$|{VARIABLE}"}
        return {"type": ["string", "number", "boolean"], **({} if self.may_be_empty else {"minLength": 1})}


class Choice(Word[str]):
    """One of a few words."""

    def __init__(self, *valid: str, known: Mapping[str, str] | None = None) -> None:
        self.valid = valid
        self.known = dict(known or {})  # what other tools call it
        self.word = " or ".join([", ".join(valid[:-1]), valid[-1]]) if len(valid) > 1 else valid[0]

    def parse(self, text: str) -> str:
        if text in self.valid:
            return text
        raise Malformed(hint=nearest(text, self.valid, self.known))

    def write(self, value: str) -> Plain:
        return value

    def schema(self) -> Schema:
        return {"anyOf": [{"enum": list(self.valid)}, {"$ref": "#/$defs/variable"}]}


class Flag(Word[bool]):
    """Yes or no, in every spelling that YAML's versions ever gave it."""

    word = "true or false"
    _WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}  # noqa: RUF012 - constant

    def parse(self, text: str) -> bool:
        if text in {text.lower(), text.upper(), text.capitalize()} and text.lower() in self._WORDS:
            return self._WORDS[text.lower()]
        raise Malformed(hint={"1": "true", "0": "false"}.get(text, ""))

    def write(self, value: bool) -> Plain:
        return value

    def show(self, value: bool, tree: Tree) -> str:
        del tree
        return "true" if value else "false"

    def schema(self) -> Schema:
        words = [word for key in self._WORDS for word in (key, key.capitalize(), key.upper())]
        return {"anyOf": [{"type": "boolean"}, {"enum": words}, {"$ref": "#/$defs/variable"}]}


class Number(Word[float]):
    """A decimal number that is not negative."""

    def __init__(self, word: str = "a number such as 8") -> None:
        self.word = word

    def parse(self, text: str) -> float:
        return units.number(text)

    def write(self, value: float) -> Plain:
        return int(value) if value == int(value) else value

    def schema(self) -> Schema:
        return {
            "anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": f"^{units.NUMBER}$|{VARIABLE}"},
            ]
        }


class Measure(Word[T]):
    """A number with a unit: a size, a time or money."""

    def __init__(
        self,
        word: str,
        read: Callable[[str], T],
        say: Callable[[Any], str],
        name: str,
        *,
        least: float = 0,
        never: bool = False,
    ) -> None:
        self.word = word
        self.name = name  # of its definition in the schema
        self.least = least
        self.never = never  # also takes `never`, which is None
        self._read = read
        self._say = say

    def parse(self, text: str) -> T:
        if self.never and text == "never":
            return None  # type: ignore[return-value]  # such a kind is declared with T | None
        value = self._read(text)
        if value < self.least:  # type: ignore[operator]  # T is int or float
            raise Malformed(f"must be at least {self._say(self.least)}")
        return value

    def write(self, value: T) -> Plain:
        return "never" if value is None else self._say(value)

    def schema(self) -> Schema:
        named: Schema = {"$ref": f"#/$defs/{self.name}"}
        return {"anyOf": [named, {"const": "never"}]} if self.never else named


def size(least: int = 0) -> Measure[int]:
    return Measure("a size such as 16 GB or 512 MiB", units.size, units.say_size, "size", least=least)


def time() -> Measure[float]:
    return Measure("a time such as 30 min or 8 h", units.time, units.say_time, "time", least=1)


def limit() -> Measure[float | None]:
    word = "a time such as 30 min or 8 h, or never"
    return Measure(word, units.time, units.say_time, "time", least=1, never=True)


def money() -> Measure[float]:
    return Measure("an amount such as 20 USD", units.money, units.say_money, "money")


DEFINITIONS: dict[str, Schema] = {
    "variable": {
        "type": "string",
        "pattern": VARIABLE,
        "description": "Filled in from the environment: ${NAME} or ${NAME:-default}.",
    },
    "size": {
        "type": "string",
        "pattern": f"^{units.SIZE}$|{VARIABLE}",
        "description": "A size: 16 GB, 512 MiB.",
    },
    "time": {
        "type": "string",
        "pattern": f"^{units.TIME}$|{VARIABLE}",
        "description": "A time: 30 min, 8 h, 7 d.",
    },
    "money": {
        "type": "string",
        "pattern": f"^{units.MONEY}$|{VARIABLE}",
        "description": "An amount: 20 USD.",
    },
}
