"""A live line for each node with its state and elapsed time, on a terminal that can do it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, cast

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from heliostat.cli.render import words
from heliostat.cli.render.prefix import Prefixer
from heliostat.cli.render.quantities import many, seconds
from heliostat.cli.render.screen import Canvas, Screen, clean
from heliostat.core.event import Began, Event, Level, Note, Output, Progress, Step

BAD = frozenset({"failed", "dead", "broken", "left"})


@dataclass(slots=True)
class Subject:
    """One line: since when, how it stands, and when that was final."""

    step: Step
    since: float
    until: float | None = None


class Tty:
    """Draws on stderr; a job's bytes go to stdout untouched, with the drawing out of their way."""

    def __init__(
        self, screen: Screen, *, now: Callable[[], float] = time.monotonic, console: Console | None = None
    ) -> None:
        self.screen = screen
        self.now = now
        self.console = console or Console(file=cast("IO[str]", Canvas(screen)), highlight=False, emoji=False)
        self.fancy = "utf" in (self.console.encoding or "").lower()
        self.subjects: dict[str, Subject] = {}
        self.transfers: dict[str, Progress] = {}
        self.live: Live | None = None
        self.spinner = Spinner("dots" if self.fancy else "line")
        self.prefixer = Prefixer(screen)
        self.fresh = True  # the cursor is at the start of a line

    def __call__(self, event: Event) -> None:
        match event:
            case Output(data=data):
                self._settle()
                self.prefixer.write(event)
                self.fresh = bool(event.source) or data.endswith(b"\n")
            case Began():
                self._settle()
            case Step(subject=subject):
                self._step(subject, event)
            case Progress(what=what):
                self.transfers[what] = event
                self._draw()
            case _:
                for line in words.lines(event):
                    style = "yellow" if isinstance(event, Note) and event.level is Level.WARN else ""
                    self._print(Text(clean(line), style=style))

    def _step(self, subject: str, event: Step) -> None:
        known = self.subjects.get(subject)
        since = known.since if known else self.now()
        self.subjects[subject] = Subject(event, since, self.now() if event.done else None)
        self._draw()

    def _draw(self) -> None:
        """Have the live area on the screen; it redraws itself while time passes."""
        if self.live is None:
            self._newline()
            self.live = Live(
                console=self.console, get_renderable=self._picture, refresh_per_second=8, transient=True,
                redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            self.live.start()

    def _settle(self) -> None:
        """Take the live area away and leave how everything stands now."""
        if self.live is None:
            return
        self.live.stop()
        self.live = None
        for subject in self.subjects.values():
            if subject.step.done:
                self.console.print(self._line(subject))
        for transfer in self.transfers.values():
            self.console.print(Text(f"  {clean(words.progress(transfer))}", style="dim"))
        self.subjects = {name: each for name, each in self.subjects.items() if not each.step.done}
        self.transfers.clear()

    def _picture(self) -> Table:
        """As many lines as fit: what is not over comes first."""
        grid = Table.grid(padding=(0, 1))
        room = max(self.console.height - 3, 3)
        waiting = [each for each in self.subjects.values() if not each.step.done]
        over = [each for each in self.subjects.values() if each.step.done]
        shown = over + waiting if len(over) + len(waiting) <= room else waiting[:room]
        for subject in shown:
            grid.add_row(self._line(subject))
        if hidden := len(over) + len(waiting) - len(shown):
            grid.add_row(Text(f"  and {hidden} more, {many(len(over), 'node')} ready", style="dim"))
        for transfer in self.transfers.values():
            grid.add_row(self._transfer(transfer))
        return grid

    def _line(self, subject: Subject) -> Table | Text:
        step = subject.step
        took = (subject.until if subject.until is not None else self.now()) - subject.since
        bad = step.state in BAD
        colour = "red" if bad else "green" if step.done else ""
        text = Text.assemble(
            (clean(step.subject), "bold"), " ", (clean(step.state), colour),
            (f" {seconds(took)}", "dim"), (f"  {clean(step.detail)}" if step.detail else "", "dim"),
        )  # fmt: skip
        text.no_wrap, text.overflow = True, "ellipsis"
        if not step.done:
            row = Table.grid(padding=(0, 1))
            row.add_row(self.spinner, text)
            return row
        mark = ("✗" if bad else "✓") if self.fancy else ("x" if bad else "+")
        return Text.assemble((mark, "red" if bad else "green"), " ", text, no_wrap=True, overflow="ellipsis")

    def _transfer(self, event: Progress) -> Table:
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=event.total, completed=event.done, width=24, pulse=event.total is None)
        row.add_row("  ", bar, Text(clean(words.progress(event)), no_wrap=True, overflow="ellipsis"))
        return row

    def _print(self, text: Text) -> None:
        if self.live is not None:
            self.live.console.print(text)
        else:
            self._newline()
            self.console.print(text)

    def _newline(self) -> None:
        """A job's last line may lack its end."""
        if not self.fresh:
            self.console.print()
            self.fresh = True

    def result(self, lines: Sequence[str], _data: Mapping[str, Any]) -> None:
        self._settle()
        self._newline()
        if lines:
            self.screen.result("\n".join(lines))

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._settle()
        self._newline()
        yield

    def close(self) -> None:
        self._settle()
        self.prefixer.flush()
        self._newline()
