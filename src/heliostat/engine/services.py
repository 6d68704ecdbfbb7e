"""What stands beside Ray: waiting until it does what it is there for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from heliostat.core.errors import TimedOut, Unavailable
from heliostat.core.event import Step
from heliostat.core.resource import SERVICE, Ref, State
from heliostat.engine.look import listing
from heliostat.engine.patience import Pace, Patience
from heliostat.engine.ports import Services, Site


async def settled(site: Site, patience: Patience) -> None:
    """Until the place says of every service that it is ready."""
    clock, pace = site.clock, Pace(first=0.3, most=2.0)
    deadline = clock.monotonic() + patience.join
    told: set[str] = set()
    while True:
        services = services_of(await listing(site, patience=patience.answer))
        for ref in services:
            if ref.state is State.BROKEN:
                raise Unavailable(f"{ref.key} does not run", why=ref.facts.get("why", ""))
            if ref.state is State.READY and not _complains(ref) and ref.key not in told:
                told.add(ref.key)
                site.emit(Step(subject=ref.key, state="ready", done=True))
        waiting = [ref.key for ref in services if ref.state is State.PENDING or _complains(ref)]
        if not waiting:
            return
        if clock.monotonic() >= deadline:
            names = ", ".join(waiting)
            raise TimedOut(f"{names} did not get ready within {patience.join:g} s", why="the place says so")
        await clock.wait(pace.next())


async def service(site: Site, name: str) -> Ref | None:
    """The service of that name; nothing when the cluster has none."""
    if not isinstance(site.ground, Services):
        return None
    found = services_of(await listing(site))
    return next((ref for ref in found if ref.key == name), None)


async def log_of(site: Site, name: str | None) -> bytes | None:
    """What a service wrote; nothing when that is not the name of one."""
    ref = await service(site, name) if name else None
    return await site.ground.log(ref) if ref and isinstance(site.ground, Services) else None


def page_of(site: Site, ref: Ref, head: Ref) -> AbstractAsyncContextManager[str]:
    """Where its page is, as the head sees it."""
    return (
        site.ground.page(ref, head)
        if isinstance(site.ground, Services)
        else nullcontext(ref.facts["address"])
    )


async def login_of(site: Site, ref: Ref) -> str | None:
    return await site.ground.login(ref) if isinstance(site.ground, Services) else None


def services_of(refs: Iterable[Ref]) -> Sequence[Ref]:
    return [ref for ref in refs if ref.kind == SERVICE]


def _complains(ref: Ref) -> bool:
    """Whether it runs, and cannot do what it is there for."""
    return ref.facts.get("health") == "unhealthy"


def service_troubles(refs: Iterable[Ref]) -> Iterator[str]:
    """Whole sentences about what does not do what it is there for."""
    for ref in services_of(refs):
        if ref.state is State.BROKEN:
            yield f"{ref.key} does not run: `helio up` repairs it."
        elif _complains(ref):
            yield f"{ref.key} runs, but says that something is wrong (a node that it looks for is away?)."
