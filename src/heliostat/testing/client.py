"""One run of the program on a fake place: every call counts, and it may die at any of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from heliostat.core.errors import Busy, Throttled
from heliostat.core.intent import Intent
from heliostat.core.owner import Owner
from heliostat.testing.clock import VirtualClock
from heliostat.testing.place import FakePlace

T = TypeVar("T")


class Crash(BaseException):
    """The process died here, as by kill -9: nothing that it does afterwards has any effect."""


class Client:
    """A process. It passes a point before and after each call; `crash_at` is the number of such a point."""

    def __init__(self, place: FakePlace, name: str = "", *, crash_at: int | None = None) -> None:
        self.place = place
        self.name = name or f"client-{place.next_number()}"
        self.crash_at = crash_at
        self.at: Callable[[int, str], None] = lambda _point, _what: None  # called at each point
        self.points = 0
        self.dead = False
        self.calls: list[str] = []

    def pass_point(self, what: str) -> None:
        """Count it; die here if this is the point."""
        if self.dead:
            raise Crash(what)
        point = self.points
        self.points += 1
        self.at(point, what)
        if point == self.crash_at:
            self.dead = True
            raise Crash(what)

    async def call(self, what: str, deed: Callable[[], T]) -> T:
        """One request: it takes time, may be refused for now, and may be the last."""
        self.pass_point(what)
        self.calls.append(what)
        await asyncio.sleep(self.place.faults.latency)
        if self.dead:
            raise Crash(what)
        self.place.requests += 1
        every = self.place.faults.throttle
        if every and self.place.requests % every == 0:
            raise Throttled("too many requests", why="the place allows so many and no more")
        result = deed()
        self.pass_point(what)
        return result

    def note(self, what: str, deed: Callable[[], T]) -> T:
        """The same for what is done at once, on the client's own disk."""
        self.pass_point(what)
        result = deed()
        self.pass_point(what)
        return result


class ClientClock(VirtualClock):
    """Time stands still for the dead."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def wait(self, seconds: float) -> None:
        if self._client.dead:
            raise Crash("wait")
        await super().wait(seconds)


class FakeJournal:
    """The journal in memory: it belongs to the place's record, so it outlives the client as a disk does."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._place = client.place

    @contextmanager
    def hold(self, owner: Owner, verb: str) -> Iterator[None]:
        if owner in self._place.holds:
            why = f"`helio {verb}` is running as process {self._place.holds[owner]}"
            raise Busy(f"another helio is at work on cluster {owner.cluster}", why=why)
        self._place.holds[owner] = self._client.name
        try:
            yield
        finally:
            del self._place.holds[owner]  # the system does this, also for the dead

    def begin(self, owner: Owner, verb: str, run: str, names: Sequence[str]) -> None:
        at = self._place.clock.now()
        intent = Intent(owner=owner, verb=verb, run=run, names=tuple(names), at=at)
        self._client.note(f"begin {verb}", lambda: self._place.intents.update({run: intent}))

    def end(self, owner: Owner, run: str, result: str) -> None:
        del owner  # runs have names of their own
        self._client.note(f"end {result}", lambda: self._place.intents.pop(run, None))

    def open(self, owner: Owner) -> tuple[Intent, ...]:
        """Without those that are under way elsewhere, as the real one."""
        mine = self._client.name
        return tuple(
            intent
            for intent in self._place.intents.values()
            if owner.owns(intent.owner) and self._place.holds.get(intent.owner, mine) == mine
        )
