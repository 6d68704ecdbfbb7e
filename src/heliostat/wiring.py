"""The composition root: the only place that knows which class serves which name."""

from __future__ import annotations

import importlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from heliostat.core.errors import MissingPart, UsageError
from heliostat.core.owner import Owner
from heliostat.engine.ports import Ask, Connect, Emit, Ground, Identity, RayApi, Site, Tells

if TYPE_CHECKING:
    from heliostat.core.resource import Ref
    from heliostat.core.spec import Decoded


class Entry(NamedTuple):
    path: str  # module:class
    extra: str  # pip install 'heliostat[extra]'


GROUNDS: dict[str, Entry] = {
    "local": Entry("heliostat.grounds.local.ground:LocalGround", "local"),
    "ssh": Entry("heliostat.grounds.ssh.ground:SshGround", "ssh"),
    "compose": Entry("heliostat.grounds.compose.ground:ComposeGround", "compose"),
}


class Place(Ground, Identity, Protocol):
    """What every class of the table is."""


def entries() -> dict[str, Entry]:
    """The table. HELIO_GROUNDS=name=module:class,… puts other classes in: for tests, and for one's own.

    It is read from the environment only, where PYTHONPATH could do the same; never from a file.
    """
    given = os.environ.get("HELIO_GROUNDS", "")
    others = (word.partition("=") for word in given.split(",") if word)
    return GROUNDS | {name: Entry(path, name) for name, _, path in others}


def ground(name: str) -> Place:
    """Load the ground of that name, or say what to install."""
    known = entries()
    entry = known.get(name)
    if entry is None:
        raise UsageError(
            f"where: {name} is not available yet",
            why=f"this heliostat can use: {', '.join(known)}",
            fix="set `where` to one of these",
        )
    module, _, attribute = entry.path.partition(":")
    try:
        made = getattr(importlib.import_module(module), attribute)()
    except ModuleNotFoundError as error:
        raise MissingPart(
            f"{error.name} is needed for where: {name}",
            why="it is not in this Python environment",
            fix=f"pip install 'heliostat[{entry.extra}]'",
        ) from error
    return cast(Place, made)


async def site(decoded: Decoded, *, emit: Emit, ask: Ask) -> Site:
    """All that a flow on this file's cluster needs."""
    from heliostat.engine.clock import RealClock
    from heliostat.engine.home import state_dir
    from heliostat.engine.journal import FileJournal

    spec = decoded.spec
    place = ground(spec.where)
    if isinstance(place, Tells):
        place.hear(emit)
    # A ground of one's own may bring its own way to Ray, as the fake one does.
    way: Connect = getattr(place, "connect", connect)
    return Site(
        ground=place,
        owner=Owner(await place.principal(spec), spec.cluster),
        spec=spec,
        emit=emit,
        ask=ask,
        journal=FileJournal(state_dir()),
        connect=way,
        clock=RealClock(),
    )


@asynccontextmanager
async def connect(ground: Ground, head: Ref) -> AsyncIterator[RayApi]:
    """`heliostat.ray.connect`, loaded when there is a head to talk to, while other things go on."""
    import asyncio

    module = await asyncio.to_thread(importlib.import_module, "heliostat.ray.connect")
    async with module.connect(ground, head) as api:
        yield api
