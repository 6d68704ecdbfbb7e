"""Bytes and lines to stdout and stderr: the only writer of the whole program."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import IO

# Line breaks and tabs are the only control characters that may pass; the others could move the cursor, set
# the window's title or hide text. The last ranges turn the reading direction around.
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"} | {
    code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
}


def clean(text: str) -> str:
    r"""Text from a file or a cluster, made harmless for a terminal.

    >>> clean("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return text.translate(_CONTROL)


def nothing() -> None:
    """Nobody wants to know."""


class Screen:
    """Results and a job's bytes go to stdout, everything about progress to stderr.

    Whoever reads us may go away at any time (`helio status | head -1`, a closed terminal): then that stream
    is closed for us, and the work goes on to its own end and exit code.
    """

    def __init__(self, out: IO[str] | None = None, err: IO[str] | None = None) -> None:
        self.out = out if out is not None else sys.stdout
        self.err = err if err is not None else sys.stderr
        self.closed: set[str] = set()
        self.unread: Callable[[], object] = nothing  # called when stdout's reader has gone

    def result(self, text: str) -> None:
        """What was asked for."""
        self._write("out", clean(text if text.endswith("\n") else text + "\n"))

    def line(self, text: str) -> None:
        """A line about progress."""
        self._write("err", clean(text) + "\n")

    def prompt(self, text: str) -> None:
        """A question: the answer is typed on the same line."""
        self._write("err", clean(text))

    def drawn(self, text: str) -> None:
        """A drawing, with what moves the cursor."""
        self._write("err", text)

    def raw(self, data: bytes, stream: str = "stdout") -> None:
        """A job's or a command's own bytes, untouched."""
        self._bytes("err" if stream == "stderr" else "out", data)

    def _write(self, name: str, text: str) -> None:
        stream: IO[str] | None = getattr(self, name)
        encoding = getattr(stream, "encoding", None) or "utf-8"
        self._bytes(name, text.encode(encoding, "backslashreplace"))

    def _bytes(self, name: str, data: bytes) -> None:
        stream: IO[str] | None = getattr(self, name)
        if stream is None or name in self.closed:
            return
        try:
            if (below := getattr(stream, "buffer", None)) is not None:
                below.write(data)
            else:
                stream.write(data.decode(errors="replace"))
            stream.flush()
        except OSError:
            self.closed.add(name)
            # What is still in Python's buffer must not fail again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if name == "out":
                self.unread()


class Canvas(io.TextIOBase):
    """The screen's stderr for what draws: a terminal that was closed is forgiven there too."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def write(self, text: str) -> int:
        self._screen.drawn(text)
        return len(text)

    def isatty(self) -> bool:
        return self._screen.err is not None and self._screen.err.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base says str too, but as a plain attribute
        return getattr(self._screen.err, "encoding", None) or "utf-8"
