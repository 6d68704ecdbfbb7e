"""Events as lines of text, for everyone who cannot see a moving line."""

from __future__ import annotations

from collections.abc import Iterator

from heliostat.cli.render.plans import plan_lines
from heliostat.cli.render.quantities import many, seconds, size
from heliostat.core.event import Ended, Event, Level, Note, Planned, Progress, Step


def lines(event: Event) -> Iterator[str]:
    """What a person should read of it. Steps and progress are the renderer's own.

    A proof is not told here: it is the result of its command, or the error that says what is left.
    """
    match event:
        case Planned(plan=plan):
            yield from plan_lines(plan)
        case Note(text=text, level=level):
            yield f"warning: {text}" if level is Level.WARN else text
        case Ended(verb=verb, seconds=took, text=text):
            yield f"{verb}: {text} ({seconds(took)})" if text else f"{verb}: done ({seconds(took)})"


def step(event: Step, took: float) -> str:
    """One thing that moved on."""
    detail = f": {event.detail}" if event.detail else ""
    return f"{event.subject} {event.state} ({seconds(took)}){detail}"


def progress(event: Progress) -> str:
    """How far it is."""
    if event.unit == "bytes":
        of = f" of {size(event.total)}" if event.total is not None else ""
        return f"{event.what}: {size(event.done)}{of}"
    noun = event.unit.removesuffix("s")
    if event.total is None:
        return f"{event.what}: {many(event.done, noun)}"
    return f"{event.what}: {event.done} of {many(event.total, noun)}"
