"""A heliostat file in the making, out of somebody else's: every value with where it came from.

What the other file says and ours cannot is kept as a remark, so that nothing is ever dropped in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from heliostat.core.decode.fill import escape
from heliostat.core.decode.log import Log, Path
from heliostat.core.decode.tree import Items, Mark, Scalar, Table, Tree
from heliostat.core.remark import Level, Remark

Value = Any  # a text, a number, a flag, a list of texts, or a mapping of texts


@dataclass(frozen=True, slots=True)
class Leaf:
    value: Value
    mark: Mark
    origin: str  # the key of the other file; empty where it stands for one of its defaults


Branch = dict[str, Any]  # our keys → Leaf or Branch


@dataclass
class Draft:
    """Grows while the other file is read."""

    log: Log
    tree: Branch = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # what every command says aloud
    fills: bool = False  # whether `${NAME}` in its values is a variable of the other file, too

    def put(self, path: Path, value: Value, mark: Mark, origin: str = "") -> None:
        """Say a value of ours; the last word counts."""
        branch = self.tree
        for part in path[:-1]:
            branch = branch.setdefault(part, {})
        branch[path[-1]] = Leaf(value, mark, origin)

    def add(self, path: Path, more: Mapping[str, str], mark: Mark, origin: str = "") -> None:
        """Add entries to a mapping of ours, such as `env`."""
        had = self.leaf(path)
        self.put(path, {**(had.value if had else {}), **more}, had.mark if had else mark, origin)

    def leaf(self, path: Path) -> Leaf | None:
        branch: Any = self.tree
        for part in path:
            branch = branch.get(part) if isinstance(branch, dict) else None
        return branch if isinstance(branch, Leaf) else None

    def ours(self, mark: Mark, key: str, text: str) -> None:
        self._remark(Level.OURS, mark, key, text)

    def near(self, mark: Mark, key: str, text: str) -> None:
        self._remark(Level.NEAR, mark, key, text)

    def lost(self, mark: Mark, key: str, text: str) -> None:
        self._remark(Level.LOST, mark, key, text)

    def _remark(self, level: Level, mark: Mark, key: str, text: str) -> None:
        remark = Remark(level, key, text, str(mark), mark.line)
        if remark not in self.remarks:
            self.remarks.append(remark)

    def of(self, *levels: Level) -> Iterator[Remark]:
        return (remark for level in levels for remark in self.remarks if remark.level == level)

    def table(self, mark: Mark) -> Table:
        """The tree that the decoder reads, with the marks of the other file."""
        return _table(self.tree, mark, self.shown)

    def shown(self, value: Value) -> Value:
        """A value as a file of ours has it."""
        if isinstance(value, dict):
            return {key: self.shown(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.shown(item) for item in value]
        return escape(value) if isinstance(value, str) and not self.fills else value


def _table(branch: Branch, mark: Mark, shown: Callable[[Value], Value]) -> Table:
    entries: list[tuple[Scalar, Tree]] = []
    for key, part in branch.items():
        here = part.mark if isinstance(part, Leaf) else _first(part, mark)
        tree = as_tree(shown(part.value), here) if isinstance(part, Leaf) else _table(part, here, shown)
        entries.append((Scalar(key, here), tree))
    return Table(tuple(entries), mark)


def _first(branch: Branch, otherwise: Mark) -> Mark:
    """Where the first value of a branch stands."""
    for part in branch.values():
        return part.mark if isinstance(part, Leaf) else _first(part, otherwise)
    return otherwise


def as_tree(value: Value, mark: Mark) -> Tree:
    """A plain value as the decoder reads it.

    >>> as_tree(["a", 2], Mark("x")).items[1].text
    '2'
    """
    if isinstance(value, dict):
        return Table(tuple((Scalar(key, mark), as_tree(part, mark)) for key, part in value.items()), mark)
    if isinstance(value, list):
        return Items(tuple(as_tree(item, mark) for item in value), mark)
    if isinstance(value, bool):
        return Scalar("true" if value else "false", mark)
    return Scalar(str(value), mark, plain=not isinstance(value, str))
