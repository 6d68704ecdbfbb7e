"""A job's output by byte offset: every byte once and in order, whatever happens to the connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from heliostat.core.errors import TimedOut, Unavailable, UsageError
from heliostat.core.job import Job, JobState
from heliostat.ray.http import BLOCK, Answer, Http, Response, check
from heliostat.ray.sieve import Sieve

PATIENCE = 15.0  # how long neither the head nor the agent may answer before somebody looks where they are
GRACE = 10.0  # how long an ended job's agent may be silent before its output counts as gone
FASTEST, SLOWEST = 0.05, 1.0
EAGER, YOUNG = 0.02, 1.0  # how often a job is looked at that runs since less than that: it may be a short one


@dataclass(frozen=True, slots=True)
class Source:
    """Where to ask for the job (`deep`: beyond what Ray's job manager believes) and for its log."""

    job: Callable[[str, bool], Awaitable[Job]]
    agent: Callable[[str], Http]
    renew: Callable[[], Awaitable[None]]


class Follower:
    """Reads one job's log to its end."""

    def __init__(self, source: Source, job_id: str, offset: int, *, live: bool = True) -> None:
        self._source = source
        self._live = live  # else: what is there now
        self._id = job_id
        self._skip = offset  # of the job's own bytes; becomes a jump once Ray's are out of the way
        self._at = 0  # in the file
        self._jumped = 0  # how much of that was never seen, only skipped
        self._sieve: Sieve | None = None
        self._trouble = Trouble()

    async def read(self) -> AsyncIterator[bytes]:
        job: Job | None = await self._source.job(self._id, True)
        pace = Pace()
        while job:
            size = 0
            try:
                if job.agent:
                    async for chunk in self._new(job):
                        size += len(chunk)
                        yield chunk
                if (job.state.final or not self._live) and not size:
                    break
                if size < BLOCK and self._live and not job.state.final:
                    await pace.wait(bool(size), running=job.state is JobState.RUNNING)
                if not job.state.final:
                    waits = job.state is JobState.PENDING  # it may have been forgotten with its head
                    job = await self._source.job(self._id, waits or self._trouble.any)
                self._trouble.over()
            except Unavailable as error:
                job = await self._after(error, job)
        if self._sieve and (rest := self._cut(self._sieve.rest())):
            yield rest

    async def _new(self, job: Job) -> AsyncIterator[bytes]:
        """What the log has beyond what was read, as it comes; nothing when there is nothing."""
        if self._sieve is None:
            self._sieve = Sieve(self._id, job.entrypoint)
        if self._sieve.settled and self._skip:
            self._at, self._jumped, self._skip = self._at + self._skip, self._skip, 0
        agent = self._source.agent(job.agent)
        log = f"/logs/job-driver-{self._id}.log"
        again = True
        while again:
            async with agent.get(log, {"Range": f"bytes={self._at}-"}) as response:
                if again := response.status != 206:
                    again = await self._rotated(agent, response)
                    continue
                async for chunk in response.chunks():
                    self._at += len(chunk)
                    self._trouble.over()
                    if mine := self._cut(self._sieve.feed(chunk)):
                        yield mine

    async def _rotated(self, agent: Http, response: Response) -> bool:
        """No new bytes: is it the end of the file, no file yet, or a file that was cut short under us?"""
        body = b"".join([chunk async for chunk in response.chunks()])
        check(agent.name, Answer(response.status, response.headers, body))
        size = response.headers.get("content-range", "").rpartition("/")[2]
        if response.status == 200:
            raise UsageError(
                f"{agent.name} does not serve logs by byte", why="it ignored the Range asked for"
            )
        shorter = response.status == 416 and size.isdigit() and int(size) < self._at - self._jumped
        if shorter:
            self._at = self._jumped = 0  # what comes now is new
        return shorter

    def _cut(self, data: bytes) -> bytes:
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        return data[skipped:]

    async def _after(self, error: Unavailable, job: Job) -> Job | None:
        """Wait, reach anew, ask again; None when nothing is left to read, an error when patience ends."""
        lasted = self._trouble.more()
        if job.state is JobState.LOST and self._trouble.times > 3:
            return None
        if job.state.final and lasted > GRACE:
            raise Unavailable(
                f"the rest of the output of {self._id} cannot be read",
                why=f"the node that keeps it does not answer: {error.what}",
                fix=f"`helio jobs` has its result ({job.state}); `helio status` says what is alive",
            ) from error
        if lasted > PATIENCE:
            raise TimedOut(
                f"lost sight of {self._id} for {lasted:.0f} s",
                why=error.what,
                fix=f"it may still run: `helio logs -f {self._id}` goes on where this stopped",
            ) from error
        await self._trouble.wait()
        if self._trouble.times > 3:
            await self._source.renew()
        try:
            return await self._source.job(self._id, True)
        except Unavailable:
            return job


class Pace:
    """How long to wait before looking again: quick while something happens, ever slower when not."""

    def __init__(self) -> None:
        self._since = asyncio.get_running_loop().time()
        self._runs_since: float | None = None

    async def wait(self, busy: bool, *, running: bool) -> None:
        now = asyncio.get_running_loop().time()
        if busy:
            self._since = now
        if running and self._runs_since is None:
            self._runs_since = now
        young = self._runs_since is not None and now - self._runs_since < YOUNG
        await asyncio.sleep(min(SLOWEST, max(EAGER if young else FASTEST, (now - self._since) / 20)))


class Trouble:
    """For how long nothing has answered."""

    def __init__(self) -> None:
        self.times = 0
        self._since = 0.0

    @property
    def any(self) -> bool:
        return self.times > 0

    def more(self) -> float:
        now = asyncio.get_running_loop().time()
        if not self.times:
            self._since = now
        self.times += 1
        return now - self._since

    def over(self) -> None:
        self.times = 0

    async def wait(self) -> None:
        # A connection that broke after having given something is replaced at once.
        await asyncio.sleep(min(1.0, 0.02 * 2**self.times) if self.times > 1 else 0)
