"""Following a job's output: every byte once, in order, whatever breaks on the way."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from heliostat.core.errors import Denied, Unavailable, UsageError
from heliostat.core.job import JobState
from heliostat.ray import follow
from heliostat.testing.dashboard import FakeHead, FakeJob

Scene = Callable[[FakeHead, FakeJob], Coroutine[Any, Any, None]]
LINES = b"".join(b"line %05d\n" % number for number in range(10_000))


async def followed(head: FakeHead, offset: int = 0) -> bytes:
    return b"".join([chunk async for chunk in head.api().follow("a1", offset)])


def play(scene: Scene, offset: int = 0, *, deadline: float = 20.0) -> bytes:
    """Run a scene while its job is followed."""

    async def run() -> bytes:
        async with FakeHead() as head, asyncio.timeout(deadline):
            job = head.jobs["a1"] = FakeJob(id="a1", entrypoint="python noisy.py")
            acting = asyncio.ensure_future(scene(head, job))
            reading = asyncio.ensure_future(followed(head, offset))
            done, _ = await asyncio.wait((acting, reading), return_when=asyncio.FIRST_EXCEPTION)
            for one in done:
                one.result()
            return reading.result()

    return asyncio.run(run())


async def until(condition: Callable[[], bool], what: str, deadline: float = 10.0) -> None:
    async with asyncio.timeout(deadline):
        while not condition():  # noqa: ASYNC110  # the double is plain state, without events
            await asyncio.sleep(0.005)
    assert condition(), what


def test_ten_thousand_lines_and_a_hundred_cuts() -> None:
    cuts = 0

    async def scene(head: FakeHead, job: FakeJob) -> None:
        nonlocal cuts
        head.agent.faults.cut_after = len(LINES) // 200
        head.agent.faults.most_cuts = 100
        job.start(head)
        for at in range(0, len(LINES), 10_000):
            job.write(LINES[at : at + 10_000])
            await asyncio.sleep(0)
        job.end(7)
        await until(lambda: head.agent.faults.cuts == 100, "a hundred cuts")
        cuts = head.agent.faults.cuts

    assert play(scene, deadline=60) == LINES
    assert cuts == 100


def test_every_connection_is_broken_again_and_again() -> None:
    async def scene(head: FakeHead, job: FakeJob) -> None:
        job.start(head)
        for at in range(0, 3000, 30):
            job.write(LINES[at : at + 30])
            await asyncio.sleep(0.003)
            head.agent.cut()
            head.dashboard.cut()
        job.end(0)

    assert play(scene) == LINES[:3000]


def test_a_dashboard_that_restarts_loses_nothing() -> None:
    async def scene(head: FakeHead, job: FakeJob) -> None:
        job.start(head).write(b"before\n")
        await until(lambda: len(head.agent.requests) > 1, "it is being followed")
        await head.dashboard.stop()
        job.write(b"meanwhile\n").end(0)
        await asyncio.sleep(0.2)
        await head.dashboard.start()

    assert play(scene) == b"before\nmeanwhile\n"


def test_an_agent_that_restarts_loses_nothing() -> None:
    async def scene(head: FakeHead, job: FakeJob) -> None:
        job.start(head).write(b"before\n")
        await until(lambda: len(head.agent.requests) > 1, "it is being followed")
        await head.agent.stop()
        job.write(b"after\n").end(0)
        await asyncio.sleep(0.2)
        await head.agent.start()

    assert play(scene) == b"before\nafter\n"


@pytest.mark.parametrize("status", [500, 503, 429])
def test_answers_that_fail_are_asked_for_again(status: int) -> None:
    async def scene(head: FakeHead, job: FakeJob) -> None:
        job.start(head).write(b"one\n")
        head.agent.faults.statuses.extend([status] * 3)
        head.dashboard.faults.statuses.extend([status] * 2)
        await until(lambda: not head.agent.faults.statuses, "all failures were met")
        job.write(b"two\n").end(0)

    async def run() -> bytes:
        async with FakeHead() as head, asyncio.timeout(20):
            job = head.jobs["a1"] = FakeJob(id="a1")
            job.start(head)
            reader = asyncio.ensure_future(followed(head))
            await until(lambda: len(head.agent.requests) > 0, "it is being followed")
            await scene(head, job.end(None, "RUNNING"))
            return await reader

    assert asyncio.run(run()) == b"one\ntwo\n"


def test_what_is_written_at_the_very_end_is_read() -> None:
    async def scene(head: FakeHead, job: FakeJob) -> None:
        job.start(head).write(b"early\n")
        await until(lambda: len(head.agent.requests) > 2, "it is being followed")
        job.write(b"last words").end(1)

    assert play(scene) == b"early\nlast words"


def test_rays_lines_are_dropped_in_the_midst_of_a_line() -> None:
    async def scene(head: FakeHead, job: FakeJob) -> None:
        job.start(head, before=b"half a ").write(b"line\n").end(0)

    assert play(scene) == b"half a line\n"


@pytest.mark.parametrize("offset", [0, 1, 5, 11, 4000, 11 * 10_000 - 1, 11 * 10_000, 10**9])
def test_it_resumes_at_any_byte_of_the_jobs_own(offset: int) -> None:
    async def scene(head: FakeHead, job: FakeJob) -> None:
        job.start(head, before=b"").write(LINES).end(0)

    assert play(scene, offset) == LINES[offset:]


def test_a_job_that_waits_is_followed_once_it_starts() -> None:
    async def scene(head: FakeHead, job: FakeJob) -> None:
        await until(lambda: len(head.dashboard.requests) > 2, "it is being waited for")
        assert not head.agent.requests
        job.start(head).write(b"hi\n").end(0)

    assert play(scene) == b"hi\n"


def test_a_job_that_never_started_has_no_output() -> None:
    async def scene(head: FakeHead, job: FakeJob) -> None:
        job.end(None, "STOPPED")

    assert play(scene) == b""


def test_a_log_that_was_rotated_is_read_on_from_its_new_beginning() -> None:
    async def scene(head: FakeHead, job: FakeJob) -> None:
        job.start(head).write(b"old\n" * 10)
        await until(lambda: len(head.agent.requests) > 2, "the old was read")
        job.log = bytearray(b"new\n")
        job.end(0)

    assert play(scene) == b"old\n" * 10 + b"new\n"


def test_a_job_that_was_lost_with_its_node_ends_the_following(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(head: FakeHead, job: FakeJob) -> None:
        job.start(head).write(b"so far\n")
        await until(lambda: len(head.agent.requests) > 2, "it is being followed")
        job.watched = False  # the node died, and Ray's job manager has not noticed: it still reads RUNNING
        await head.agent.stop()

    assert play(scene) == b"so far\n"


def test_output_that_went_with_its_agent_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "GRACE", 0.1)

    async def scene(head: FakeHead, job: FakeJob) -> None:
        await head.agent.stop()
        job.start(head).write(b"unread\n").end(3)

    with pytest.raises(Unavailable, match="the rest of the output of a1 cannot be read"):
        play(scene)


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "PATIENCE", 0.2)

    async def scene(head: FakeHead, job: FakeJob) -> None:
        job.start(head)
        await until(lambda: len(head.agent.requests) > 0, "it is being followed")
        await head.agent.stop()
        await head.dashboard.stop()

    with pytest.raises(Unavailable, match="lost sight of a1"):
        play(scene)


def test_a_denial_is_told_at_once() -> None:
    async def run() -> None:
        async with FakeHead() as head:
            head.jobs["a1"] = FakeJob(id="a1").start(head)
            with pytest.raises(Denied) as caught:
                [chunk async for chunk in head.api("wrong").follow("a1")]
            assert "token" in str(caught.value)

    asyncio.run(run())


def test_an_unknown_job_is_a_mistake_of_who_asked() -> None:
    async def run() -> None:
        async with FakeHead() as head:
            with pytest.raises(UsageError, match="no job nope"):
                [chunk async for chunk in head.api().follow("nope")]

    asyncio.run(run())


def test_a_large_log_streams_in_bounded_memory() -> None:
    block = LINES * 100  # 11 MB, ten times
    total = 0

    async def run() -> int:
        nonlocal total
        async with FakeHead() as head, asyncio.timeout(60):
            job = head.jobs["a1"] = FakeJob(id="a1").start(head)
            job.write(block * 2).end(0)
            tracemalloc.start()
            async for chunk in head.api().follow("a1"):
                total += len(chunk)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return peak

    peak = asyncio.run(run())
    assert total == len(block) * 2
    assert peak < len(block) * 3  # the double itself holds a copy of the whole while it answers


def test_an_idle_follow_asks_ever_less_often() -> None:
    async def scene(head: FakeHead, job: FakeJob) -> None:
        job.start(head)
        await asyncio.sleep(3)
        asked = len(head.agent.requests)
        job.end(0)
        assert asked < 70, "40 in its first second, 20 in the next two, and slower and slower"

    assert play(scene) == b""


def test_the_double_and_the_client_agree_on_states() -> None:
    async def run() -> None:
        async with FakeHead() as head:
            head.jobs["a1"] = FakeJob(id="a1").start(head).end(-9)
            (job,) = await head.api().jobs("a1")
            assert (job.state, job.code) == (JobState.FAILED, 137)

    asyncio.run(run())
