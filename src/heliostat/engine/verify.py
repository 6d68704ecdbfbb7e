"""Up means up: every wanted node alive in Ray's own list, and the authenticated Jobs API answering."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Self

from heliostat.core.errors import HelioError, NoCapacity, Quota, TimedOut, Unavailable
from heliostat.core.event import Step
from heliostat.core.job import RayNode
from heliostat.core.names import enough, group_of
from heliostat.core.resource import Ref, State
from heliostat.core.status import alive_by_name
from heliostat.engine.look import head_of, listing, nodes_of
from heliostat.engine.patience import Pace, Patience, lag_of
from heliostat.engine.ports import RayApi, Site

PROBE = "helio-probe"  # a job id that nobody has: asking for it costs nothing
CALL = 5.0  # seconds for one call; a head that takes longer is asked again
HOLD_ON = 2.0  # seconds that a connection may fail before it is opened anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a wait ended, by node names."""

    alive: Mapping[str, RayNode] = field(default_factory=dict)
    failed: Mapping[str, HelioError] = field(default_factory=dict)  # these never will
    overdue: tuple[str, ...] = ()  # no sign of life in the time they had
    waiting: tuple[str, ...] = ()  # the wait ended before their time was over
    refs: tuple[Ref, ...] = ()
    nodes: tuple[RayNode, ...] = ()
    trouble: str = ""  # the last thing that Ray, or the way to it, said

    @property
    def absent(self) -> tuple[str, ...]:
        return (*self.failed, *self.overdue, *self.waiting)


class Line:
    """The line to Ray while it starts: refused connections are no error, and it is opened again as needed."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._stack = AsyncExitStack()
        self._api: RayApi | None = None
        self._bad_since: float | None = None
        self.trouble = "the head does not answer yet"
        self.answered_at: float | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def nodes(self, head: Ref | None, *, probe: Collection[str]) -> tuple[RayNode, ...] | None:
        """Ray's list; once it holds all of `probe`, only with an authenticated Jobs API.

        A head that still starts is asked as soon as its port is known: it answers before its start has ended.
        """
        ready = head is not None and head.state is State.READY
        if head is None or not (ready or (head.state is State.PENDING and "dashboard" in head.facts)):
            return None
        now = self._site.clock.monotonic()
        try:
            async with asyncio.timeout(CALL):
                if self._api is None:
                    self._api = await self._stack.enter_async_context(
                        self._site.connect(self._site.ground, head)
                    )
                nodes = await self._api.nodes()
                if set(probe) <= {node.name for node in nodes if node.alive}:
                    await self._api.jobs(PROBE)
        except (HelioError, TimeoutError) as error:
            if ready and not isinstance(error, Unavailable | TimeoutError):
                raise
            self.trouble = error.what if isinstance(error, HelioError) else "the head is slow to answer"
            await self._drop(now)
            return None
        self._bad_since = None
        self.answered_at = self.answered_at or now
        self.trouble = ""
        return nodes

    async def _drop(self, now: float) -> None:
        """A connection that keeps failing may lead to what is no longer there."""
        self._bad_since = self._bad_since or now
        if self._api is not None and now - self._bad_since >= HOLD_ON:
            self._api, self._bad_since = None, None
            await self._stack.aclose()
            self._stack = AsyncExitStack()


class Watch:
    """Waits for nodes: asks Ray often and the place seldom."""

    def __init__(
        self,
        site: Site,
        patience: Patience,
        *,
        wanted: Iterable[str],
        refs: Iterable[Ref],
        stale: Iterable[str] = (),
        allowance: Mapping[str, float] | None = None,
        failed: Mapping[str, HelioError] | None = None,
        leaving: Iterable[str] = (),
    ) -> None:
        self._site = site
        self._patience = patience
        self._wanted = tuple(wanted)
        self._refs = tuple(refs)
        self._stale = frozenset(stale)  # Ray ids of what was replaced or restarted just now
        self._allowance = dict(allowance or {})  # seconds from Ray's first answer, for nodes of an earlier up
        self._failed = {n: e for n, e in (failed or {}).items() if n in self._wanted}
        self._leaving = frozenset(leaving)  # removed for good: Ray must stop counting on them too
        self._leave_by: float | None = None
        self._alive: dict[str, RayNode] = {}
        self._nodes: tuple[RayNode, ...] = ()
        self._overdue: set[str] = set()
        self._unlisted: Counter[str] = Counter()
        self._told: set[str] = set()
        self._busy: set[str] = set()  # at work on something before Ray starts there

    async def wait(self) -> Verdict:
        """Until all are alive, or so many failed that it cannot be enough, or the time is over."""
        clock, pace = self._site.clock, Pace(first=0.05, most=0.3, growth=1.2)
        deadline = clock.monotonic() + self._patience.join
        look_next = clock.monotonic() + (0.5 if head_of(self._refs) else 0.0)
        async with Line(self._site) as line:
            while True:
                began = clock.monotonic()
                self._hear(await line.nodes(head_of(self._refs), probe=self._expected()))
                cost = clock.monotonic() - began
                settled = line.trouble == "" and self._settled()
                if settled and self._head_ready():
                    break
                if settled or clock.monotonic() >= look_next:
                    began = clock.monotonic()
                    self._see(await listing(self._site, patience=self._patience.answer))
                    if self._busy:  # a setup has a limit of its own, on the node
                        deadline = began + self._patience.join
                    look_next = clock.monotonic() + max(1.0, 10 * (clock.monotonic() - began))
                self._count(line.answered_at, deadline)
                if self._hopeless() or clock.monotonic() >= deadline:
                    break
                await clock.wait(pace.next(cost))
            if self._alive.keys() - nodes_of(self._refs).keys():  # Ray was quicker than our last look
                self._refs = await listing(self._site, patience=self._patience.answer)
            return self._verdict(line.trouble)

    def _expected(self) -> list[str]:
        return [name for name in self._wanted if name not in self._failed and name not in self._overdue]

    def _settled(self) -> bool:
        return all(name in self._alive for name in self._expected()) and self._left()

    def _head_ready(self) -> bool:
        """Whether the place says so, too: until then it takes no orders."""
        head = head_of(self._refs)
        return head is not None and head.state is State.READY

    def _left(self) -> bool:
        """What was removed is out of Ray's list, or had its time: Ray's word on it is no reason to fail."""
        now = self._site.clock.monotonic()
        if self._leave_by is None:
            self._leave_by = now + self._patience.leave
        return now >= self._leave_by or not self._leaving & alive_by_name(self._nodes).keys()

    def _hopeless(self) -> bool:
        lost = {*self._failed, *self._overdue}
        return bool(short_groups(self._site, self._wanted, [n for n in self._wanted if n not in lost]))

    def _hear(self, nodes: tuple[RayNode, ...] | None) -> None:
        """Ray's word. Only its latest counts."""
        if nodes is None:
            self._alive = {}
            return
        self._nodes = nodes
        alive = alive_by_name(nodes, self._stale)
        self._alive = {n: alive[n] for n in self._wanted if n in alive and n not in self._failed}
        for name in self._alive.keys() - self._told:
            self._told.add(name)
            self._site.emit(Step(subject=name, state="alive", done=True))

    def _see(self, refs: tuple[Ref, ...]) -> None:
        """The place's word: what is broken or gone will not come."""
        self._refs = refs
        nodes = nodes_of(refs)
        for name in self._expected():
            ref = nodes.get(name)
            self._unlisted[name] = 0 if ref else self._unlisted[name] + 1
            self._note_work(name, ref.facts.get("doing", "") if ref else "")
            if ref is not None and ref.state is State.BROKEN:
                self._fail(name, did_not_start(ref))
            elif ref is None and self._unlisted[name] > 1 + lag_of(self._site.ground):
                why = "the place lists it no more"
                self._fail(name, Unavailable(f"{name} is gone", why=why, fix="run `helio up` again"))

    def _note_work(self, name: str, doing: str) -> None:
        if bool(doing) != (name in self._busy):
            self._busy ^= {name}
            self._site.emit(Step(subject=name, state=doing or "starting"))

    def _fail(self, name: str, error: HelioError) -> None:
        self._failed[name] = error
        self._alive.pop(name, None)
        self._site.emit(Step(subject=name, state="failed", detail=error.why, done=True))

    def _count(self, answered_at: float | None, deadline: float) -> None:
        """Nodes of an earlier `up` have less time: they need not boot."""
        now = self._site.clock.monotonic()
        for name in self._expected():
            if name in self._alive:
                continue
            allowed = self._allowance.get(name)
            spent = answered_at is not None and allowed is not None and now >= answered_at + allowed
            if spent or now >= deadline:
                self._overdue.add(name)

    def _verdict(self, trouble: str) -> Verdict:
        waiting = tuple(name for name in self._expected() if name not in self._alive)
        return Verdict(
            alive=self._alive,
            failed=self._failed,
            overdue=tuple(name for name in self._wanted if name in self._overdue),
            waiting=waiting,
            refs=self._refs,
            nodes=self._nodes,
            trouble=trouble,
        )


def did_not_start(ref: Ref) -> Unavailable:
    """The error for a node that broke."""
    log = ref.facts.get("log")
    again = "`helio up` tries again"
    fix = f"{again}; with --keep what it made stays, and its log at {log}" if log else again
    return Unavailable(f"{ref.key} did not start", why=ref.facts.get("why") or "it broke", fix=fix)


def short_groups(site: Site, wanted: Iterable[str], good: Collection[str]) -> list[str]:
    """The groups that have less than enough nodes."""
    asked = Counter(group_of(name) for name in wanted)
    have = Counter(group_of(name) for name in good)
    return [group for group, count in asked.items() if have[group] < enough(site.spec, group, count)]


def shortfall(site: Site, wanted: Collection[str], verdict: Verdict, seconds: float) -> HelioError | None:
    """The error to raise when too few came; nothing when there are enough."""
    short = short_groups(site, wanted, verdict.alive)
    if not short:
        return None
    absent = [name for name in verdict.absent if group_of(name) in short]
    errors = {name: error for name, error in verdict.failed.items() if name in absent}
    limits = [(name, error) for name, error in errors.items() if isinstance(error, NoCapacity | Quota)]
    if limits:
        name, error = limits[0]
        return _less_than_asked(site, wanted, verdict, group_of(name), error)
    if errors:
        return next(iter(errors.values()))
    late = ", ".join(absent)
    why = verdict.trouble or "Ray does not list it"
    return TimedOut(
        f"{late} did not join within {seconds:g} s", why=why, fix="look at `helio status`, then `helio up`"
    )


def _less_than_asked(
    site: Site, wanted: Collection[str], verdict: Verdict, group: str, error: HelioError
) -> HelioError:
    asked = sum(group_of(name) == group for name in wanted)
    if asked == 1:
        return error
    lost = sum(group_of(name) == group for name in verdict.failed)
    need = enough(site.spec, group, asked)
    needed = "" if need == asked else f" ({need} are needed)"
    what = f"only {asked - lost} of {asked} {group} nodes could be had{needed}"
    why = f"{error.what}: {error.why}" if error.why else error.what
    fix = error.fix or f"ask for fewer, or accept fewer with `count: {{count: {asked}, at_least: N}}`"
    return type(error)(what, why=why, fix=fix)
