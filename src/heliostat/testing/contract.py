"""GroundContract: what every ground must do, as a suite to subclass. Give it a fixture named `harness`:

    class TestMyGround(GroundContract):
        @pytest.fixture
        def harness(self): return MyHarness()

A harness says how to get at the place and how to break things there (see scene.py). The checks of the shell
are a suite of their own, which this one includes; they need a node that can be reached and a Python on it.
Put `pytest.register_assert_rewrite("heliostat.testing.contract", "heliostat.testing.shell_contract")` into a
conftest.py to see values in failures.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import asdict, replace

from heliostat.core.errors import HelioError
from heliostat.core.names import nodes_of
from heliostat.core.owner import Owner
from heliostat.core.plan import cost_of, waves
from heliostat.core.resource import HEAD, NODE, Ref, State
from heliostat.engine.ports import Kinds
from heliostat.testing.scene import RUN, Harness, Scene, check, names, outcomes, refusal
from heliostat.testing.shell_contract import ShellContract

__all__ = ["GroundContract", "Harness", "Scene", "ShellContract", "check"]

HEAD_NODE = f"{NODE}/{HEAD}"


def ids(refs: dict[str, Ref]) -> dict[str, str]:
    return {name: ref.id for name, ref in refs.items()}


class GroundContract(ShellContract):
    """Five methods, and what they promise each other."""

    # want

    @check
    async def test_want_says_the_same_each_time_and_makes_nothing(self, scene: Scene) -> None:
        spec = scene.spec(workers=2)
        wanted = scene.ground.want(spec)
        again = scene.harness.ground().want(spec)
        assert wanted == again
        assert [json.dumps(dict(one.body), default=repr, sort_keys=True) for one in wanted] == [
            json.dumps(dict(one.body), default=repr, sort_keys=True) for one in again
        ]
        assert await scene.refs(await scene.owner(spec)) == {}

    @check
    async def test_want_names_every_node_once_and_needs_only_what_it_names(self, scene: Scene) -> None:
        spec = scene.spec(workers=2)
        wanted = scene.ground.want(spec)
        assert len(names(wanted)) == len(wanted)
        assert {one.key for one in wanted if one.kind == NODE} == {name for name, _, _ in nodes_of(spec)}
        assert {need for one in wanted for need in one.needs} <= names(wanted)
        assert sum(len(wave) for wave in waves(wanted)) == len(wanted), "needs form a ring"
        assert all(one.text for one in wanted), "`helio plan` has a line for each"

    @check
    async def test_a_changed_file_changes_the_digests_of_its_nodes(self, scene: Scene) -> None:
        spec = scene.spec()
        before = {one.name: one for one in scene.ground.want(spec)}
        after = {one.name: one for one in scene.ground.want(scene.harness.changed(spec))}
        assert before.keys() == after.keys()
        for name, one in after.items():
            if one.kind == NODE:
                assert one.digests.restart != before[name].digests.restart
                assert one.digests.replace == before[name].digests.replace

    # find

    @check
    async def test_what_was_made_is_listed_with_all_that_is_known(self, scene: Scene) -> None:
        began = time.time()
        owner, spec, refs = await scene.cluster()
        wanted = {one.name: one for one in scene.ground.want(spec)}
        assert refs.keys() == wanted.keys()
        for name, ref in refs.items():
            assert (ref.owner, ref.needs, ref.run) == (owner, wanted[name].needs, RUN)
            assert ref.digests == wanted[name].digests
            assert cost_of(wanted[name], ref) is None
            assert ref.data == wanted[name].data
            assert ref.state in (State.PENDING, State.READY)
            assert ref.id
            assert ref.removal, "a person must be able to remove it by hand"
            # A place's clock may be another one than ours, or virtual.
            assert ref.created is not None
            assert ref.created <= max(time.time(), began) + 60

    @check
    async def test_nodes_say_how_they_are_reached(self, scene: Scene) -> None:
        owner, spec, refs = await scene.cluster()

        async def told() -> bool:
            return {"dashboard", "gcs"} <= (await scene.refs(owner))[HEAD_NODE].facts.keys()

        await scene.until(told, "the head's addresses")
        groups = {name: group.name if group else "" for name, _, group in nodes_of(spec)}
        for ref in (await scene.refs(owner)).values():
            if ref.kind == NODE:
                assert {"home", "python", "group"} <= ref.facts.keys()
                assert ref.facts["group"] in (groups[ref.key], ref.key)
        head = (await scene.refs(owner))[HEAD_NODE].facts
        assert all(int(head[name].rpartition(":")[2]) for name in ("dashboard", "gcs"))
        assert head["token_path"].startswith(("/", "~/"))
        assert refs.keys() == (await scene.refs(owner)).keys()

    @check
    async def test_every_kind_that_is_made_is_looked_for(self, scene: Scene) -> None:
        wanted = scene.ground.want(scene.spec())
        assert isinstance(scene.ground, Kinds), "a proof names every kind that was looked for"
        assert {one.kind for one in wanted} <= set(scene.ground.kinds)

    @check
    async def test_other_owners_and_other_clusters_are_not_seen(self, scene: Scene) -> None:
        owner, spec, ours = await scene.cluster(workers=0)
        stranger = scene.owned(scene.harness.stranger(owner))
        theirs = await scene.make(stranger, scene.ground.want(spec), run="theirs")
        other, _, others = await scene.cluster(workers=0)
        assert not set(ids(ours).values()) & {*ids(theirs).values(), *ids(others).values()}
        assert ids(await scene.refs(owner)) == ids(ours)
        assert ids(await scene.refs(stranger)) == ids(theirs)
        everything = await scene.ground.find(Owner(owner.principal))
        assert {ref.id for ref in everything} >= {*ids(ours).values(), *ids(others).values()}
        assert {ref.owner.principal for ref in everything} == {owner.principal}
        assert ids(await scene.refs(other)) == ids(others)
        await scene.erase(owner)
        assert ids(await scene.refs(stranger)) == ids(theirs)
        assert ids(await scene.refs(other)) == ids(others)

    @check
    async def test_another_process_sees_the_same(self, scene: Scene) -> None:
        owner, _, refs = await scene.cluster(workers=0)
        assert ids(await scene.refs(owner, scene.harness.ground())) == ids(refs)

    @check
    async def test_a_broken_node_is_listed_and_says_why(self, scene: Scene) -> None:
        owner, spec, refs = await scene.cluster(workers=1)
        name = next(f"{NODE}/{key}" for key, _, group in nodes_of(spec) if group)
        await scene.harness.break_node(refs[name])

        async def broken() -> bool:
            return (await scene.refs(owner))[name].state is State.BROKEN

        await scene.until(broken, f"{name} to be listed as broken")
        now = await scene.refs(owner)
        assert now[name].facts["why"]
        assert ids(now).keys() == ids(refs).keys()
        assert now[HEAD_NODE].state is not State.BROKEN
        await scene.delete([now[name]])
        made = await scene.make(owner, [one for one in scene.ground.want(spec) if one.name == name])
        assert made[name].state is not State.BROKEN

    # create

    @check
    async def test_creating_again_changes_nothing(self, scene: Scene) -> None:
        owner, spec, refs = await scene.cluster()
        again = await scene.make(owner, scene.ground.want(spec), run="another", ground=scene.harness.ground())
        assert ids(again) == ids(refs)
        assert {ref.run for ref in again.values()} == {RUN}, "who made it first has made it"

    @check
    async def test_two_that_create_at_once_make_one_of_each(self, scene: Scene) -> None:
        spec = scene.spec()
        owner = await scene.owner(spec)
        wanted = [replace(one, run=RUN) for one in scene.ground.want(spec)]
        for wave in waves(wanted):
            both = [scene.ground, scene.harness.ground()]
            tries = await asyncio.gather(*(outcomes(ground.create(owner, wave)) for ground in both))
            for every in zip(*(sorted(one, key=lambda o: o.name) for one in tries), strict=True):
                assert any(outcome.ok for outcome in every), every
        assert (await scene.listed(owner, names(wanted))).keys() == names(wanted)

    @check
    async def test_a_create_that_was_cut_short_is_finished_by_the_next(self, scene: Scene) -> None:
        for delay in (0.0, 0.02, 0.2):
            spec = scene.spec()
            owner = await scene.owner(spec)
            task = asyncio.ensure_future(scene.make(owner, scene.ground.want(spec)))
            await asyncio.wait([task], timeout=delay)
            task.cancel()
            await asyncio.wait([task])
            refs = await scene.make(owner, scene.ground.want(spec))
            assert refs.keys() == names(scene.ground.want(spec))
            await scene.erase(owner)

    @check
    async def test_a_changed_node_is_brought_to_its_new_digests(self, scene: Scene) -> None:
        owner, spec, refs = await scene.cluster(workers=1)
        wanted = scene.ground.want(scene.harness.changed(spec))
        now = await scene.make(owner, wanted, run="second")
        assert {name: ref.digests for name, ref in now.items()} == {one.name: one.digests for one in wanted}
        assert now.keys() == refs.keys()
        assert all(ref.state in (State.PENDING, State.READY) for ref in now.values())
        assert {ref.run for ref in now.values()} == {RUN}, "a restarted node is still whose it was"

    @check
    async def test_what_cannot_be_made_is_an_error_of_ours_and_names_itself(self, scene: Scene) -> None:
        spec = scene.harness.unmakeable(scene.spec(workers=0))
        if spec is None:
            return  # this place refuses nothing that a harness could ask for
        owner = await scene.owner(spec)
        wanted = scene.ground.want(spec)
        rest = [one for one in wanted if one.kind != NODE]
        await scene.make(owner, rest)
        nodes = [one for one in wanted if one.kind == NODE]
        done = await outcomes(scene.ground.create(owner, nodes))
        assert {outcome.name for outcome in done} == names(nodes)
        for outcome in done:
            assert isinstance(outcome.error, HelioError)
            assert outcome.error.what
            assert outcome.error.why
            assert outcome.ref is None
        assert not any(
            ref.kind == NODE and ref.state is State.READY for ref in await scene.ground.find(owner)
        )

    # delete

    @check
    async def test_deleting_twice_is_deleting(self, scene: Scene) -> None:
        owner, _, refs = await scene.cluster(workers=0)
        await scene.delete(refs.values())
        assert await scene.ground.find(owner) == ()
        for outcome in await outcomes(scene.ground.delete(tuple(refs.values()))):
            assert outcome.ok, outcome.error
        assert await scene.ground.find(owner) == ()

    @check
    async def test_only_what_a_ref_names_is_deleted(self, scene: Scene) -> None:
        owner, spec, refs = await scene.cluster(workers=2)
        name = next(f"{NODE}/{key}" for key, _, group in nodes_of(spec) if group)
        await scene.delete([refs[name]])
        rest = {each: ref.id for each, ref in refs.items() if each != name}
        assert ids(await scene.refs(owner)) == rest

    @check
    async def test_facts_hold_no_secret(self, scene: Scene) -> None:
        owner, _, _ = await scene.cluster(workers=0)
        head = (await scene.refs(owner))[HEAD_NODE]
        async with scene.ground.shell(head) as shell:
            token = (await shell.run(["cat", head.facts["token_path"]])).out.decode().strip()
        text = json.dumps([asdict(ref) for ref in await scene.ground.find(owner)])
        assert not token or token not in text

    @check
    async def test_a_node_that_is_gone_cannot_be_reached_and_says_so(self, scene: Scene) -> None:
        owner, _, refs = await scene.cluster(workers=0)
        await scene.erase(owner)
        head = refs[HEAD_NODE]

        async def reach() -> None:
            async with scene.ground.shell(head) as shell:
                gone = await shell.run(["test", "-e", f"{head.facts['home']}/token"])
                assert gone.code != 0, "the node is gone, but its home is not"

        error = await refusal(reach())
        assert error is None or error.what
