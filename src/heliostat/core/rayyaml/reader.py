"""Reading Ray's tree by the table of keys: each mistake is told with its place, and reading goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from heliostat.core.decode.kinds import Flag, Kind, Number, Text
from heliostat.core.decode.log import Bad, Log, Path, dotted, nearest
from heliostat.core.decode.tree import Items, Mark, Scalar, Table, Tree, is_empty
from heliostat.core.decode.workers import Whole
from heliostat.core.rayyaml.keys import Key

_SCALARS: dict[str, Kind[Any]] = {
    "text": Text(empty=True),
    "flag": Flag(),
    "number": Number(),
    "whole": Whole(),
}
_NULL = ("null", "~", "Null", "NULL")


@dataclass(frozen=True)
class At:
    """A value of Ray's file: what it is, where it stands, and how it is called."""

    value: Any
    mark: Mark  # of its key
    path: Path
    there: Mark  # of the value itself

    @property
    def key(self) -> str:
        """How it is called in messages: provider.type."""
        return dotted(self.path)


class Reader:
    """One table of Ray's file, read key by key; what nobody asked for is told at the end."""

    def __init__(self, table: Table, path: Path, log: Log) -> None:
        self.path = path
        self.log = log
        self.mark = table.mark
        self.left = {key.text: (key, tree) for key, tree in table if not _nothing(tree)}

    def take(self, key: str, wants: str) -> At | None:
        """The value of a key, if it is there and is what is wanted."""
        if key not in self.left:
            return None
        name, tree = self.left.pop(key)
        here = (*self.path, key)
        try:
            value = read(tree, wants, here, self.log)
        except Bad as bad:
            self.log.catch(bad, here)
            return None
        return None if value == "" else At(value, name.mark, here, tree.mark)

    def reader(self, key: str) -> Reader | None:
        """The table under a key."""
        found = self.take(key, "table")
        if found is None:
            return None
        inside = Reader(found.value, (*self.path, key), self.log)
        inside.mark = found.mark
        return inside

    def rest(self) -> Iterator[At]:
        """What was not asked for."""
        for key, (name, tree) in list(self.left.items()):
            yield At(tree, name.mark, (*self.path, key), tree.mark)
        self.left.clear()

    def check(self, keys: Mapping[str, Key]) -> None:
        """Name every key that Ray does not know, and what it wants of those that it knows."""
        for text, (name, tree) in list(self.left.items()):
            if text not in keys:
                del self.left[text]
                where = f"of Ray's `{dotted(self.path)}`" if self.path else "of Ray's cluster YAML"
                self.log.add(name.mark, f"`{text}` is not a key {where}", nearest(text, keys))
                continue
            inside = keys[text].inside
            if inside and isinstance(tree, Table):
                table = Reader(tree, (*self.path, text), self.log)
                table.check(inside)
                self.left[text] = (name, Table(tuple(table.left.values()), tree.mark))


def read(tree: Tree, wants: str, path: Path, log: Log) -> Any:
    """One value as it is wanted."""
    if wants in _SCALARS:
        return _SCALARS[wants].read(tree, path, log)
    if wants == "table":
        if not isinstance(tree, Table):
            raise Bad(tree.mark, f"`{dotted(path)}` wants a mapping, not {tree}")
        return tree
    if wants in ("list", "commands"):
        return list(_texts(tree, path, log, "a list of commands" if wants == "commands" else "a list"))
    return tree


def _texts(tree: Tree, path: Path, log: Log, word: str) -> Iterator[Scalar]:
    if not isinstance(tree, Items):
        raise Bad(tree.mark, f"`{dotted(path)}` wants {word}, not {tree}")
    for item in tree.items:
        if isinstance(item, Scalar) and not item.empty:
            yield item
        elif isinstance(item, Items):  # an anchored list inside a list
            yield from _texts(item, path, log, word)
        else:
            log.catch(Bad(item.mark, f"`{dotted(path)}` wants texts in its list, not {item}"), path)


def _nothing(tree: Tree) -> bool:
    if isinstance(tree, Table):
        return not tree.entries
    return is_empty(tree) or (isinstance(tree, Scalar) and tree.plain and tree.text in _NULL)


def plain(tree: Tree) -> Any:
    """A tree without its marks, for remarks and comparisons."""
    if isinstance(tree, Scalar):
        return tree.text
    if isinstance(tree, Items):
        return [plain(item) for item in tree.items]
    return {key.text: plain(part) for key, part in tree}
