"""Events to a terminal, to plain text, to JSON lines; nothing else prints."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from heliostat.cli.render.screen import Screen

if TYPE_CHECKING:
    from heliostat.core.event import Event


class Renderer(Protocol):
    """Shows events while the work goes on, then its result."""

    screen: Screen

    def __call__(self, event: Event) -> None: ...

    def result(self, lines: Sequence[str], data: Mapping[str, Any]) -> None:
        """What was asked for: as lines for a person, as data for a program."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """While somebody else uses the terminal: a question, a shell."""
        ...

    def close(self) -> None: ...


def renderer(*, json: bool, quiet: bool, plain: bool) -> Renderer:
    """The one that fits what was asked for and what stands at the other end."""
    screen = Screen()
    if json:
        from heliostat.cli.render.jsonl import JsonLines

        return JsonLines(screen, quiet=quiet)
    if not (quiet or plain) and moving(screen):
        from heliostat.cli.render.tty import Tty

        return Tty(screen)
    from heliostat.cli.render.plain import Plain

    return Plain(screen, quiet=quiet)


def moving(screen: Screen) -> bool:
    """Whether progress can be drawn in place."""
    there = screen.err is not None and screen.err.isatty()
    return there and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")
