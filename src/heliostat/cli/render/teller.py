"""What a stream of events says, line by line; nothing is said twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from heliostat.cli.render import words
from heliostat.cli.render.prefix import Prefixer
from heliostat.cli.render.screen import Screen
from heliostat.core.event import Began, Event, Level, Note, Output, Progress, Step

PATIENCE = 5.0  # seconds between two lines about the same transfer


class Teller:
    """Remembers what was told."""

    def __init__(self, screen: Screen, *, quiet: bool, now: Callable[[], float], began: float) -> None:
        self.screen = screen
        self.quiet = quiet
        self.now = now
        self.began = began
        self.states: dict[str, str] = {}
        self.moved: dict[str, float] = {}
        self.prefixer = Prefixer(screen)

    def tell(self, event: Event) -> None:
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

    def flush(self) -> None:
        """What came without a line break at its end."""
        self.prefixer.flush()
