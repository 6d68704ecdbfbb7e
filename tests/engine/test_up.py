from __future__ import annotations

from dataclasses import replace

from heliostat.core.owner import Owner
from heliostat.core.status import NodeState
from heliostat.engine.lifecycle import down, up
from heliostat.engine.nodes import kill
from heliostat.engine.patience import Patience
from heliostat.engine.status import clusters, status
from heliostat.testing.fake import Client, FakePlace, fake_site
from tests.engine.worlds import Asked, spec


async def test_up_makes_every_node_live_and_down_leaves_nothing() -> None:
    place = FakePlace()
    site = fake_site(spec(cpu=3), place=place)
    result = await up(site)
    assert [(n.name, n.state) for n in result.nodes] == [
        (name, NodeState.ALIVE) for name in ("head", "cpu-1", "cpu-2", "cpu-3")
    ]
    assert (await status(site)).healthy
    assert [listed.nodes for listed in await clusters(site)] == [4]
    proof = await down(site)
    assert proof.gone
    assert len(proof.removed) == 6
    assert not place.existing()
    assert await clusters(site) == ()


async def test_an_up_that_has_nothing_to_do_asks_the_place_and_ray_once_each() -> None:
    client = Client(FakePlace())
    site = fake_site(spec(), client=client)
    await up(site)
    client.calls.clear()
    await up(site)
    assert client.calls == ["find", "connect", "ray nodes"]


async def test_a_larger_file_adds_and_a_smaller_one_deletes_after_asking() -> None:
    place = FakePlace()
    await up(fake_site(spec(cpu=1), place=place))
    await up(fake_site(spec(cpu=3), place=place))
    assert place.names() == [
        "address/head",
        "network/main",
        "node/cpu-1",
        "node/cpu-2",
        "node/cpu-3",
        "node/head",
    ]
    asked = Asked()
    await up(fake_site(spec(cpu=2), place=place, ask=asked))
    assert asked.details == ["cpu-3: is deleted"]
    assert "node/cpu-3" not in place.names()


async def test_a_node_that_is_back_at_once_is_in_the_answer() -> None:
    place = FakePlace()
    site = fake_site(spec(cpu=1), place=place)
    await up(site)
    await kill(site, "cpu-1")
    place.faults.start = 0.05
    result = await up(site)
    assert [(n.name, n.state) for n in result.nodes] == [
        ("head", NodeState.ALIVE),
        ("cpu-1", NodeState.ALIVE),
    ]


async def test_what_is_changed_in_place_need_not_be_born_again() -> None:
    place = FakePlace()
    await up(fake_site(spec(cpu=1), place=place))
    before = {node.id for node in place.ray_nodes(Owner("somebody", "c"))}
    began = place.clock.monotonic()
    result = await up(fake_site(replace(spec(cpu=1), tags={"team": "b"}), place=place))
    assert result.healthy
    assert {node.id for node in place.ray_nodes(Owner("somebody", "c"))} == before
    assert place.clock.monotonic() - began < 5


async def test_what_was_removed_is_in_nobodys_list_any_more() -> None:
    place = FakePlace()  # Ray there takes five seconds to notice that a node went
    await up(fake_site(spec(cpu=2), place=place))
    smaller = await up(fake_site(spec(cpu=0), place=place))
    assert [(node.name, node.state) for node in smaller.nodes] == [("head", NodeState.ALIVE)]


async def test_a_node_that_ray_has_beyond_ours_makes_nothing_unwell() -> None:
    place = FakePlace()
    await up(fake_site(spec(cpu=1), place=place))
    await kill(fake_site(spec(cpu=1), place=place), "cpu-1")  # which Ray notices a little later
    seen = await status(fake_site(spec(cpu=0), place=place))
    assert [node.state for node in seen.nodes] == [NodeState.ALIVE, NodeState.FOREIGN]
    assert seen.healthy


async def test_a_dead_node_that_goes_for_good_is_not_in_the_answer() -> None:
    place = FakePlace()
    await up(fake_site(spec(cpu=1), place=place))
    place.kill_ray(Owner("somebody", "c"), "cpu-1")
    await place.clock.wait(10)
    smaller = await up(fake_site(spec(cpu=0), place=place))
    assert [node.name for node in smaller.nodes] == ["head"]


async def test_an_up_that_settles_for_less_does_not_show_what_it_removed() -> None:
    place = FakePlace()
    place.faults.never_joins = {"cpu-2"}
    seen = await up(fake_site(spec(cpu=2, at_least=1), place=place), patience=Patience(join=30))
    states = {node.name: node.state for node in seen.nodes}
    assert states == {"head": NodeState.ALIVE, "cpu-1": NodeState.ALIVE, "cpu-2": NodeState.MISSING}
