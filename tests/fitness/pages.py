"""What the pages claim: their ```console and ```python blocks are run, ```sh and ```text are not.

In a console block, lines after `$ ` are typed, in one shell for the whole page; what follows is expected.
Numbers may differ, words may not; `...` stands for anything, on a line of its own for any lines. A command
that fails must be followed by `$ echo $?`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(console|python)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
RUN_ID = re.compile(r"\d{6}-\d{6}-[0-9a-f]{4}")
NUMBER = re.compile(r"\d+([.,:]\d+)*")


@dataclass(frozen=True, slots=True)
class Typed:
    """One command of a page, and what the page says that it prints."""

    command: str
    expected: str
    line: int


@dataclass(frozen=True, slots=True)
class Code:
    """One piece of Python of a page."""

    text: str
    line: int


def blocks(page: Path) -> Iterator[Typed | Code]:
    """All that is to be run, in the order of the page."""
    text = page.read_text()
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 2
        if found[1] == "python":
            yield Code(found[2], line)
        else:
            yield from commands(found[2], line)


def commands(block: str, line: int = 1) -> Iterator[Typed]:
    r"""Each `$ ` command with what follows it.

    >>> list(commands("$ a\n1\n2\n$ b\n"))
    [Typed(command='a', expected='1\n2', line=1), Typed(command='b', expected='', line=4)]
    """
    pieces = re.split(r"^\$ ", block, flags=re.MULTILINE)
    assert not pieces[0].strip(), f"line {line}: a console block begins with `$ `"
    for piece in pieces[1:]:
        command, _, expected = piece.partition("\n")
        yield Typed(command, expected.rstrip(), line)
        line += piece.count("\n")


def shape(text: str) -> str:
    """What is compared: numbers, identities of runs and widths of columns may differ.

    >>> shape("job hello-251119-061532-1a2b   took 3.25 s")
    'job hello-ID took 0 s'
    """
    text = NUMBER.sub("0", RUN_ID.sub("ID", text))
    return "\n".join(re.sub(r"[ \t]+", " ", line).strip() for line in text.splitlines()).strip()


def agrees(printed: str, expected: str) -> bool:
    """Whether that was printed.

    >>> agrees("Nodes: 3\\nsome\\nmore\\nwords here", "Nodes: 1\\n...\\nwords ...")
    True
    >>> agrees("no nodes", "Nodes: 1")
    False
    """
    parts = (".*".join(map(re.escape, line.split("..."))) for line in shape(expected).splitlines())
    pattern = "\n".join("(?s:.*?)" if part == ".*" else part for part in parts)
    return re.fullmatch(pattern, shape(printed)) is not None
