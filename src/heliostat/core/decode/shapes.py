"""Lists, mappings and records made of kinds; every mistake in one of their parts is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from heliostat.core.decode.kinds import Kind, Plain, Schema
from heliostat.core.decode.log import Bad, Log, Path, dotted, nearest
from heliostat.core.decode.tree import Items, Scalar, Table, Tree, is_empty

T = TypeVar("T")


class ListOf(Kind[tuple[str, ...]]):
    """A list of texts; one text alone is a list of one."""

    def __init__(self, item: Kind[str], word: str = "a list") -> None:
        self.item = item
        self.word = word

    def read(self, tree: Tree, path: Path, log: Log) -> tuple[str, ...]:
        if is_empty(tree):
            return ()
        if isinstance(tree, Table):
            raise Bad(tree.mark, f"`{dotted(path)}` wants {self.word}, not {tree}")
        values: list[str] = []
        for item in tree.items if isinstance(tree, Items) else (tree,):
            try:
                values.append(self.item.read(item, path, log))
            except Bad as bad:
                log.catch(bad, path)
        return tuple(values)

    def write(self, value: tuple[str, ...]) -> Plain:
        return [self.item.write(item) for item in value]

    def show(self, value: tuple[str, ...], tree: Tree) -> str:
        items = tree.items if isinstance(tree, Items) else (tree,)
        written = [item.written for item in items if isinstance(item, Scalar) and item.written]
        return ", ".join(written or value)

    def schema(self) -> Schema:
        item = self.item.schema()
        return {"anyOf": [{"type": "array", "items": item}, item, {"type": "null"}]}


class MapOf(Kind[dict[str, T]], Generic[T]):
    """A mapping whose keys a person chooses."""

    def __init__(self, key: Kind[str], value: Kind[T], word: str = "a mapping") -> None:
        self.key = key
        self.value = value
        self.word = word

    def read(self, tree: Tree, path: Path, log: Log) -> dict[str, T]:
        if is_empty(tree):
            return {}
        if not isinstance(tree, Table):
            raise Bad(tree.mark, f"`{dotted(path)}` wants {self.word}, not {tree}")
        values: dict[str, T] = {}
        for key, part in tree:
            try:
                name = self.key.read(key, path, log)
                values[name] = self.value.read(part, (*path, key.text), log)
            except Bad as bad:
                log.catch(bad, (*path, key.text))
        return values

    def write(self, value: Mapping[str, T]) -> Plain:
        return {key: self.value.write(part) for key, part in value.items()}

    def show(self, value: Mapping[str, T], tree: Tree) -> str:
        del tree
        return ", ".join(value)  # values may be private: `env` often holds what should be a secret

    def schema(self) -> Schema:
        names = self.key.schema()
        # Property names are always text, whatever YAML makes of them elsewhere.
        names = {key: part for key, part in names.items() if key != "type"}
        return {
            "type": ["object", "null"],
            "propertyNames": names,
            "additionalProperties": self.value.schema(),
        }


@dataclass(frozen=True)
class Field:
    """One key of the file: what reads it, and what a person should know about it."""

    key: str
    kind: Kind[Any]
    doc: str
    default: str = ""  # in words; empty: nothing
    example: str = ""
    attr: str = ""  # its name in the record, where it differs
    also: str = ""  # another spelling that means the same
    needed: bool = False

    @property
    def name(self) -> str:
        return self.attr or self.key


class Record(Kind[T]):
    """A mapping with known keys that becomes one of the records of core.spec."""

    def __init__(
        self,
        make: Callable[..., T],
        fields: Sequence[Field],
        *,
        short: Kind[T] | None = None,
        known: Mapping[str, str] | None = None,
        word: str = "a mapping",
    ) -> None:
        self.make = make
        self.fields = tuple(fields)
        self.short = short  # how a scalar is read instead
        self.known = dict(known or {})  # what other tools call these keys
        self.word = word
        self.by_key = {key: field for field in self.fields for key in (field.key, field.also) if key}

    def read(self, tree: Tree, path: Path, log: Log) -> T:
        if self.short and isinstance(tree, Scalar):
            return self.short.read(tree, path, log)
        if is_empty(tree):
            tree = Table((), tree.mark)
        if not isinstance(tree, Table):
            raise Bad(tree.mark, f"`{dotted(path)}` wants {self.word}, not {tree}")
        return self.build(self.values(tree, path, log), tree, path, log)

    def values(self, tree: Table, path: Path, log: Log) -> dict[str, Any]:
        """Read every known key; name every unknown one."""
        values: dict[str, Any] = {}
        seen: dict[str, Scalar] = {}
        meant: set[str] = set()  # by keys that are misspelt
        for key, part in tree:
            field = self.by_key.get(key.text)
            if field is None:
                bad = self.unknown(key, path)
                meant.add(bad.nearest)
                log.catch(bad, (*path, key.text))
                continue
            if field.key in seen:
                text = f"`{key.text}` and `{seen[field.key].text}` mean the same; keep one of them"
                log.add(key.mark, text)
            seen[field.key] = key
            try:
                values[field.name] = field.kind.take(key, part, (*path, field.key), log)
            except Bad as bad:
                log.catch(bad, (*path, field.key))
        for field in self.fields:
            if field.needed and field.key in meant - set(seen):
                log.wrong.add((*path, field.key))  # told as misspelt, so not as missing too
            elif field.needed and field.key not in seen:
                log.catch(Bad(tree.mark, f"`{dotted((*path, field.key))}` is missing"), (*path, field.key))
        return values

    def build(self, values: dict[str, Any], tree: Table, path: Path, log: Log) -> T:
        """Make the record of what could be read."""
        del tree, path, log
        for field in self.fields:
            if field.needed:
                values.setdefault(field.name, "")  # told already, so the record never leaves the decoder
        return self.make(**values)

    def unknown(self, key: Scalar, path: Path) -> Bad:
        where = f"a key of `{dotted(path)}`" if path else "a key of this file"
        hint = nearest(key.text, self.by_key, self.known)
        return Bad(key.mark, f"`{key.text}` is not {where}", hint)

    def write(self, value: T) -> Plain:
        return dict(self.parts(value))

    def parts(self, value: T) -> Iterator[tuple[str, Plain]]:
        """The keys that differ from a record where nothing was given."""
        needed = {field.name: getattr(value, field.name) for field in self.fields if field.needed}
        blank = self.make(**needed)
        for field in self.fields:
            part = getattr(value, field.name)
            if field.needed or part != getattr(blank, field.name):
                yield field.key, field.kind.write(part)

    def show(self, value: T, tree: Tree) -> str:
        if self.short and isinstance(tree, Scalar):
            return self.short.show(value, tree)
        return ""

    def schema(self) -> Schema:
        properties: Schema = {}
        for field in self.fields:
            described = {**field.kind.schema(), "description": describe(field)}
            for key in (field.key, field.also):
                if key:
                    properties[key] = described
        whole: Schema = {"type": ["object", "null"], "properties": properties, "additionalProperties": False}
        if needed := [field.key for field in self.fields if field.needed]:
            whole = {**whole, "type": "object", "required": needed}
        return {"anyOf": [self.short.schema(), whole]} if self.short else whole


def describe(field: Field) -> str:
    """What an editor shows beside the key."""
    default = f" Default: {field.default}." if field.default else ""
    example = f" Example: {field.example}" if field.example else ""
    return f"{field.doc}{default}{example}"
