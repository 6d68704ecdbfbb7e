"""The program is killed at every possible call; what stands beside its cluster must not notice."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import pytest

from heliostat.core.owner import Owner
from heliostat.core.spec import Spec
from heliostat.engine.clean import clean
from heliostat.engine.lifecycle import down, restart, up
from heliostat.engine.ports import Site
from heliostat.testing.fake import Client, FakePlace, Faults, fake_site, run
from tests.engine.worlds import dies, spec, stand

OURS = Owner("somebody", "c")
STRANGER = "somebody else"  # has a cluster of the same name
POINTS = 400  # more than any flow here passes

Verb = Callable[[Site], Coroutine[Any, Any, object]]
Check = Callable[[FakePlace], None]


def nothing(place: FakePlace) -> None:
    assert place.names(OURS) == []
    assert not place.intents


def all_of_it(place: FakePlace) -> None:
    listed = {node.id for node in place.ray_nodes(OURS) if node.alive}
    nodes = ["node/cpu-1", "node/cpu-2", "node/cpu-3", "node/head"]
    there = sorted(thing.name for thing in place.existing(OURS) if thing.gone_at is None)
    assert there == ["address/head", "network/main", *nodes]
    assert all(thing.ray.id in listed for thing in place.existing(OURS) if thing.ray is not None)
    assert not place.intents


def nothing_or_all(place: FakePlace) -> None:
    """Killed after its last word in the journal, it had done all that it meant to do."""
    check = all_of_it if place.names(OURS) else nothing
    check(place)


@dataclass(frozen=True)
class Case:
    """`was` stands, `verb` is killed, a new process does `then`."""

    verb: Verb
    then: Verb
    check: Check
    was: Spec | None = None
    lag: float = 0.0

    async def trial(self, point: int) -> bool:
        """Whether it was killed at that point; what follows is checked if so."""
        place = FakePlace(Faults(lag=self.lag, latency=0.01))
        await stand(place, Owner(STRANGER, "c"), spec(cpu=1))
        await stand(place, Owner("somebody", "other"), spec(cpu=1))
        if self.was is not None:
            await stand(place, OURS, self.was)
        beside = [thing.id for thing in place.existing() if thing.owner != OURS]
        place.touches.clear()
        died = await dies(self.verb(fake_site(spec(cpu=3), client=Client(place, crash_at=point))))
        if died:
            await self.then(fake_site(spec(cpu=3), place=place))
            self.check(place)
        assert [touch for touch in place.touches if touch.owner != OURS] == []
        assert [thing.id for thing in place.existing() if thing.owner != OURS] == beside
        return died


CASES = {
    "up, clean": Case(up, clean, nothing_or_all),
    "up, clean, listings lag": Case(up, clean, nothing_or_all, lag=3.0),
    "up, down": Case(up, down, nothing),
    "up, down, listings lag": Case(up, down, nothing, lag=3.0),
    "up, up": Case(up, up, all_of_it),
    "up, up, listings lag": Case(up, up, all_of_it, lag=3.0),
    "larger up, up": Case(up, up, all_of_it, was=spec(cpu=1)),
    "smaller up, up": Case(up, up, all_of_it, was=spec(cpu=5)),
    "restart, up": Case(restart, up, all_of_it, was=spec(cpu=3)),
    "down, up": Case(down, up, all_of_it, was=spec(cpu=3)),
    "down, down": Case(down, down, nothing, was=spec(cpu=3)),
    "down, clean": Case(down, clean, nothing_or_all, was=spec(cpu=3)),
    "down, clean, listings lag": Case(down, clean, nothing_or_all, was=spec(cpu=3), lag=3.0),
}


@pytest.mark.parametrize("name", CASES)
def test_killed_at_every_call(name: str) -> None:
    case = CASES[name]
    for point in range(POINTS):
        try:
            if not run(case.trial(point)):
                assert point > 5
                return
        except BaseException as error:
            error.add_note(f"{name}: killed at point {point}")
            raise
    pytest.fail("it never got through")
