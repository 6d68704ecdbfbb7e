"""Jobs of a cluster that is up: list, follow, stop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from heliostat.core.errors import HelioError, JobLost, Unavailable, UsageError
from heliostat.core.event import Level, Note, Output
from heliostat.core.feasible import SETTING_UP, waits_for
from heliostat.core.job import Job, JobRequest, JobState
from heliostat.engine.look import listing, ray_of
from heliostat.engine.nodes import head
from heliostat.engine.patience import PATIENCE, Pace, Patience
from heliostat.engine.ports import RayApi, Site

AWAY = 150.0  # seconds until a head that went away counts as lost
USUAL = 15.0  # seconds that a process and its environment may take without a word
T = TypeVar("T")
QUIET = 2.0  # seconds that a job may take to start before anybody is told why it has not


@asynccontextmanager
async def reached(site: Site, *, patience: Patience = PATIENCE) -> AsyncIterator[RayApi]:
    """The API of the cluster's head, which must be up."""
    async with ray_of(site, await head(site, patience=patience)) as api:
        yield api


async def jobs(site: Site) -> tuple[Job, ...]:
    """All jobs that the cluster knows, oldest first."""
    async with reached(site) as api:
        return await api.jobs()


async def chosen(api: RayApi, job_id: str | None) -> Job:
    """The job of that id or of an id that begins so; without one, the latest."""
    if job_id and (exact := await patiently(lambda: api.jobs(job_id))):
        return exact[0]
    known = {job.id: job for job in await patiently(api.jobs)}
    if not known:
        raise UsageError("no job was run on this cluster yet", fix="helio run FILE")
    if job_id is None:
        return list(known.values())[-1]
    fits = [job for key, job in known.items() if key.startswith(job_id)]
    if len(fits) == 1:
        return fits[0]
    import difflib

    near = [job.id for job in fits] or difflib.get_close_matches(job_id, known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`helio jobs` lists them"
    raise UsageError(f"no job {job_id} on this cluster" if not fits else f"{job_id} fits more than one job",
                     fix=hint)  # fmt: skip


async def logs(site: Site, job_id: str | None, *, live: bool) -> Job:
    """What a job wrote, from its first byte; `live`: on to its end."""
    async with reached(site) as api:
        job = await chosen(api, job_id)
        if live:
            return await to_its_end(site, api, job.id)
        await Reader(site, job.id).read(api, live=False)
        return job


async def stop(site: Site, ids: Sequence[str], *, everything: bool = False) -> tuple[Job, ...]:
    """End jobs in any state; without an id, the only one that has not ended."""
    async with reached(site) as api:
        going = [job for job in await api.jobs() if not job.state.final]
        if ids:
            asked = [await chosen(api, job_id) for job_id in ids]
        elif everything or len(going) == 1:
            asked = going
        elif not going:
            raise UsageError("no job is running or waiting", fix="`helio jobs` lists those that ended")
        else:
            names = ", ".join(job.id for job in going)
            raise UsageError(f"which one? {len(going)} jobs have not ended: {names}", fix="name it, or --all")
        return tuple([await api.stop(job.id) for job in asked])


class Reader:
    """Passes on a job's output, every byte once and in order, over as many connections as it takes."""

    def __init__(self, site: Site, job_id: str, heard: Callable[[], object] | None = None) -> None:
        self._site = site
        self._id = job_id
        self._heard = heard  # called when some came
        self.read_so_far = 0

    async def read(self, api: RayApi, *, live: bool = True) -> None:
        async for data in api.follow(self._id, self.read_so_far, live=live):
            self.read_so_far += len(data)
            if self._heard:
                self._heard()
            self._site.emit(Output(data=data))


async def to_its_end(
    site: Site, api: RayApi, job_id: str, *, heard: Callable[[], object] | None = None
) -> Job:
    """Follow a job to how it ended; a head that went away is looked for anew, where it may be now."""
    reader = Reader(site, job_id, heard)
    try:
        await reader.read(api)
        return await settled(api, job_id)
    except Unavailable as error:
        site.emit(Note(text=f"lost the head ({error.what}): looking for it", level=Level.WARN))
        lost = error
    pace = Pace(first=0.2, most=3.0)
    deadline = site.clock.monotonic() + AWAY
    removed = 0  # listings in a row that show nothing of the cluster
    while site.clock.monotonic() < deadline:
        await site.clock.wait(pace.next())
        before = reader.read_so_far
        try:
            async with reached(site) as anew:
                if not await anew.jobs(job_id):
                    message = "the cluster has a new head, which knows nothing of it"
                    return Job(id=job_id, state=JobState.LOST, message=message)
                await reader.read(anew)
                return await settled(anew, job_id)
        except (Unavailable, UsageError):  # not there, or not ready yet
            if reader.read_so_far > before:
                deadline = site.clock.monotonic() + AWAY
            removed = 0 if await _something(site) else removed + 1
            if removed > 1:
                raise _removed(site, job_id) from lost
    raise JobLost(
        f"the head of {site.spec.cluster} did not come back within {AWAY:g} s: how {job_id} ended is unknown",
        why=lost.what,
        fix=f"`helio up` repairs the cluster; `helio logs -f {job_id}` says then what became of the job",
    ) from lost


async def _something(site: Site) -> bool:
    """Whether anything of the cluster exists, or nobody can say."""
    try:
        return bool(await listing(site))
    except Unavailable:
        return True


def _removed(site: Site, job_id: str) -> JobLost:
    return JobLost(
        f"{site.spec.cluster} was removed while {job_id} ran: how it would have ended, nobody knows",
        why="the place lists nothing of the cluster any more",
        fix="run it again: `helio run` brings the cluster up",
    )


async def settled(api: RayApi, job_id: str) -> Job:
    """The job as the cluster has it now; a head that is just coming back is waited for."""
    found = await patiently(lambda: api.jobs(job_id))
    if found:
        return found[0]
    raise UsageError(f"no job {job_id} on this cluster", fix="`helio jobs` lists them")


async def patiently(ask: Callable[[], Awaitable[T]], patience: float = 30.0) -> T:
    """The answer to a question, asked again while the way to the head is broken."""
    import asyncio

    pace = Pace(first=0.05, most=1.0)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience
    while True:
        try:
            return await ask()
        except Unavailable:
            if loop.time() > deadline:
                raise
        await asyncio.sleep(pace.next())


async def tell_waiting(site: Site, api: RayApi, asked: JobRequest) -> None:
    """As long as the job has not started: what it waits for, whenever that changes."""
    said = ""
    began = site.clock.monotonic()
    await site.clock.wait(QUIET)
    while True:
        try:
            (job,) = await api.jobs(asked.id)
            if job.state is not JobState.PENDING:
                return
            reason = waits_for(asked.needs, await api.nodes())
        except HelioError:
            return  # following the job tells what is wrong
        usual = reason.startswith(SETTING_UP) and site.clock.monotonic() < began + USUAL
        if reason != said and not usual:
            said = reason
            site.emit(Note(text=f"{asked.id} waits for {reason}"))
        await site.clock.wait(QUIET)
