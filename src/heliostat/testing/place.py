"""The truth of a fake place: what exists, whoever looks. It outlives every client that works on it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from heliostat.core.intent import Intent
from heliostat.core.job import JobRequest, RayNode
from heliostat.core.owner import Owner
from heliostat.core.resource import HEAD, NODE, Ref, Resource, State
from heliostat.testing.clock import VirtualClock


@dataclass
class Faults:
    """What goes wrong there, and how slowly things go. Change it at any time."""

    latency: float = 0.02  # seconds of every request
    lag: float = 0.0  # a listing misses what was made, and shows what went, for so long
    start: float = 2.0  # from creation until the node is in Ray's list
    teardown: float = 0.3  # from a deletion until it is gone
    detect: float = 5.0  # until Ray notices that a node died
    throttle: int = 0  # every so many requests, one is refused for now
    capacity: int | None = None  # so many nodes and no more
    quota: dict[str, int] = field(default_factory=dict)  # so many of a kind, and no more
    never_joins: set[str] = field(default_factory=set)  # nodes that exist, but Ray never lists
    breaks: dict[str, float] = field(default_factory=dict)  # a node breaks so long after it was made
    stuck: set[str] = field(default_factory=set)  # kind/key that cannot be deleted
    leaks: bool = False  # a buggy listing that shows what belongs to others
    deaf: bool = False  # heads do not answer
    rejoins: bool = True  # workers find their way to a new head
    cuts: list[int] = field(default_factory=list)  # a followed log breaks off at these bytes, once each


@dataclass(eq=False)
class Thing:
    """One resource that exists."""

    owner: Owner
    resource: Resource
    id: str
    created: float
    broken_at: float | None = None
    why: str = ""
    gone_at: float | None = None  # being deleted until then
    ray: Incarnation | None = None

    @property
    def name(self) -> str:
        return self.resource.name

    def exists(self, now: float) -> bool:
        return self.gone_at is None or now < self.gone_at

    def listed(self, now: float, lag: float) -> bool:
        return now >= self.created + lag and (self.gone_at is None or now < self.gone_at + lag)

    def state(self, now: float) -> State:
        if self.gone_at is not None:
            return State.LEAVING
        broken = self.broken_at is not None and now >= self.broken_at
        return State.BROKEN if broken else State.READY


@dataclass(eq=False)
class Incarnation:
    """One start of Ray on a node: Ray gives each its own id."""

    id: str
    name: str
    owner: Owner
    joins: float  # infinite: never
    died: float | None = None


@dataclass(frozen=True)
class Script:
    """What a job does: `output` comes evenly over `seconds`, then it ends with `code`."""

    output: bytes = b""
    seconds: float = 0.2
    code: int = 0


@dataclass(eq=False)
class FakeJob:
    request: JobRequest
    script: Script
    begins: float  # infinite: it waits for resources
    head: str  # the incarnation of the head that runs it
    stopped: float | None = None
    lost: float | None = None


@dataclass(frozen=True)
class Touch:
    """One change that somebody made."""

    verb: str
    owner: Owner
    name: str
    by: str


class FakePlace:
    """A place with its faults, its resources, and the Ray clusters on them."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self.clock = VirtualClock()
        self.homes = "/fake"  # a real folder where shells reach nodes
        self.things: list[Thing] = []
        self.incarnations: list[Incarnation] = []
        self.jobs: dict[Owner, dict[str, FakeJob]] = {}
        self.scripts: dict[str, Script] = {}  # by a part of the entrypoint; the first that matches
        self.touches: list[Touch] = []
        self.requests = 0
        self.intents: dict[str, Intent] = {}  # the journal on the client's disk: it outlives clients too
        self.holds: dict[Owner, str] = {}
        self._ids = itertools.count(1)

    def next_number(self) -> int:
        """For names that must differ."""
        return next(self._ids)

    def existing(self, owner: Owner | None = None) -> tuple[Thing, ...]:
        """What really exists, listed or not."""
        now = self.clock.now()
        return tuple(t for t in self.things if t.exists(now) and (owner is None or owner.owns(t.owner)))

    def names(self, owner: Owner | None = None) -> list[str]:
        """The names of what really exists, in order."""
        return sorted(thing.name for thing in self.existing(owner))

    def thing(self, owner: Owner, name: str) -> Thing | None:
        return next((t for t in self.existing(owner) if t.name == name), None)

    def listed(self, owner: Owner) -> Iterator[Thing]:
        now, lag = self.clock.now(), self.faults.lag
        for thing in self.things:
            if (self.faults.leaks or owner.owns(thing.owner)) and thing.listed(now, lag):
                yield thing

    def make(self, owner: Owner, resource: Resource) -> Thing:
        """A new thing; a node's Ray starts at once."""
        now = self.clock.now()
        number = next(self._ids)
        thing = Thing(owner=owner, resource=resource, id=f"{resource.kind}-{number}", created=now)
        self.things = [t for t in self.things if t.listed(now, self.faults.lag) or t.exists(now)]
        self.things.append(thing)
        if resource.kind == NODE:
            self.start_ray(thing)
            if resource.key in self.faults.breaks:
                thing.broken_at = now + self.faults.breaks[resource.key]
                thing.why = "raylet: cannot bind, the port is taken"
        return thing

    def start_ray(self, thing: Thing) -> None:
        """Start Ray on a node, ending what ran there. A new head is joined by the workers that live."""
        now, faults = self.clock.now(), self.faults
        self.end_ray(thing)
        never = thing.resource.key in faults.never_joins
        joins = float("inf") if never else now + faults.start
        ray = Incarnation(f"ray-{next(self._ids)}", thing.resource.key, thing.owner, joins)
        thing.ray = ray
        self.incarnations.append(ray)
        if thing.resource.key == HEAD:
            for other in self.existing(thing.owner):
                if other.ray is not None and other.ray is not ray and other.ray.died is None:
                    comes = faults.rejoins and other.resource.key not in faults.never_joins
                    other.ray.joins = joins + 0.5 if comes else float("inf")

    def end_ray(self, thing: Thing, died: float | None = None) -> None:
        """Ray on a node ends; with the head, its running jobs are lost."""
        if thing.ray is None or thing.ray.died is not None:
            return
        thing.ray.died = self.clock.now() if died is None else died
        if thing.resource.key == HEAD:
            for job in self.jobs.get(thing.owner, {}).values():
                if job.head == thing.ray.id and job.lost is None:
                    job.lost = thing.ray.died

    def remove(self, thing: Thing) -> None:
        """Begin to delete a thing."""
        if thing.gone_at is None:
            self.end_ray(thing)
            thing.gone_at = self.clock.now() + self.faults.teardown
            if thing.name == f"{NODE}/{HEAD}":
                self.jobs.pop(thing.owner, None)

    def kill_ray(self, owner: Owner, node: str) -> None:
        """kill -9 of a node's raylet: the place lists the node, Ray soon says that it is dead."""
        thing = self.thing(owner, f"{NODE}/{node}")
        if thing is not None:
            self.end_ray(thing)

    def break_node(self, owner: Owner, node: str, why: str = "its processes are gone") -> None:
        """A node whose processes are gone: the place itself says so."""
        thing = self.thing(owner, f"{NODE}/{node}")
        if thing is not None:
            thing.broken_at, thing.why = self.clock.now(), why
            self.end_ray(thing)

    def lose(self, owner: Owner, node: str) -> None:
        """A node that vanishes, as a preempted machine does."""
        thing = self.thing(owner, f"{NODE}/{node}")
        if thing is not None:
            self.end_ray(thing)
            self.things.remove(thing)

    def head_answers(self, owner: Owner) -> bool:
        head = self.thing(owner, f"{NODE}/{HEAD}")
        if head is None or head.ray is None or self.faults.deaf or head.gone_at is not None:
            return False
        now = self.clock.now()
        return head.ray.died is None and now >= head.ray.joins and head.state(now) is State.READY

    def ray_nodes(self, owner: Owner) -> tuple[RayNode, ...]:
        """Ray's own list: it knows nothing from before its head, and notices a death a little later."""
        head = self.thing(owner, f"{NODE}/{HEAD}")
        if head is None or head.ray is None:
            return ()
        now, result = self.clock.now(), []
        for ray in self.incarnations:
            if ray.owner != owner or now < ray.joins or (ray.died is not None and ray.died < head.ray.joins):
                continue
            noticed = None if ray.died is None else ray.died + self.faults.detect
            alive = noticed is None or now < noticed
            total = self._total(owner, ray.name)
            result.append(
                RayNode(
                    id=ray.id,
                    name=ray.name,
                    alive=alive,
                    head=ray.name == HEAD,
                    address="127.0.0.1",
                    total=total,
                    reason="" if alive else "it stopped sending heartbeats",
                    ended=None if alive else noticed,
                )
            )
        return tuple(result)

    def _total(self, owner: Owner, node: str) -> dict[str, float]:
        thing = self.thing(owner, f"{NODE}/{node}")
        return dict(thing.resource.body.get("total", {})) if thing else {}

    def ref(self, thing: Thing) -> Ref:
        """A thing as the place lists it."""
        now, resource = self.clock.now(), thing.resource
        return Ref(
            kind=resource.kind,
            key=resource.key,
            id=thing.id,
            owner=thing.owner,
            state=thing.state(now),
            needs=resource.needs,
            digests=resource.digests,
            run=resource.run,
            created=thing.created,
            data=resource.data,
            removal=f"fake delete {thing.id}",
            facts=self._facts(thing, now),
        )

    def _facts(self, thing: Thing, now: float) -> dict[str, str]:
        if thing.resource.kind != NODE:
            return {}
        home = f"{self.homes}/{thing.owner.id}/{thing.resource.key}"
        facts = {"home": home, "python": sys.executable, "group": str(thing.resource.body["group"])}
        facts["log"] = f"{home}/boot.log"
        if thing.resource.key == HEAD:
            facts |= {"dashboard": "127.0.0.1:8265", "gcs": "127.0.0.1:6379", "token_path": f"{home}/token"}
        if thing.state(now) is State.BROKEN:
            facts["why"] = thing.why
        return facts
