"""The RayApi of a living cluster, by its dashboard's REST and its nodes' agents. Never imports Ray."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from heliostat.core.errors import Conflict, TimedOut, Unavailable, UsageError
from heliostat.core.job import Job, JobRequest, JobState, RayNode
from heliostat.engine.ports import Result
from heliostat.ray import answers, stop
from heliostat.ray.follow import FASTEST, Follower, Source
from heliostat.ray.http import Http, last_line

NODES = "/api/v0/nodes?detail=1&limit=10000"  # the default limit is 100
WATCHERS = (  # the actors that watch over drivers, alive ones only
    "/api/v0/actors?detail=0&limit=10000"
    "&filter_keys=class_name&filter_predicates=%3D&filter_values=JobSupervisor"
    "&filter_keys=state&filter_predicates=%3D&filter_values=ALIVE"
)
WAITERS = WATCHERS.replace("%3D&filter_values=ALIVE", "%21%3D&filter_values=DEAD")  # those yet to start, too
FORGOTTEN = 10.0  # seconds after which a job that waits has its watcher in Ray's list for certain
SUBMIT_PATIENCE = 30.0
START_PATIENCE = 1.5
STOP_PATIENCE = 60.0  # Ray gives a driver 3 s between SIGTERM and SIGKILL


def _waits_long(job: Job) -> bool:
    """Whether it waits, and not only since just now."""
    return job.state is JobState.PENDING and time.time() - (job.started or 0.0) > FORGOTTEN


async def _nothing() -> None:
    """Nothing to renew."""


class RestApi:
    """Implements ports.RayApi."""

    def __init__(
        self,
        dashboard: Http,
        agent: Callable[[str], Http],
        renew: Callable[[], Awaitable[None]] = _nothing,
        on_head: Callable[[Sequence[str]], Awaitable[Result]] | None = None,
    ) -> None:
        self._dashboard = dashboard
        self._agent = agent
        self._renew = renew
        self._on_head = on_head  # runs the head's Python there, where there is a way
        self._woken = False

    async def nodes(self) -> tuple[RayNode, ...]:
        """Every node in Ray's list, dead ones with the reason; totals are exact, use is at most 5 s old."""
        listing, usage = await asyncio.gather(self._get(NODES), self._get("/api/cluster_status"))
        return answers.nodes(listing, usage)

    async def submit(self, request: JobRequest) -> Job:
        """Safe to repeat: a job of that id with the same content is that job."""
        body = json.dumps(answers.request(request)).encode()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SUBMIT_PATIENCE
        while True:
            try:
                await self._dashboard.ask("POST", "/api/jobs/", body=body, deadline=SUBMIT_PATIENCE)
            except Unavailable as error:
                # Whatever broke, it may have been accepted: Ray's own word on the id decides.
                if found := await self._known(request.id):
                    return _same(found, request)
                if loop.time() > deadline:
                    raise
                await asyncio.sleep(0.2)
                if "already exists" in error.why:
                    raise
            else:
                self._woken = True
                return _fresh(request)

    async def _known(self, job_id: str) -> Job | None:
        try:
            return await self._look(job_id)
        except Unavailable:
            return None

    async def jobs(self, job_id: str | None = None) -> tuple[Job, ...]:
        """All jobs, or that one. RUNNING means: seen alive just now."""
        if job_id is None:
            found = answers.submitted(await self._get("/api/jobs/"))
        else:
            one = await self._look(job_id)
            found = (one,) if one else ()
        return await self._verified(found)

    async def stop(self, job_id: str) -> Job:
        """End a job in any state, and return how it ended."""
        job = await self._one(job_id, True)
        if job.state.final:
            return job
        await self._dashboard.ask("POST", f"/api/jobs/{job_id}/stop")
        if job.state is JobState.PENDING and await self._stays(job):
            await self._cancel(job_id)
        return await self._ended(job_id, STOP_PATIENCE, "it was told to stop")

    async def _stays(self, job: Job) -> bool:
        """Whether a waiting job must be taken out of the queue; one that starts obeys Ray's own stop then."""
        if answers.waits_for_resources(job):
            return True
        try:
            await self._ended(job.id, START_PATIENCE, "it was about to start")
        except TimedOut:
            return (await self._one(job.id, False)).state is JobState.PENDING
        return False

    async def _cancel(self, job_id: str) -> None:
        """Ray's own stop does nothing for a job that waits: the head takes it out of the queue."""
        version = (await self._get("/api/version"))["ray_version"]
        if self._on_head:
            result = await self._on_head(stop.words(job_id, version))
            if result.code:
                raise Unavailable(
                    f"{job_id} waits and could not be stopped",
                    why=last_line(result.err.decode(errors="replace")),
                    fix="`helio restart` ends everything that waits",
                )
            return
        helper = stop.helper(job_id, version)
        await self.submit(helper)
        ended = await self._ended(helper.id, STOP_PATIENCE, "it takes a waiting job out of the queue")
        if ended.state is not JobState.SUCCEEDED:
            raise Unavailable(
                f"{job_id} waits and could not be stopped",
                why=ended.message.strip().rpartition("\n")[2] or f"the helper job {helper.id} {ended.state}",
                fix=f"`helio logs {helper.id}` says more; `helio restart` ends everything that waits",
            )

    async def _ended(self, job_id: str, patience: float, why: str) -> Job:
        """Wait until that job has ended."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        while not (job := await self._one(job_id, False)).state.final:
            if loop.time() > deadline:
                raise TimedOut(
                    f"{job_id} is still {job.state} after {patience:g} s",
                    why=why,
                    fix=f"`helio logs {job_id}`",
                )
            await asyncio.sleep(FASTEST)
        return job

    async def follow(self, job_id: str, offset: int = 0, *, live: bool = True) -> AsyncIterator[bytes]:
        """The job's output from that byte of it on, until it has ended and all of it was read."""
        follower = Follower(Source(self._one, self._agent, self._renew), job_id, offset, live=live)
        async for chunk in follower.read():
            yield chunk

    async def _one(self, job_id: str, deep: bool) -> Job:
        found = await self._look(job_id)
        if found is None:
            raise UsageError(f"no job {job_id} on this cluster", fix="`helio jobs` lists them")
        return (await self._verified((found,)))[0] if deep else found

    async def _look(self, job_id: str) -> Job | None:
        """What Ray's job manager last wrote about that job."""
        answer = await self._dashboard.ask("GET", f"/api/jobs/{job_id}")
        if answer.status == 404:
            return None
        raw = answer.json()
        return answers.job(raw) if raw.get("submission_id") else None

    async def _verified(self, found: tuple[Job, ...]) -> tuple[Job, ...]:
        """After a head's loss its jobs still read RUNNING or PENDING: believe that only with a watcher."""
        running = any(job.state is JobState.RUNNING for job in found)
        watched = answers.watched(await self._get(WATCHERS)) if running else frozenset()
        if any(_waits_long(job) for job in found):
            watched |= answers.watched(await self._get(WAITERS))
        return tuple([await self._judged(job, watched) for job in found])

    async def _judged(self, job: Job, watched: Iterable[str]) -> Job:
        if job.id in watched or not (job.state is JobState.RUNNING or _waits_long(job)):
            return job
        # Its watcher ends after having written the result: what is written now is final.
        again = await self._look(job.id)
        if again is None or again.state is not job.state:
            return again or job
        began = job.state is JobState.RUNNING
        message = "the process that watched over the driver is gone, with its node"
        never = "it was waiting when the head was lost or restarted, and Ray has forgotten it: run it again"
        return replace(again, state=JobState.LOST, message=message if began else never)

    async def _get(self, target: str) -> Any:
        answer = await self._dashboard.ask("GET", target)
        if answer.status == 404:
            raise Unavailable(
                f"{self._dashboard.name} has no {target}", why="HTTP 404", fix="is it Ray 2.52 or newer?"
            )
        return answer.json()


def _fresh(request: JobRequest) -> Job:
    return Job(
        id=request.id,
        state=JobState.PENDING,
        entrypoint=request.entrypoint,
        metadata=dict(request.metadata),
        needs=request.needs,
    )


def _same(found: Job, request: JobRequest) -> Job:
    if found.metadata.get(answers.DIGEST) == answers.digest(request):
        return found
    raise Conflict(
        f"the cluster has a job {request.id} already",
        why="it was submitted with another command, environment or needs",
        fix="use another name",
    )
