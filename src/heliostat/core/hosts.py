"""Host patterns: `node[01-16].lab` stands for sixteen names."""

from __future__ import annotations

import re
from itertools import product

_PART = re.compile(r"\[([^\[\]]*)\]")


def expand(pattern: str) -> tuple[str, ...]:
    """Name every host of a pattern; raises ValueError where it is malformed.

    >>> expand("node[08-10].lab"), expand("gpu[1,4]")
    (('node08.lab', 'node09.lab', 'node10.lab'), ('gpu1', 'gpu4'))
    """
    pieces = _PART.split(pattern)
    if any("[" in piece or "]" in piece for piece in pieces[::2]):
        raise ValueError(f"a bracket of {pattern} is not closed")
    choices = [(piece,) if at % 2 == 0 else _numbers(piece, pattern) for at, piece in enumerate(pieces)]
    return tuple("".join(parts) for parts in product(*choices))


def is_file(entry: str) -> bool:
    """Whether an entry of `ssh.hosts` is the path of an inventory: no host's name has a slash in it.

    >>> is_file("./hosts.txt"), is_file("me@node[01-16].lab")
    (True, False)
    """
    return "/" in entry


def _numbers(inside: str, pattern: str) -> tuple[str, ...]:
    found: list[str] = []
    for part in inside.split(","):
        ends = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", part.strip())
        if not ends:
            raise ValueError(f"[{inside}] of {pattern} wants numbers such as [01-16] or [1,4]")
        first, last = ends[1], ends[2] or ends[1]
        if not int(first) <= int(last) <= int(first) + 100_000:
            raise ValueError(f"[{inside}] of {pattern} goes from {first} to {last}")
        found += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return tuple(found)
