"""Ctrl-C at every possible call: what this `up` made goes again, what was there before stays."""

from __future__ import annotations

import asyncio

import pytest

from heliostat.core.owner import Owner
from heliostat.core.spec import Spec
from heliostat.engine.clean import clean
from heliostat.engine.lifecycle import up
from heliostat.engine.ports import Site
from heliostat.testing.fake import Client, FakePlace, Faults, fake_site, run
from tests.engine.worlds import spec, stand

OURS = Owner("somebody", "c")


async def interrupted(site: Site, client: Client, *points: int, keep: bool = False) -> bool:
    """Run `up`, pressing Ctrl-C at these points; whether it ended by that."""
    task = asyncio.ensure_future(up(site, keep=keep))

    def press(point: int, _what: str) -> None:
        if point in points:
            task.cancel()

    client.at = press
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


async def trial(was: Spec | None, lag: float, point: int) -> bool:
    place = FakePlace(Faults(lag=lag, latency=0.01))
    if was is not None:
        await stand(place, OURS, was)
    before = [thing.id for thing in place.existing()]
    client = Client(place)
    if not await interrupted(fake_site(spec(cpu=3), client=client), client, point):
        return False
    if place.intents or len(place.existing()) < 6:  # otherwise it came after all was done
        assert [thing.id for thing in place.existing()] == before
    assert not place.intents
    return True


@pytest.mark.parametrize("lag", [0.0, 3.0])
@pytest.mark.parametrize("was", [None, spec(cpu=1)], ids=["first up", "larger up"])
def test_ctrl_c_at_every_call(was: Spec | None, lag: float) -> None:
    for point in range(400):
        try:
            if not run(trial(was, lag, point)):
                assert point > 10
                return
        except AssertionError as error:
            error.add_note(f"Ctrl-C at point {point}")
            raise
    pytest.fail("it never got through")


async def test_a_second_ctrl_c_leaves_a_note_that_clean_understands() -> None:
    place = FakePlace()
    client = Client(place)
    assert await interrupted(fake_site(spec(cpu=3), client=client), client, 14, 20)
    assert place.names()
    assert place.intents
    (proof,) = await clean(fake_site(spec(cpu=3), place=place))
    assert proof.gone
    assert place.names() == []
    assert not place.intents


async def test_keep_keeps_what_was_made() -> None:
    place = FakePlace()
    client = Client(place)
    assert await interrupted(fake_site(spec(cpu=3), client=client), client, 14, keep=True)
    assert 0 < len(place.names()) < 6
    assert not place.intents
    assert await clean(fake_site(spec(cpu=3), place=place)) == ()
    await up(fake_site(spec(cpu=3), place=place))
    assert len(place.names()) == 6
