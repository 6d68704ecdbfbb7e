"""Removing until the place itself says twice that nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heliostat.core.resource import Ref
from heliostat.engine.apply import remove
from heliostat.engine.look import listing
from heliostat.engine.patience import Pace, Patience, lag_of
from heliostat.engine.ports import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    removed: tuple[Ref, ...]
    left: tuple[Ref, ...]
    listings: int  # how many in a row came back empty


async def erase(site: Site, which: Callable[[Ref], bool], patience: Patience, seconds: float) -> Erased:
    """Remove what `which` says of all that is listed, again and again, until two listings are empty.

    The two are as far apart as the place's listing may trail the truth: what a crash left half made is seen.
    """
    clock, pace = site.clock, Pace(first=0.05, most=3.0)
    deadline = clock.monotonic() + seconds
    removed: dict[tuple[str, str], Ref] = {}
    stuck: tuple[Ref, ...] = ()
    stuck_since = clock.monotonic()
    empty = 0
    while empty < 2:
        refs = [ref for ref in await listing(site, patience=patience.answer) if which(ref)]
        if not refs:
            empty += 1
            if empty < 2 and lag_of(site.ground) > 0:
                await clock.wait(lag_of(site.ground))
            continue
        empty = 0
        removed.update(((ref.name, ref.id), ref) for ref in refs)
        left = await remove(site, refs, patience, max(0.0, deadline - clock.monotonic()))
        if left != stuck:
            stuck, stuck_since = left, clock.monotonic()
        elif left and clock.monotonic() >= stuck_since + lag_of(site.ground):
            return _erased(removed, left)  # what holds them would have been listed by now
        if clock.monotonic() >= deadline:  # something makes them again and again
            return _erased(removed, left or tuple(refs))
        if left:
            await clock.wait(pace.next())
    return _erased(removed, (), empty)


def _erased(removed: dict[tuple[str, str], Ref], left: tuple[Ref, ...], listings: int = 0) -> Erased:
    gone = tuple(ref for key, ref in removed.items() if all((r.name, r.id) != key for r in left))
    return Erased(removed=gone, left=left, listings=listings)
