"""The output of several nodes at once, line by line, each with its node's name before it."""

from __future__ import annotations

from dataclasses import replace

from heliostat.cli.render.screen import Screen, clean
from heliostat.core.event import Output
from heliostat.core.prefix import Prefixed


class Prefixer:
    """Output without a source passes through untouched; else whole lines are kept together."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.lines = Prefixed()

    def write(self, event: Output) -> None:
        if data := self.lines.of(replace(event, source=clean(event.source))):
            self.screen.raw(data, event.stream)

    def flush(self) -> None:
        """What came without a line break at its end."""
        for stream, data in self.lines.rest():
            self.screen.raw(data, stream)
