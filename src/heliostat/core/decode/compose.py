"""YAML text to a marked tree: no implicit types, no tags that run code, no bombs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

from heliostat.core.decode.log import Log
from heliostat.core.decode.tree import Items, Mark, Scalar, Table, Tree
from heliostat.core.errors import FileError, Problem

MAX_BYTES = 1_000_000
MAX_DEPTH = 24
MAX_VALUES = 20_000  # after aliases are expanded

_STRANGE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\ufeff")
_TAGS = {
    "!",
    *(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")),
}

# What the two parsers of PyYAML say, in words that help. The first that occurs in the message counts.
_WORDS = (
    ("mapping values are not allowed", "a second `:` stands on this line; put the value in quotes"),
    ("could not find expected ':'", "this line is neither `key: value` nor `- item`; is a `:` missing?"),
    ("found unexpected end of stream", "a quote is opened here and never closed"),
    ("while scanning a quoted scalar", "a quote is opened here and never closed"),
    ("unexpected document separator", "a quote is opened here and never closed"),
    ("expected ',' or ']'", "a `,` or `]` is missing here"),
    ("expected ',' or '}'", "a `,` or `}` is missing here"),
    ("sequence entries are not allowed", "a list item stands where none can be; does it need a new line?"),
    ("expected <block end>", "this does not fit what stands above; check the indentation"),
    ("did not find expected key", "this does not fit what stands above; check the indentation"),
    ("did not find expected '-' indicator", "this does not fit the list above; check the indentation"),
    ("while scanning a directive", "a line cannot start with `%`; put the text in quotes"),
    ("escape", "in double quotes a `\\` starts an escape; use single quotes or write `\\\\`"),
    ("while scanning an anchor", "`&` starts an anchor and needs a name; put the value in quotes"),
    ("while scanning an alias", "`*` starts an alias and needs a name; put the value in quotes"),
    ("undefined tag handle", "`!` starts a tag; put the value in quotes"),
    ("node content", "a value is missing here"),
    ("while scanning a block scalar", "after `|` or `>` nothing else may stand on the line"),
)


class _Stop(Exception):
    """Reading on makes no sense."""


def compose(text: str, source: str) -> Table:
    """Read one YAML document whose top is a mapping, or tell every problem with it."""
    text = text.removeprefix("\ufeff")
    _check_text(text, source)
    log = Log()
    composer = _Composer(text, source, log)
    try:
        tree = composer.document()
    except _Stop:
        tree = None
    if tree is None and not log.problems:
        log.add(Mark(source), "the file is empty; `cluster: NAME` is the least it needs")
    elif tree is not None and not isinstance(tree, Table):
        log.add(tree.mark, f"the file must be a mapping, `key: value` on each line, not {tree}")
    if log.problems or not isinstance(tree, Table):
        raise FileError(log.problems)
    return tree


def compose_value(text: str, mark: Mark) -> Tree:
    """Read a value given in a flag: `[a, b]` and `{a: 1}` are YAML, anything else stands as it is."""
    if not text.startswith(("[", "{")):
        return Scalar(text, mark)
    log = Log()
    composer = _Composer(text, mark.source, log, mark)
    try:
        tree = composer.document()
    except _Stop:
        tree = None
    if log.problems or tree is None:
        raise FileError(log.problems)
    return tree


def decode_bytes(data: bytes, source: str) -> str:
    """Turn the bytes of a file into text, or say which encoding they have instead of UTF-8."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileError([Problem("the file is written in UTF-16; save it as UTF-8", source)])
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        what = f"the byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise FileError([Problem(what, source, line, column)]) from None


def _check_text(text: str, source: str) -> None:
    if len(text) > MAX_BYTES:
        raise FileError(
            [Problem(f"the file has {len(text):,} characters; {MAX_BYTES:,} is the limit", source)]
        )
    found = _STRANGE.search(text)
    if found:
        line = text.count("\n", 0, found.start()) + 1
        column = found.start() - text.rfind("\n", 0, found.start())
        name = "a NUL byte" if found[0] == "\0" else f"the unprintable character U+{ord(found[0]):04X}"
        raise FileError([Problem(f"{name} stands in the file; is it a text file?", source, line, column)])


def _events(text: str) -> Iterator[Any]:
    import yaml

    # libyaml's parser is ten times quicker; its events are the same.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return iter(yaml.parse(text, Loader=loader))


class _Composer:
    """Builds the tree from the parser's events, so that nothing is resolved and limits hold at once."""

    def __init__(self, text: str, source: str, log: Log, at: Mark | None = None) -> None:
        self.lines = text.splitlines()
        self.source = source
        self.log = log
        self.at = at  # all marks are this one: the text stands in a flag
        self.events = _events(text)
        self.anchors: dict[
            str, tuple[Tree, int] | None
        ] = {}  # None: still open, so an alias to it is endless
        self.values = 0

    def document(self) -> Tree | None:
        self._next()  # the stream's start
        event = self._next()
        if self._is(event, "StreamEnd"):
            return None
        start = self._next()
        tree = self._tree(start, 0)
        self._next()  # the document's end
        more = self._next()
        if not self._is(more, "StreamEnd"):
            self.log.add(
                self._mark(more.start_mark), "a second document begins here; one file holds one cluster"
            )
        return None if isinstance(tree, Scalar) and tree.empty else tree

    def _tree(self, event: Any, depth: int) -> Tree:
        mark = self._mark(event.start_mark)
        if self._is(event, "Alias"):
            return self._alias(event.anchor, mark)
        self._count(1, mark)
        if depth > MAX_DEPTH:
            self._stop(mark, f"values are nested more than {MAX_DEPTH} deep here")
        if event.tag is not None and event.tag not in _TAGS:
            shown = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.log.add(mark, f"the tag `{shown}` has no meaning here; write the plain value")
        before = self.values
        if event.anchor:
            self.anchors[event.anchor] = None
        if self._is(event, "Scalar"):
            tree: Tree = Scalar(event.value, mark, plain=event.style in (None, ""))
        elif self._is(event, "SequenceStart"):
            tree = Items(tuple(self._items(depth)), mark)
        else:
            tree = Table(tuple(self._entries(depth)), mark)
        if event.anchor:
            self.anchors[event.anchor] = (tree, self.values - before + 1)
        return tree

    def _items(self, depth: int) -> Iterator[Tree]:
        while not self._is(event := self._next(), "SequenceEnd"):
            yield self._tree(event, depth + 1)

    def _entries(self, depth: int) -> list[tuple[Scalar, Tree]]:
        entries: dict[str, tuple[Scalar, Tree]] = {}
        merged: list[Table] = []
        while not self._is(event := self._next(), "MappingEnd"):
            key = self._tree(event, depth + 1)
            value = self._tree(self._next(), depth + 1)
            if not isinstance(key, Scalar) or key.empty:
                self.log.add(key.mark, f"a key must be a plain word, not {key}")
            elif key.text == "<<" and key.plain:
                merged += self._merged(value)
            elif key.text in entries:
                first = entries[key.text][0].mark
                self.log.add(
                    key.mark, f"`{key.text}` is written twice; it stands on line {first.line} already"
                )
            else:
                entries[key.text] = (key, value)
        for table in merged:
            for key, value in table:
                entries.setdefault(key.text, (key, value))
        return list(entries.values())

    def _merged(self, tree: Tree) -> list[Table]:
        parts = tree.items if isinstance(tree, Items) else (tree,)
        tables = [part for part in parts if isinstance(part, Table)]
        if len(tables) < len(parts):
            self.log.add(tree.mark, f"`<<` wants a mapping to take keys from, not {tree}")
        return tables

    def _alias(self, name: str, mark: Mark) -> Tree:
        if name not in self.anchors:
            self.log.add(
                mark, f"`*{name}` repeats an anchor, but there is no `&{name}`; put the value in quotes"
            )
            return Scalar("", mark, plain=False)
        known = self.anchors[name]
        if known is None:
            self._stop(mark, f"`*{name}` stands inside `&{name}`, so it would never end")
        tree, size = known
        self._count(size, mark)
        return tree

    def _count(self, more: int, mark: Mark) -> None:
        self.values += more
        if self.values > MAX_VALUES:
            self._stop(mark, f"with its aliases the file holds more than {MAX_VALUES:,} values")

    def _stop(self, mark: Mark, text: str) -> NoReturn:
        self.log.add(mark, text)
        raise _Stop

    def _next(self) -> Any:
        from yaml import MarkedYAMLError, YAMLError

        try:
            return next(self.events)
        except MarkedYAMLError as error:
            self._stop(*self._explain(error))
        except YAMLError as error:  # pragma: no cover - strange characters were refused before
            self._stop(Mark(self.source), f"this is not YAML: {error}")

    def _explain(self, error: Any) -> tuple[Mark, str]:
        said = f"{error.context or ''} {error.problem or ''}"
        text = next(
            (words for phrase, words in _WORDS if phrase in said), f"this is not YAML: {error.problem}"
        )
        # An unclosed quote or a missing colon is noticed later: point at where it begins.
        opens = error.context_mark and ("never closed" in text or "neither" in text)
        where = error.context_mark if opens else error.problem_mark or error.context_mark
        line = self.lines[where.line] if where.line < len(self.lines) else ""
        sign = line[where.column : where.column + 1]
        if "\t" in line[: len(line) - len(line.lstrip())] or (sign == "\t" and not opens):
            return Mark(
                self.source, where.line + 1, line.index("\t") + 1
            ), "a tab stands here; indent with spaces"
        if "cannot start any token" in said:
            text = (
                f"a value cannot start with {'a backtick' if sign == '`' else f'`{sign}`'}; put it in quotes"
            )
        elif "second `:`" in text and ":" not in line[: where.column]:
            text = "this is indented under a key that has a value already"
        return self._mark(where), text

    def _mark(self, mark: Any) -> Mark:
        return self.at or Mark(self.source, mark.line + 1, mark.column + 1)

    @staticmethod
    def _is(event: Any, name: str) -> bool:
        return type(event).__name__ == f"{name}Event"
