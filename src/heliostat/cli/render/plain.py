"""One line for each thing that happened: for pipes, logs and terminals that cannot do more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from heliostat.cli.render import words
from heliostat.cli.render.prefix import Prefixer
from heliostat.cli.render.screen import Screen
from heliostat.core.event import Began, Event, Level, Note, Output, Progress, Step

PATIENCE = 5.0  # seconds between two lines about the same transfer


class Plain:
    """Events as lines on stderr; results and job output on stdout."""

    def __init__(
        self, screen: Screen, *, quiet: bool = False, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.screen = screen
        self.quiet = quiet
        self.now = now
        self.began = now()
        self.states: dict[str, str] = {}
        self.moved: dict[str, float] = {}
        self.prefixer = Prefixer(screen)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Output):
            self.prefixer.write(event)
        elif not self.quiet or (isinstance(event, Note) and event.level is Level.WARN):
            for line in self._lines(event):
                self.screen.line(line)

    def _lines(self, event: Event) -> Iterator[str]:
        match event:
            case Began():
                self.began = self.now()
                self.states.clear()
            case Step(subject=subject, state=state):
                if self.states.get(subject) != state:  # a repeated state is no news
                    self.states[subject] = state
                    yield words.step(event, self.now() - self.began)
            case Progress(what=what, done=done, total=total):
                if done == total or self.now() - self.moved.get(what, self.began) >= PATIENCE:
                    self.moved[what] = self.now()
                    yield words.progress(event)
            case _:
                yield from words.lines(event)

    def result(self, lines: Sequence[str], _data: Mapping[str, Any]) -> None:
        if lines:
            self.screen.result("\n".join(lines))

    @contextmanager
    def paused(self) -> Iterator[None]:
        yield

    def close(self) -> None:
        self.prefixer.flush()
