"""How long each wait may last before it is an error, and how often the ground is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from heliostat.core.errors import TimedOut
from heliostat.engine.ports import Ground, Lags


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds. No wait is without an end."""

    make: float = 900.0  # one wave of resources to exist
    join: float = 600.0  # a new node to be alive in Ray's list
    rejoin: float = 30.0  # an old node to come back to a new head
    leave: float = 15.0  # a removed node to be out of Ray's list, once all others are in it
    answer: float = 20.0  # a head that is there to answer again
    look: float = 8.0  # a head to answer somebody who only looks
    clean: float = 120.0  # what a failed `up` made to be gone again
    gone: float = 600.0  # a cluster to be gone


PATIENCE = Patience()


@asynccontextmanager
async def within(seconds: float, what: str, *, fix: str = "") -> AsyncIterator[None]:
    """Turn the end of patience into an error that says what was waited for."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        why = f"it did not happen within {seconds:g} s"
        raise TimedOut(f"gave up waiting for {what}", why=why, fix=fix) from error


def lag_of(ground: Ground) -> float:
    """By how many seconds the ground's listing may trail the truth."""
    return ground.lag if isinstance(ground, Lags) else 0.0


class Pace:
    """Small waits first, longer ones later; never more than a share of what a look itself costs.

    >>> pace = Pace(first=0.1, most=0.3)
    >>> [round(pace.next(), 2) for _ in range(4)]
    [0.1, 0.15, 0.23, 0.3]
    """

    def __init__(self, *, first: float, most: float, growth: float = 1.5) -> None:
        self._next = first
        self._most = most
        self._growth = growth

    def next(self, cost: float = 0.0) -> float:
        """Seconds to wait now; `cost` is what the last look took."""
        wait = max(min(self._next, self._most), cost)
        self._next = min(self._next * self._growth, self._most)
        return wait
