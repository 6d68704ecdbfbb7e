"""A fake Ray on a fake place: its node list, and jobs with output and exit codes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from heliostat.core.errors import Conflict, Unavailable, UsageError
from heliostat.core.job import Job, JobRequest, JobState, RayNode
from heliostat.core.owner import Owner
from heliostat.core.resource import Ref
from heliostat.engine.ports import Ground, RayApi
from heliostat.testing.client import Client
from heliostat.testing.place import FakeJob, FakePlace, Script

NEVER = float("inf")


class FakeRay:
    """The RayApi of one cluster, as one client reaches it."""

    def __init__(self, client: Client, owner: Owner) -> None:
        self._client = client
        self._place: FakePlace = client.place
        self._owner = owner

    async def nodes(self) -> tuple[RayNode, ...]:
        return await self._client.call("ray nodes", self._nodes)

    async def submit(self, request: JobRequest) -> Job:
        return await self._client.call(f"submit {request.id}", lambda: self._submit(request))

    async def jobs(self, job_id: str | None = None) -> tuple[Job, ...]:
        return await self._client.call("ray jobs", lambda: self._jobs(job_id))

    async def stop(self, job_id: str) -> Job:
        return await self._client.call(f"stop {job_id}", lambda: self._stop(job_id))

    async def follow(self, job_id: str, offset: int = 0, *, live: bool = True) -> AsyncIterator[bytes]:
        """Pieces as they are written; broken off at each of the place's `cuts`."""
        while True:
            text, ended = await self._client.call("follow", lambda: self._written(job_id))
            cut = next((c for c in self._place.faults.cuts if offset <= c < len(text)), None)
            if cut is not None:
                self._place.faults.cuts.remove(cut)
                if cut > offset:
                    yield text[offset:cut]
                raise Unavailable("the connection broke off")
            if len(text) > offset:
                yield text[offset:]
                offset = len(text)
            if ended or not live:
                return
            await asyncio.sleep(0.05)

    def _answer(self) -> None:
        if not self._place.head_answers(self._owner):
            raise Unavailable("the head does not answer", why="connection refused")

    def _nodes(self) -> tuple[RayNode, ...]:
        self._answer()
        return self._place.ray_nodes(self._owner)

    def _submit(self, request: JobRequest) -> Job:
        self._answer()
        jobs = self._place.jobs.setdefault(self._owner, {})
        known = jobs.get(request.id)
        if known is not None:
            if known.request != request:
                raise Conflict(f"there is another job {request.id}")
            return self._job(known)
        head = next(node for node in self._place.ray_nodes(self._owner) if node.head)
        scripts = self._place.scripts
        script = next((s for part, s in scripts.items() if part in request.entrypoint), Script())
        begins = self._place.clock.now() + 0.05 if self._fits(request) else NEVER
        jobs[request.id] = FakeJob(request=request, script=script, begins=begins, head=head.id)
        return self._job(jobs[request.id])

    def _fits(self, request: JobRequest) -> bool:
        """A driver must fit one node."""
        wanted = {"CPU": request.needs.cpus, "GPU": request.needs.gpus, **request.needs.resources}
        return any(
            all(node.total.get(name, 0.0) >= amount for name, amount in wanted.items() if amount)
            for node in self._place.ray_nodes(self._owner)
            if node.alive
        )

    def _jobs(self, job_id: str | None) -> tuple[Job, ...]:
        self._answer()
        jobs = self._place.jobs.get(self._owner, {})
        return tuple(self._job(job) for job in jobs.values() if job_id in (None, job.request.id))

    def _stop(self, job_id: str) -> Job:
        self._answer()
        job = self._known(job_id)
        if not self._job(job).state.final:
            job.stopped = self._place.clock.now()
        return self._job(job)

    def _known(self, job_id: str) -> FakeJob:
        job = self._place.jobs.get(self._owner, {}).get(job_id)
        if job is None:
            raise UsageError(f"there is no job {job_id}")
        return job

    def _job(self, job: FakeJob) -> Job:
        """A job as it is now."""
        now, script = self._place.clock.now(), job.script
        ends = min(job.begins + script.seconds, *(t for t in (job.stopped, job.lost) if t is not None), NEVER)
        code = None
        if now < ends:
            state = JobState.PENDING if now < job.begins else JobState.RUNNING
        elif ends == job.stopped:
            state = JobState.STOPPED
        elif ends == job.lost:
            state = JobState.LOST
        else:
            state, code = (JobState.FAILED if script.code else JobState.SUCCEEDED), script.code
        return Job(
            id=job.request.id,
            state=state,
            entrypoint=job.request.entrypoint,
            code=code,
            started=job.begins if now >= job.begins else None,
            ended=ends if now >= ends else None,
            metadata=job.request.metadata,
        )

    def _written(self, job_id: str) -> tuple[bytes, bool]:
        """What it wrote so far, and whether it has ended."""
        self._answer()
        job = self._known(job_id)
        seen = self._job(job)
        if seen.started is None:
            return b"", seen.state.final
        until = seen.ended if seen.ended is not None else self._place.clock.now()
        whole = seen.code is not None or not job.script.seconds  # it came to its own end
        share = 1.0 if whole else min(1.0, (until - seen.started) / job.script.seconds)
        return job.script.output[: int(len(job.script.output) * share)], seen.state.final


class FakeConnect:
    """The Connect port: opens the fake Ray of a head."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @asynccontextmanager
    async def __call__(self, ground: Ground, head: Ref) -> AsyncIterator[RayApi]:
        del ground  # the fake needs no shell to reach its own Ray
        await self._client.call("connect", lambda: None)
        yield FakeRay(self._client, head.owner)
