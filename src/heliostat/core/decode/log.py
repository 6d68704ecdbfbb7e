"""What reading a file gathers: every problem, and where every value came from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from heliostat.core.decode.tree import Mark, Tree
from heliostat.core.errors import Problem

Path = tuple[str, ...]


class Bad(Exception):
    """One value that cannot be read; caught where its neighbours are read on."""

    def __init__(self, mark: Mark, text: str, nearest: str = "") -> None:
        super().__init__(text)
        self.mark = mark
        self.text = text
        self.nearest = nearest


@dataclass(frozen=True)
class Given:
    """A value that somebody wrote."""

    key: Mark  # where its key stands
    tree: Tree
    value: str  # as `helio plan` shows it


@dataclass
class Log:
    """Grows while a tree is read."""

    problems: list[Problem] = field(default_factory=list)
    given: dict[Path, Given] = field(default_factory=dict)
    wrong: set[Path] = field(default_factory=set)  # what could not be read: do not judge it further

    def add(self, mark: Mark, text: str, nearest: str = "") -> None:
        problem = Problem(text, mark.source, mark.line, mark.column, nearest)
        if problem not in self.problems:  # an alias is read twice, its mistake is told once
            self.problems.append(problem)

    def catch(self, bad: Bad, path: Path) -> None:
        self.wrong.add(path)
        self.add(bad.mark, bad.text, bad.nearest)

    def sound(self, *paths: str) -> bool:
        """Whether everything at and below these dotted paths could be read."""
        parts = [tuple(path.split(".")) for path in paths]
        return not any(
            wrong[: len(p)] == p or p[: len(wrong)] == wrong for wrong in self.wrong for p in parts
        )

    def mark(self, path: Path) -> Mark | None:
        """Where the nearest written key at or above this path stands."""
        while path:
            if path in self.given:
                return self.given[path].key
            path = path[:-1]
        return None


def dotted(path: Path) -> str:
    """A path as a person writes it after --set.

    >>> dotted(("registry", "ghcr.io", "user"))
    'registry."ghcr.io".user'
    """
    return ".".join(f'"{part}"' if "." in part else part for part in path)


def nearest(word: str, valid: Iterable[str], known: dict[str, str] | None = None) -> str:
    """Find the valid name that was probably meant: by habit of other tools first, then by spelling."""
    lower = word.lower().replace("-", "_")
    names = list(valid)
    if known and known.get(lower) in names:
        return known[lower]
    if lower in names:
        return lower
    from difflib import get_close_matches

    close = get_close_matches(lower, names, n=1, cutoff=0.6)
    return close[0] if close else ""
