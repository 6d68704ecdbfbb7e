"""Looking at the world: the place's own list, and Ray's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from heliostat.core.errors import HelioError, Unavailable
from heliostat.core.job import RayNode
from heliostat.core.owner import Owner
from heliostat.core.resource import HEAD, NODE, Outcome, Ref, State
from heliostat.engine.patience import Pace
from heliostat.engine.ports import Narrow, RayApi, Site

T = TypeVar("T")


async def listing(site: Site, owner: Owner | None = None, *, patience: float = 0.0) -> tuple[Ref, ...]:
    """What exists and is ours; whatever else a ground may list is never even seen.

    Passing trouble is retried for as long as `patience`.
    """
    owner = owner or site.owner
    pace = Pace(first=0.2, most=5.0, growth=2.0)
    deadline = site.clock.monotonic() + patience
    while True:
        try:
            found = await site.ground.find(owner)
        except HelioError as error:
            if not error.retry or site.clock.monotonic() >= deadline:
                raise
            await site.clock.wait(pace.next())
        else:
            return tuple(ref for ref in found if owner.owns(ref.owner))


async def listing_of(site: Site, keys: Sequence[str], *, patience: float) -> tuple[Ref, ...]:
    """At least these nodes, if they are there: all is listed only where they cannot be looked at alone."""
    if isinstance(site.ground, Narrow):
        found = await site.ground.find_nodes(site.owner, keys)
        refs = tuple(ref for ref in found if site.owner.owns(ref.owner))
        if set(keys) <= nodes_of(refs).keys():
            return refs
    return await listing(site, patience=patience)


def head_of(refs: Sequence[Ref]) -> Ref | None:
    """The head, if it is there at all."""
    heads = [ref for ref in refs if ref.kind == NODE and ref.key == HEAD and ref.state is not State.LEAVING]
    return min(heads, key=lambda ref: ref.state is not State.READY, default=None)


def nodes_of(refs: Sequence[Ref]) -> dict[str, Ref]:
    """What runs Ray nodes, by name."""
    return {ref.key: ref for ref in refs if ref.kind == NODE and ref.state is not State.LEAVING}


@asynccontextmanager
async def ray_of(site: Site, head: Ref) -> AsyncIterator[RayApi]:
    """Open Ray's own API at the head."""
    async with site.connect(site.ground, head) as api:
        yield api


async def ask_ray(site: Site, head: Ref, *, patience: float) -> tuple[RayNode, ...] | None:
    """Ray's own node list; nothing when it does not answer in that time."""
    pace = Pace(first=0.1, most=1.0)
    try:
        async with asyncio.timeout(patience):
            while True:
                try:
                    async with ray_of(site, head) as api:
                        return await api.nodes()
                except Unavailable:
                    await site.clock.wait(pace.next())
    except TimeoutError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The world at one moment."""

    refs: tuple[Ref, ...]
    ray: tuple[RayNode, ...] | None = None  # None: there is no head, or it does not answer

    @property
    def head(self) -> Ref | None:
        return head_of(self.refs)

    @property
    def nodes(self) -> dict[str, Ref]:
        return nodes_of(self.refs)


async def look(site: Site, *, patience: float) -> Look:
    """The place's list and, where a head is ready, Ray's."""
    refs = await listing(site, patience=patience)
    head = head_of(refs)
    if head is None or head.state is not State.READY:
        return Look(refs=refs)
    return Look(refs=refs, ray=await ask_ray(site, head, patience=patience))


@asynccontextmanager
async def closing(stream: AsyncIterator[Outcome]) -> AsyncIterator[AsyncIterator[Outcome]]:
    """Close a ground's stream as soon as it is left: its clean-up must not wait for the collector."""
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)  # async generators have it, plain iterators need none
        if close is not None:
            await close()
