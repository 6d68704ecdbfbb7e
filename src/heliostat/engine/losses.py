"""What would be lost, said before it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from heliostat.core.errors import HelioError
from heliostat.core.job import Job
from heliostat.core.plan import Cost, Plan
from heliostat.core.resource import NODE, Ref, State
from heliostat.core.status import alive_by_name
from heliostat.engine.apply import subject
from heliostat.engine.look import Look, head_of, ray_of
from heliostat.engine.ports import Site

ASKING = 3.0  # seconds that a head may take to name its jobs


async def running_jobs(site: Site, refs: Sequence[Ref]) -> tuple[Job, ...] | None:
    """Jobs that have not ended; None when a head is there but cannot say."""
    head = head_of(refs)
    if head is None or head.state is not State.READY:
        return ()
    try:
        async with asyncio.timeout(ASKING), ray_of(site, head) as api:
            return tuple(job for job in await api.jobs() if not job.state.final)
    except (HelioError, TimeoutError):
        return None


def job_lines(jobs: Sequence[Job] | None) -> list[str]:
    """Each job that would die, by name."""
    if jobs is None:
        return ["jobs may be running: the head does not answer, so nobody knows"]
    return [f"job {job.id} is {job.state}: it would die" for job in jobs]


def lost_by(plan: Plan, seen: Look) -> list[str]:
    """What lives and would restart, be replaced or be deleted by this plan."""
    lines = []
    for change in plan.change:
        if change.cost is Cost.LIVE or not _lives(change.found, seen):
            continue
        word = "Ray restarts there" if change.cost is Cost.RESTART else "is replaced"
        why = f" ({change.why})" if change.why else ""
        lines.append(f"{subject(change.found.kind, change.found.key)}: {word}{why}")
    lines += [f"{subject(r.kind, r.key)}: is deleted" for r in plan.delete if r.data or _lives(r, seen)]
    return lines


def _lives(ref: Ref, seen: Look) -> bool:
    """Whether it is a node that does something, as far as anybody knows; other things hold no work."""
    if ref.kind != NODE:
        return ref.data
    if ref.state is State.BROKEN or seen.head is None:  # without a head no node has anything to do
        return False
    return seen.ray is None or ref.key in alive_by_name(seen.ray)


async def lost_with(site: Site, refs: Sequence[Ref], *, keep_data: bool) -> list[str]:
    """What goes with the whole cluster and cannot be had again."""
    lines = [
        f"{subject(ref.kind, ref.key)} and what it holds: --keep-data leaves it"
        for ref in refs
        if ref.data and not keep_data
    ]
    return [*lines, *job_lines(await running_jobs(site, refs))]


def price_line(plan: Plan) -> str:
    """What the new things cost, where that is known."""
    total = sum(resource.price or 0.0 for resource in plan.create)
    return f"{total:.2f} USD an hour for {len(plan.create)} new resources" if total else ""
