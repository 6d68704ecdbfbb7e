"""A file as a tree that remembers where each part stands and how it was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Mark:
    """Where something stands: in a file, or in a flag (then without a line)."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


@dataclass(frozen=True)
class Scalar:
    """One value exactly as written: `010`, `on` and `2.60` are just these letters."""

    text: str
    mark: Mark
    plain: bool = True  # not in quotes
    written: str = ""  # before variables were filled in; empty when there were none

    @property
    def empty(self) -> bool:
        """Nothing stands there at all (`key:`), unlike an empty text in quotes."""
        return self.plain and not self.text

    def __str__(self) -> str:
        # A value from the environment may be a secret: show what the file says instead.
        text = self.written or self.text
        if self.empty:
            return "nothing"
        short = text if len(text) <= 40 else text[:37] + "…"
        return "`" + "".join(c if c.isprintable() else repr(c)[1:-1] for c in short) + "`"


@dataclass(frozen=True)
class Items:
    """A list."""

    items: tuple[Tree, ...]
    mark: Mark

    def __str__(self) -> str:
        return "a list"


@dataclass(frozen=True)
class Table:
    """A mapping, in the order of the file, keys once each."""

    entries: tuple[tuple[Scalar, Tree], ...]
    mark: Mark

    def get(self, key: str) -> Tree | None:
        return next((value for name, value in self.entries if name.text == key), None)

    def __iter__(self) -> Iterator[tuple[Scalar, Tree]]:
        return iter(self.entries)

    def __str__(self) -> str:
        return "a mapping"


Tree = Scalar | Items | Table


def is_filled(tree: Tree) -> bool:
    """Whether a variable was filled in anywhere in it."""
    if isinstance(tree, Scalar):
        return bool(tree.written)
    return any(map(is_filled, tree.items if isinstance(tree, Items) else (value for _, value in tree)))


def is_empty(tree: Tree) -> bool:
    return isinstance(tree, Scalar) and tree.empty
