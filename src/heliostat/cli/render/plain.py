"""One line for each thing that happened: for pipes, logs and terminals that cannot do more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from heliostat.cli.render.screen import Screen

if TYPE_CHECKING:
    from heliostat.cli.render.teller import Teller
    from heliostat.core.event import Event


class Plain:
    """Events as lines on stderr; results and job output on stdout."""

    def __init__(
        self, screen: Screen, *, quiet: bool = False, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.screen = screen
        self.quiet = quiet
        self.now = now
        self.began = now()
        self._teller: Teller | None = None  # comes with the first event: a result alone does without

    def __call__(self, event: Event) -> None:
        if self._teller is None:
            from heliostat.cli.render.teller import Teller

            self._teller = Teller(self.screen, quiet=self.quiet, now=self.now, began=self.began)
        self._teller.tell(event)

    def result(self, lines: Sequence[str], _data: Mapping[str, Any]) -> None:
        if lines:
            self.screen.result("\n".join(lines))

    @contextmanager
    def paused(self) -> Iterator[None]:
        yield

    def close(self) -> None:
        if self._teller is not None:
            self._teller.flush()
