"""A whole place to test on: a stateful ground with faults, a Ray on it, a clock that needs no waiting.

>>> from heliostat.core.spec import Count, Group, Spec
>>> from heliostat.engine.lifecycle import up
>>> site = fake_site(Spec(cluster="demo", workers=(Group(name="cpu", count=Count(low=2, high=2)),)))
>>> [f"{node.name} {node.state}" for node in run(up(site)).nodes]
['head alive', 'cpu-1 alive', 'cpu-2 alive']
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from heliostat.core.errors import Conflict, Denied, HelioError, NoCapacity, Quota, Unavailable
from heliostat.core.event import Event
from heliostat.core.names import nodes_of
from heliostat.core.owner import Owner
from heliostat.core.plan import Cost, cost_of
from heliostat.core.resource import HEAD, NODE, Digests, Outcome, Ref, Resource, State
from heliostat.core.spec import Group, Node, Spec
from heliostat.engine.ports import Ask, Emit, Shell, Site
from heliostat.testing.client import Client, ClientClock, Crash, FakeJournal
from heliostat.testing.clock import VirtualClock, VirtualLoop, run
from heliostat.testing.place import FakePlace, Faults, Script, Thing, Touch
from heliostat.testing.ray import FakeConnect, FakeRay

__all__ = [
    "Client",
    "ClientClock",
    "Crash",
    "FakeConnect",
    "FakeGround",
    "FakeJournal",
    "FakePlace",
    "FakeRay",
    "Faults",
    "Script",
    "Thing",
    "Touch",
    "VirtualClock",
    "VirtualLoop",
    "fake_site",
    "run",
    "yes",
]

NET = "network/main"
ADDRESS = f"address/{HEAD}"


class FakeGround:
    """One client's view of a fake place: a network, an address for the head, volumes, nodes."""

    def __init__(
        self, place: FakePlace, client: Client | None = None, shells: Callable[[Ref], Shell] | None = None
    ) -> None:
        self.place = place
        self.client = client or Client(place)
        self._shells = shells

    @property
    def lag(self) -> float:
        """The Lags power."""
        return self.place.faults.lag

    @property
    def kinds(self) -> tuple[str, ...]:
        """The Kinds power."""
        return ("network", "address", "volume", NODE)

    async def principal(self, spec: Spec) -> str:
        """The Identity port."""
        del spec
        return "somebody"

    def want(self, spec: Spec) -> tuple[Resource, ...]:
        """Pure."""
        volumes = [
            Resource(
                kind="volume", key=name, digests=Digests(replace=_digest(name)), data=True, text="a volume"
            )
            for name in spec.volumes
        ]
        return (
            Resource(kind="network", key="main", digests=Digests(live=_digest(spec.tags)), text="a network"),
            Resource(kind="address", key=HEAD, needs=(NET,), text="an address"),
            *volumes,
            *(_node(spec, *each, [v.name for v in volumes]) for each in nodes_of(spec)),
        )

    async def find(self, owner: Owner) -> tuple[Ref, ...]:
        return await self.client.call(
            "find", lambda: tuple(self.place.ref(t) for t in self.place.listed(owner))
        )

    async def create(self, owner: Owner, wanted: Sequence[Resource]) -> AsyncIterator[Outcome]:
        for resource in wanted:
            await self._wait_until_gone(owner, resource.name)
            yield await self._attempt("create", resource.name, partial(self._create, owner, resource))

    async def delete(self, refs: Sequence[Ref]) -> AsyncIterator[Outcome]:
        for ref in refs:
            yield await self._attempt("delete", ref.name, partial(self._delete, ref))

    @asynccontextmanager
    async def shell(self, node: Ref) -> AsyncIterator[Shell]:
        thing = self.place.thing(node.owner, node.name)
        if thing is None or thing.state(self.place.clock.now()) is not State.READY:
            raise Unavailable(f"cannot reach {node.key}", why="no route to host")
        if self._shells is None:
            raise Unavailable(f"cannot reach {node.key}", why="this fake was made without shells")
        yield self._shells(node)

    async def _wait_until_gone(self, owner: Owner, name: str) -> None:
        thing = self.place.thing(owner, name)
        if thing is not None and thing.gone_at is not None:
            await asyncio.sleep(thing.gone_at - self.place.clock.now())

    async def _attempt(self, verb: str, name: str, deed: Callable[[], Ref]) -> Outcome:
        try:
            return Outcome(name=name, ref=await self.client.call(f"{verb} {name}", deed))
        except HelioError as error:
            return Outcome(name=name, error=error)

    def _create(self, owner: Owner, resource: Resource) -> Ref:
        for need in resource.needs:
            if self.place.thing(owner, need) is None:
                raise Conflict(f"{resource.name} needs {need}, which is not there")
        thing = self.place.thing(owner, resource.name)
        if thing is None:
            self._refuse(resource)
            self._touch("create", owner, resource.name)
            return self.place.ref(self.place.make(owner, resource))
        cost = cost_of(resource, self.place.ref(thing))
        if cost is Cost.REPLACE:
            raise Conflict(f"there is another {resource.name}", why="it must be deleted first")
        if cost is not None or resource.again:
            self._touch("change", owner, resource.name)
            run_before = thing.resource.run
            thing.resource = replace(resource, run=run_before, again=False)
            if cost is Cost.RESTART or resource.again:
                self.place.start_ray(thing)
        return self.place.ref(thing)

    def _refuse(self, resource: Resource) -> None:
        """Limits of the place."""
        faults, everything = self.place.faults, self.place.existing()
        count = sum(thing.resource.kind == resource.kind for thing in everything)
        if resource.kind == NODE and faults.capacity is not None and count >= faults.capacity:
            raise NoCapacity("no machine is free", why=f"all {faults.capacity} are taken")
        if resource.kind in faults.quota and count >= faults.quota[resource.kind]:
            raise Quota(f"{faults.quota[resource.kind]} {resource.kind}s are the limit")

    def _delete(self, ref: Ref) -> Ref:
        if ref.name in self.place.faults.stuck:
            raise Denied(f"{ref.name} may not be deleted")
        thing = next((t for t in self.place.existing() if t.id == ref.id), None)
        if thing is None or thing.gone_at is not None:
            return ref
        for other in self.place.existing(thing.owner):
            if thing.name in other.resource.needs and other.gone_at is None:
                raise Conflict(f"{thing.name} is in use by {other.name}")
        self._touch("delete", thing.owner, thing.name)
        self.place.remove(thing)
        return ref

    def _touch(self, verb: str, owner: Owner, name: str) -> None:
        self.place.touches.append(Touch(verb, owner, name, self.client.name))


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def _node(spec: Spec, key: str, node: Node, group: Group | None, volumes: Sequence[str]) -> Resource:
    total = {"CPU": node.cpus or 2.0, "GPU": node.gpus.count if node.gpus else 0.0, **node.resources}
    return Resource(
        kind=NODE,
        key=key,
        needs=(ADDRESS, *volumes) if key == HEAD else (NET,),
        digests=Digests(
            live=_digest(sorted(spec.tags.items())),
            restart=_digest(spec.ray, spec.python, sorted(total.items()), node.start_args),
            replace=_digest(node.machine, node.memory, node.disk, list(volumes) if key == HEAD else []),
        ),
        text=f"{key}: {total['CPU']:g} CPUs",
        price=node.price,
        body={"group": group.name if group else HEAD, "total": total},
    )


def yes(question: str, *, details: Sequence[str] = (), default: bool = False) -> bool:
    """An Ask that agrees to everything."""
    del question, details, default
    return True


def _quiet(_event: Event) -> None:
    """An Emit that tells nobody."""


def fake_site(
    spec: Spec,
    *,
    place: FakePlace | None = None,
    client: Client | None = None,
    principal: str = "somebody",
    emit: Emit = _quiet,
    ask: Ask = yes,
    shells: Callable[[Ref], Shell] | None = None,
) -> Site:
    """A Site on a fake place, a new one or one that others use too; `client` is the process at work."""
    place = place or (client.place if client else FakePlace())
    client = client or Client(place)
    return Site(
        ground=FakeGround(place, client, shells),
        owner=Owner(principal, spec.cluster),
        spec=spec,
        emit=emit,
        ask=ask,
        journal=FakeJournal(client),
        connect=FakeConnect(client),
        clock=ClientClock(client),
    )
