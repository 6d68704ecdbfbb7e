"""The client against a head that answers late, twice, wrongly or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from heliostat.core.errors import Conflict, Denied, HelioError, Throttled, TimedOut, Unavailable, UsageError
from heliostat.core.job import JobRequest, JobState, Needs
from heliostat.ray import client as client_module
from heliostat.ray.http import Answer, Http, check
from heliostat.testing.dashboard import FakeHead, FakeJob, fake_node

ASKED = JobRequest(id="r1", entrypoint="echo hi", metadata={"a": "b"}, needs=Needs(cpus=1))


def run(scene: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await scene

    asyncio.run(limited())


def test_the_same_submission_twice_is_one_job() -> None:
    async def scene() -> None:
        async with FakeHead() as head:
            api = head.api()
            first, second = await api.submit(ASKED), await api.submit(ASKED)
            assert (first.id, second.id, len(head.jobs)) == ("r1", "r1", 1)
            assert head.jobs["r1"].asked["entrypoint_num_cpus"] == 1

    run(scene())


def test_the_same_id_with_other_content_is_a_conflict() -> None:
    async def scene() -> None:
        async with FakeHead() as head:
            await head.api().submit(ASKED)
            with pytest.raises(Conflict, match="a job r1 already"):
                await head.api().submit(JobRequest(id="r1", entrypoint="echo ho"))

    run(scene())


def test_a_submission_whose_answer_was_lost_is_not_sent_as_another() -> None:
    async def scene() -> None:
        async with FakeHead() as head:
            head.dashboard.faults.lose_answers = 1
            job = await head.api().submit(ASKED)
            assert (job.id, job.state, len(head.jobs)) == ("r1", JobState.PENDING, 1)

    run(scene())


def test_a_submission_is_repeated_while_no_agent_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        async with FakeHead() as head:
            head.dashboard.faults.statuses.append(500)
            assert (await head.api().submit(ASKED)).id == "r1"

    run(scene())


def test_a_submission_gives_up_when_its_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "SUBMIT_PATIENCE", 0.3)

    async def scene() -> None:
        async with FakeHead() as head:
            await head.dashboard.stop()
            with pytest.raises(Unavailable, match="cannot reach Ray's dashboard"):
                await head.api().submit(ASKED)

    run(scene())


def test_running_is_believed_only_of_drivers_that_are_watched() -> None:
    async def scene() -> None:
        async with FakeHead() as head:
            head.jobs["a"] = FakeJob(id="a").start(head)
            head.jobs["b"] = FakeJob(id="b").start(head)
            head.jobs["b"].watched = False  # its node is gone, and the head was started anew since
            head.jobs["c"] = FakeJob(id="c").start(head).end(0)
            states = {job.id: job.state for job in await head.api().jobs()}
            assert states == {"a": JobState.RUNNING, "b": JobState.LOST, "c": JobState.SUCCEEDED}
            (lost,) = await head.api().jobs("b")
            assert lost.state is JobState.LOST
            assert await head.api().jobs("nope") == ()

    run(scene())


def test_a_job_that_waited_when_its_head_went_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        async with FakeHead() as head:
            head.jobs = {"a": FakeJob(id="a"), "b": FakeJob(id="b", forgotten=True)}
            states = {job.id: job.state for job in await head.api().jobs()}
            assert states == {"a": JobState.PENDING, "b": JobState.LOST}
            assert [chunk async for chunk in head.api().follow("b")] == [], "following it ends"
            assert (await head.api().stop("b")).state is JobState.LOST

    monkeypatch.setattr(client_module, "FORGOTTEN", float("-inf"))
    run(scene())


def test_a_job_that_ends_between_two_questions_is_not_lost() -> None:
    class Ending(FakeHead):
        def _actors(self, query: dict[str, list[str]]) -> list[dict[str, str]]:
            self.jobs["a"].end(0)
            return super()._actors(query)

    async def scene() -> None:
        async with Ending() as head:
            head.jobs["a"] = FakeJob(id="a").start(head)
            (seen,) = await head.api().jobs()
            assert seen.state is JobState.SUCCEEDED

    run(scene())


def test_a_running_job_is_stopped_and_an_ended_one_is_left_alone() -> None:
    async def scene() -> None:
        async with FakeHead() as head:
            head.jobs["a"] = FakeJob(id="a").start(head)
            assert (await head.api().stop("a")).state is JobState.STOPPED
            head.jobs["b"] = FakeJob(id="b").start(head).end(7)
            assert (await head.api().stop("b")).code == 7
            with pytest.raises(UsageError, match="no job nope"):
                await head.api().stop("nope")

    run(scene())


def test_a_waiting_job_is_stopped_by_a_helper_that_listings_leave_out() -> None:
    async def scene() -> None:
        async with FakeHead() as head:

            async def helper(job: FakeJob) -> None:
                assert job.asked["entrypoint"].endswith(" a")
                head.jobs["a"].end(None, "STOPPED")
                job.start(head).end(0)

            head.jobs["a"] = FakeJob(id="a", message="It may be waiting for resources to become available.")
            head.on_submit = helper
            assert (await head.api().stop("a")).state is JobState.STOPPED
            assert len(head.jobs) == 2
            assert [job.id for job in await head.api().jobs()] == ["a"]

    run(scene())


def test_a_job_that_is_about_to_start_obeys_rays_own_stop() -> None:
    async def scene() -> None:
        async with FakeHead() as head:
            job = head.jobs["a"] = FakeJob(id="a")
            stopping = asyncio.ensure_future(head.api().stop("a"))
            await asyncio.sleep(0.1)
            job.start(head).end(None, "STOPPED")
            assert (await stopping).state is JobState.STOPPED
            assert list(head.jobs) == ["a"], "no helper was needed"

    run(scene())


def test_a_job_whose_environment_takes_long_is_taken_out_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "START_PATIENCE", 0.1)

    async def scene() -> None:
        async with FakeHead() as head:

            async def helper(job: FakeJob) -> None:
                head.jobs["a"].end(None, "STOPPED")
                job.start(head).end(0)

            head.jobs["a"] = FakeJob(id="a")
            head.on_submit = helper
            assert (await head.api().stop("a")).state is JobState.STOPPED

    run(scene())


def test_a_waiting_job_is_not_stopped_by_guesswork_on_an_unknown_ray() -> None:
    async def scene() -> None:
        async with FakeHead(version="3.1.0") as head:
            head.jobs["a"] = FakeJob(id="a", metadata={"helio-needs": '{"cpus": 64}'})
            with pytest.raises(UsageError, match=r"cannot be stopped on Ray 3\.1\.0"):
                await head.api().stop("a")

    run(scene())


def test_a_helper_that_fails_is_told() -> None:
    async def scene() -> None:
        async with FakeHead() as head:

            async def helper(job: FakeJob) -> None:
                job.start(head).end(1).message = "Job entrypoint failed\nImportError: no JobInfoStorageClient"

            head.jobs["a"] = FakeJob(id="a", metadata={"helio-needs": '{"cpus": 64}'})
            head.on_submit = helper
            with pytest.raises(Unavailable, match="no JobInfoStorageClient"):
                await head.api().stop("a")

    run(scene())


def test_a_job_that_does_not_stop_is_told_when_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "STOP_PATIENCE", 0.2)

    async def scene() -> None:
        async with FakeHead() as head:
            stuck = head.jobs["a"] = FakeJob(id="a").start(head)
            stuck.end = lambda code, status="": stuck  # type: ignore[method-assign]  # it ignores every signal
            with pytest.raises(TimedOut, match=r"a is still running after 0\.2 s"):
                await head.api().stop("a")

    run(scene())


def test_nodes_alive_dead_and_foreign() -> None:
    async def scene() -> None:
        async with FakeHead() as head:
            head.nodes += [fake_node("cpu-1", CPU=4.0, fast_disk=1.0), fake_node("cpu-2", alive=False)]
            head.usage = {head.nodes[1]["node_id"]: {"CPU": (3.0, 4.0), "fastDisk": (1.0, 1.0)}}
            first, second, third = await head.api().nodes()
            assert (first.name, first.head, first.alive) == ("head", True, True)
            assert second.used == {"CPU": 3.0, "fast_disk": 1.0}
            assert (third.alive, third.reason) == (False, "Unexpected termination: health check failed")

    run(scene())


@pytest.mark.parametrize(
    ("token", "said"), [(None, "Unauthorized"), ("wrong", "Invalid authentication token")]
)
def test_without_the_token_everything_is_denied(token: str | None, said: str) -> None:
    async def scene() -> None:
        async with FakeHead() as head:
            with pytest.raises(Denied) as caught:
                await head.api(token).nodes()
            assert said in str(caught.value)
            assert "helio" in caught.value.fix

    run(scene())


def test_a_head_that_does_not_answer_is_waited_for_no_longer_than_said() -> None:
    async def scene() -> None:
        async with FakeHead() as head:
            head.dashboard.faults.delay = 5
            http = head.api()._dashboard
            with pytest.raises(TimedOut, match=r"did not answer within 0\.1 s"):
                await http.ask("GET", "/api/version", deadline=0.1)

    run(scene())


def test_connections_are_kept_and_one_that_the_server_closed_is_replaced() -> None:
    async def scene() -> None:
        async with FakeHead() as head:
            http: Http = head.api()._dashboard
            for _ in range(3):
                await http.ask("GET", "/api/version")
            assert len(http._idle) == 1
            head.dashboard.cut()
            await asyncio.sleep(0.01)
            assert (await http.ask("GET", "/api/version")).status == 200
            await head.dashboard.stop()
            await head.dashboard.start()
            assert (await http.ask("GET", "/api/version")).json()["ray_version"] == "2.60.0"

    run(scene())


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, UsageError),
        (401, Denied),
        (403, Denied),
        (413, UsageError),
        (429, Throttled),
        (500, Unavailable),
    ],
)
def test_each_refusal_has_its_kind(status: int, kind: type[HelioError]) -> None:
    with pytest.raises(kind) as caught:
        check("Ray's dashboard", Answer(status, {}, b"Traceback\nValueError: that is why\n"))
    assert caught.value.why == "ValueError: that is why"


def test_an_answer_that_is_no_json_is_told() -> None:
    with pytest.raises(Unavailable, match="no JSON"):
        Answer(200, {}, b"<html>").json()
