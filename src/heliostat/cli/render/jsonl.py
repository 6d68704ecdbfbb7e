"""Events as JSON lines on stdout; the last line is the result, or the error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from heliostat.cli.render.data import plain
from heliostat.cli.render.screen import Screen
from heliostat.core.event import Event, Level, Note


class JsonLines:
    """One object a line: `event` names its kind, the other keys are the record's own."""

    def __init__(self, screen: Screen, *, quiet: bool = False) -> None:
        self.screen = screen
        self.quiet = quiet

    def __call__(self, event: Event) -> None:
        if isinstance(event, Note) and event.level is Level.WARN:
            self.screen.line(f"warning: {event.text}")
        if not self.quiet:
            self._line({"event": type(event).__name__.lower(), **plain(event)})

    def result(self, _lines: Sequence[str], data: Mapping[str, Any]) -> None:
        self._line({"event": "result", **plain(data)})

    def _line(self, value: Mapping[str, Any]) -> None:
        self.screen.result(json.dumps(value))

    @contextmanager
    def paused(self) -> Iterator[None]:
        yield

    def close(self) -> None:
        """Nothing is held back."""
