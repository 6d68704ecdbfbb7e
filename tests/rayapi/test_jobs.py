"""Jobs on a real head: what they print and how they end is their own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from heliostat.core.job import JobState, Needs
from heliostat.engine.ports import RayApi
from tests.rayapi.conftest import asked, ran, running

pytestmark = pytest.mark.ray


@pytest.mark.parametrize(
    ("command", "code", "state"),
    [
        ("true", 0, JobState.SUCCEEDED),
        ("false", 1, JobState.FAILED),
        ("exit 7", 7, JobState.FAILED),
        ("exec python -c 'import os, signal; os.kill(os.getpid(), signal.SIGSEGV)'", 139, JobState.FAILED),
        ("python -c 'import os; os.kill(os.getpid(), 9)'", 137, JobState.FAILED),
        ("kill -9 $$", 137, JobState.FAILED),
        ("no-such-program", 127, JobState.FAILED),
        ("exit 300", 44, JobState.FAILED),
    ],
)
def test_the_exit_code_is_the_jobs(
    talk: Callable[..., Any], command: str, code: int, state: JobState
) -> None:
    async def scene(api: RayApi) -> None:
        _, job = await ran(api, asked(command))
        assert (job.code, job.state) == (code, state)

    talk(scene)


def test_the_output_is_the_jobs_to_the_byte(talk: Callable[..., Any]) -> None:
    async def scene(api: RayApi) -> None:
        output, _ = await ran(api, asked("printf 'a\\0b'; printf 'err' >&2; printf '\\377 no newline'"))
        assert output == b"a\0berr\xff no newline"

    talk(scene)


def test_a_driver_on_a_worker_is_followed_there(talk: Callable[..., Any]) -> None:
    async def scene(api: RayApi) -> None:
        output, job = await ran(api, asked("echo from the worker", needs=Needs(resources={"spot": 1})))
        assert output == b"from the worker\n"
        (worker,) = [node for node in await api.nodes() if node.name == "spot-1"]
        assert job.node == worker.id

    talk(scene)


def test_output_comes_while_the_job_runs(talk: Callable[..., Any]) -> None:
    async def scene(api: RayApi) -> None:
        request = asked("echo first; sleep 60")
        await api.submit(request)
        async for chunk in api.follow(request.id):
            assert chunk == b"first\n"
            break
        assert (await api.stop(request.id)).state is JobState.STOPPED

    talk(scene)


def test_a_job_is_resumed_where_reading_stopped(talk: Callable[..., Any]) -> None:
    async def scene(api: RayApi) -> None:
        request = asked("seq 1000")
        whole, _ = await ran(api, request)
        for offset in (0, 1, 1999, len(whole)):
            assert b"".join([chunk async for chunk in api.follow(request.id, offset)]) == whole[offset:]

    talk(scene)


def test_a_running_job_is_stopped_even_one_that_ignores_sigterm(talk: Callable[..., Any]) -> None:
    async def scene(api: RayApi) -> None:
        for command in ("sleep 60", "trap '' TERM; while :; do sleep 1; done"):
            request = asked(command)
            await running(api, request)
            began = time.monotonic()
            assert (await api.stop(request.id)).state is JobState.STOPPED
            assert time.monotonic() - began < 15

    talk(scene)


def test_a_waiting_job_is_stopped_and_ray_agrees(talk: Callable[..., Any]) -> None:
    async def scene(api: RayApi) -> None:
        request = asked("echo never", needs=Needs(cpus=64))
        await api.submit(request)
        began = time.monotonic()
        assert (await api.stop(request.id)).state is JobState.STOPPED
        took = time.monotonic() - began
        assert took < 30, took  # 2.3 s on a machine that is not busy
        (job,) = await api.jobs(request.id)
        assert (job.state, job.code) == (JobState.STOPPED, None)
        assert b"".join([chunk async for chunk in api.follow(request.id)]) == b""
        assert all(not job.id.startswith("stop-") for job in await api.jobs())
        assert (await api.stop(request.id)).state is JobState.STOPPED

    talk(scene)


@pytest.mark.slow
def test_stopping_races_with_starting(talk: Callable[..., Any], tmp_path: Any) -> None:
    """Whoever wins, the job is over when stop returns, and its driver is not there."""

    async def scene(api: RayApi) -> None:
        for tenth in range(0, 14, 2):
            mark = tmp_path / f"alive-{tenth}"
            request = asked(f"while :; do date +%s%N > {mark}; sleep 0.1; done")
            await api.submit(request)
            await asyncio.sleep(tenth / 10)
            assert (await api.stop(request.id)).state is JobState.STOPPED, tenth
            (job,) = await api.jobs(request.id)
            assert job.state is JobState.STOPPED, tenth
            last = mark.read_text() if mark.exists() else ""
            await asyncio.sleep(1.5)
            assert (mark.read_text() if mark.exists() else "") == last, f"driver {tenth} still runs"

    talk(scene, 180)


def test_many_waiting_jobs_are_stopped_at_once(talk: Callable[..., Any]) -> None:
    async def scene(api: RayApi) -> None:
        requests = [asked("true", needs=Needs(cpus=64)) for _ in range(4)]
        await asyncio.gather(*(api.submit(request) for request in requests))
        ends = await asyncio.gather(*(api.stop(request.id) for request in requests))
        assert {job.state for job in ends} == {JobState.STOPPED}

    talk(scene)
