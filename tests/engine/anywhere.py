"""A place on which everything goes wrong, as a state machine: every verb, every fault, a crash at any call.

Two people have a cluster of the same name; beside them stand clusters that nobody works on. Whatever happens,
those are never touched, nobody touches what is another's, and once the faults are over, `clean` leaves no
orphan and `down` leaves nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from heliostat.core.errors import HelioError
from heliostat.core.owner import Owner
from heliostat.core.resource import HEAD, State
from heliostat.core.spec import Node, Spec
from heliostat.core.status import NodeState, Standing, standing_of
from heliostat.engine.clean import YOUNG, clean
from heliostat.engine.lifecycle import down, restart, up
from heliostat.engine.nodes import kill
from heliostat.engine.patience import Patience
from heliostat.engine.ports import Site
from heliostat.engine.status import status
from heliostat.testing.fake import Client, FakePlace, Faults, VirtualLoop, fake_site
from tests.engine.worlds import dies, spec, stand

OWNERS = (Owner("somebody", "c"), Owner("somebody else", "c"))
BESIDE = (Owner("a third", "c"), Owner("somebody", "other"), Owner("somebody else", "other"))
PATIENCE = Patience(make=60, join=60, rejoin=20, answer=10, look=5, clean=30, gone=30)
NODES = ("head", "cpu-1", "cpu-2")

SPECS = st.builds(
    lambda cpu, ray, memory, tag, disk: replace(
        spec(cpu=cpu),
        ray=ray,
        head=Node(memory=memory),
        tags={"team": tag},
        volumes={"data": "/data"} if disk else {},
    ),
    cpu=st.integers(0, 3),
    ray=st.sampled_from([None, "2.61.0"]),  # another needs Ray restarted
    memory=st.sampled_from([None, 2**30]),  # another needs the head replaced
    tag=st.sampled_from(["a", "b"]),  # another is changed in place
    disk=st.booleans(),
)
FAULTS = st.sampled_from([
    {}, {"lag": 3.0}, {"throttle": 4}, {"capacity": 8}, {"capacity": 10}, {"quota": {"address": 3}},
    {"never_joins": {"cpu-1"}}, {"never_joins": {HEAD}}, {"breaks": {"cpu-2": 0.5}}, {"breaks": {HEAD: 1.0}},
    {"stuck": {"address/head"}}, {"stuck": {"node/cpu-1"}}, {"leaks": True}, {"deaf": True},
    {"rejoins": False}, {"detect": 0.0}, {"start": 20.0}, {"teardown": 8.0},
])  # fmt: skip
WHOSE = st.sampled_from(OWNERS)
# Most calls of most verbs lie below 60; a verb that makes fewer calls gets through.
POINT = st.one_of(st.integers(0, 9), st.integers(0, 60), st.none())

Verb = Callable[[Site], Coroutine[Any, Any, object]]
VERBS: dict[str, Verb] = {
    "up": lambda site: up(site, patience=PATIENCE),
    "up --keep": lambda site: up(site, keep=True, patience=PATIENCE),
    "restart": lambda site: restart(site, patience=PATIENCE),
    "down": lambda site: down(site, patience=PATIENCE),
    "down --keep-data": lambda site: down(site, keep_data=True, patience=PATIENCE),
    "clean": lambda site: clean(site, patience=PATIENCE),
    "kill": lambda site: kill(site, "cpu-1", patience=PATIENCE),
}


class Tally:
    """What was tried in all, so that a run can show that it was no sham."""

    def __init__(self) -> None:
        self.examples = 0
        self.with_crash = 0  # examples in which some process died
        self.verbs: Counter[str] = Counter()
        self.crashes: Counter[str] = Counter()
        self.calls: Counter[tuple[str, str]] = Counter()  # (verb, kind of call) at which it died
        self.interrupts = 0


class Anywhere(RuleBasedStateMachine):
    """One world, from the first day to its clean end."""

    tally = Tally()

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.place = FakePlace(Faults(latency=0.01))
        self.specs = dict.fromkeys(OWNERS, spec(cpu=1))
        self.tally.examples += 1
        self.crashed = False

    @initialize(standing=st.lists(WHOSE, unique=True))
    def begins(self, standing: list[Owner]) -> None:
        for owner in (*BESIDE, *standing):
            self.runner.run(stand(self.place, owner, spec(cpu=1, cluster=owner.cluster or "")))
        self.beside = self._beside()
        self.place.touches.clear()

    def _site(self, owner: Owner, **client: Any) -> Site:
        maker = Client(self.place, f"{owner.principal}-{self.place.next_number()}", **client)
        return fake_site(self.specs[owner], client=maker, principal=owner.principal)

    def _beside(self) -> list[str]:
        async def ids() -> list[str]:
            return [thing.id for thing in self.place.existing() if thing.owner in BESIDE]

        return self.runner.run(ids())

    async def _tried(self, name: str, owner: Owner, point: int | None) -> None:
        """One process that does one verb, and may die on the way."""
        last = [""]

        def note(_point: int, what: str) -> None:
            last[0] = what.partition(" ")[0]

        site = self._site(owner, crash_at=point)
        site.ground.client.at = note  # type: ignore[attr-defined]  # it is a FakeGround
        self.tally.verbs[name] += 1
        if await dies(VERBS[name](site)):
            self.tally.with_crash += not self.crashed
            self.crashed = True
            self.tally.crashes[name] += 1
            self.tally.calls[name, last[0]] += 1

    @rule(owner=WHOSE, wanted=SPECS, point=POINT, verb=st.sampled_from(["up", "up", "up --keep"]))
    def ups(self, owner: Owner, wanted: Spec, point: int | None, verb: str) -> None:
        self.specs[owner] = wanted
        self.runner.run(self._tried(verb, owner, point))

    @rule(owner=WHOSE, point=POINT, verb=st.sampled_from([name for name in VERBS if "up" not in name]))
    def does(self, owner: Owner, point: int | None, verb: str) -> None:
        self.runner.run(self._tried(verb, owner, point))

    @rule(owner=WHOSE, first=st.sampled_from(list(VERBS)), then=st.sampled_from(list(VERBS)), point=POINT)
    def do_both_at_once(self, owner: Owner, first: str, then: str, point: int | None) -> None:
        async def both() -> None:
            await asyncio.gather(self._tried(first, owner, point), self._tried(then, owner, None))

        self.runner.run(both())

    @rule(owner=WHOSE, wanted=SPECS, point=st.integers(0, 40))
    def is_interrupted(self, owner: Owner, wanted: Spec, point: int) -> None:
        """Ctrl-C: the process lives on to take back what it made."""
        self.specs[owner] = wanted

        async def pressed() -> None:
            site = self._site(owner)
            task = asyncio.ensure_future(VERBS["up"](site))

            def press(at: int, _what: str) -> None:
                if at == point:
                    task.cancel()

            site.ground.client.at = press  # type: ignore[attr-defined]  # it is a FakeGround
            await asyncio.wait([task])
            self.tally.interrupts += task.cancelled()
            if not task.cancelled() and not isinstance(task.exception(), HelioError | None):
                await task

        self.runner.run(pressed())

    @rule(owner=WHOSE, node=st.sampled_from(NODES), how=st.sampled_from(["kill_ray", "break_node", "lose"]))
    def breaks(self, owner: Owner, node: str, how: str) -> None:
        async def breaks() -> None:
            getattr(self.place, how)(owner, node)

        self.runner.run(breaks())

    @rule(faults=FAULTS)
    def goes_wrong(self, faults: dict[str, Any]) -> None:
        self.place.faults = Faults(**{"latency": 0.01, **faults})

    @rule(seconds=st.sampled_from([0.5, 5.0, 60.0, YOUNG]))
    def time_passes(self, seconds: float) -> None:
        self.runner.run(asyncio.sleep(seconds))

    @invariant()
    def nobody_touches_what_is_anothers(self) -> None:
        strange = [touch for touch in self.place.touches if touch.owner in BESIDE]
        assert strange == [], "a cluster that nobody works on was changed"
        for touch in self.place.touches:
            who = touch.by.rpartition("-")[0]
            assert who == touch.owner.principal, f"{who} changed {touch.owner}"
        self.place.touches.clear()
        if hasattr(self, "beside"):
            assert self._beside() == self.beside

    def teardown(self) -> None:
        try:
            if hasattr(self, "beside"):
                self.runner.run(self._ends_well())
        finally:
            self.runner.close()

    async def _ends_well(self) -> None:
        """The faults are over, and enough time has gone by that nobody elsewhere is still at it."""
        self.place.faults = Faults(latency=0.01)
        await asyncio.sleep(YOUNG + 60)
        for owner in OWNERS:
            await clean(self._site(owner), patience=PATIENCE)
            self._no_orphans(owner)
            await self._status_is_true(owner)
        for owner in OWNERS:
            seen = await up(self._site(owner), patience=PATIENCE)
            assert seen.healthy, "nothing is in its way any more"
            await down(self._site(owner), patience=PATIENCE)
            assert self.place.names(owner) == []
        self.nobody_touches_by_now()

    def nobody_touches_by_now(self) -> None:
        assert all(touch.owner in OWNERS for touch in self.place.touches)
        assert [thing.id for thing in self.place.existing() if thing.owner in BESIDE] == self.beside

    def _no_orphans(self, owner: Owner) -> None:
        """What is there belongs to a cluster that stands, or is data that was to be kept; no run is open."""
        now = self.place.clock.now()
        things = self.place.existing(owner)
        standing = standing_of([self.place.ref(thing) for thing in things])
        orphans = [thing.name for thing in things if standing not in (Standing.UP, Standing.DATA)]
        orphans += [thing.name for thing in things if thing.gone_at is not None and now > thing.gone_at]
        assert orphans == []
        assert [intent for intent in self.place.intents.values() if owner.owns(intent.owner)] == []

    async def _status_is_true(self, owner: Owner) -> None:
        """Alive is what runs and is in Ray's list: nothing else is said to be."""
        said = {
            node.name for node in (await status(self._site(owner))).nodes if node.state is NodeState.ALIVE
        }
        up_now = self.place.head_answers(owner)
        listed = {node.id for node in self.place.ray_nodes(owner) if node.alive} if up_now else set()
        sound = [t for t in self.place.existing(owner) if t.state(self.place.clock.now()) is State.READY]
        true = {thing.resource.key for thing in sound if thing.ray is not None and thing.ray.id in listed}
        assert said == true
