"""Ray's JSON, as it was seen, becomes our records."""

from __future__ import annotations

from typing import Any

import pytest

from heliostat.core.job import JobRequest, JobState, Needs
from heliostat.ray import answers
from heliostat.ray.http import last_line
from heliostat.ray.stop import release

SEEN: dict[str, Any] = {
    "type": "SUBMISSION",
    "job_id": None,
    "submission_id": "a1",
    "driver_info": None,
    "status": "SUCCEEDED",
    "entrypoint": "echo hi",
    "message": "Job finished successfully.",
    "error_type": None,
    "start_time": 1795068885142,
    "end_time": 1795068886086,
    "metadata": {"x": "y"},
    "runtime_env": None,
    "driver_agent_http_address": "http://127.0.0.1:28366",
    "driver_node_id": "3355c8",
    "driver_exit_code": 0,
}
DIED = {"status": "FAILED", "driver_exit_code": None, "error_type": "JOB_SUPERVISOR_ACTOR_DIED"}


def test_a_job_keeps_what_ray_says() -> None:
    job = answers.job(SEEN)
    assert (job.id, job.state, job.code, job.node) == ("a1", JobState.SUCCEEDED, 0, "3355c8")
    assert (job.started, job.ended) == (1795068885.142, 1795068886.086)
    assert job.agent == "http://127.0.0.1:28366"


@pytest.mark.parametrize(
    ("changed", "state", "code"),
    [
        ({"status": "FAILED", "driver_exit_code": 7}, JobState.FAILED, 7),
        ({"status": "FAILED", "driver_exit_code": -9}, JobState.FAILED, 137),
        ({"status": "FAILED", "driver_exit_code": -11}, JobState.FAILED, 139),
        (DIED, JobState.LOST, None),
        (DIED | {"driver_node_id": None}, JobState.FAILED, None),  # never started: nothing is unknown
        (
            {
                "status": "FAILED",
                "driver_exit_code": None,
                "error_type": "JOB_SUPERVISOR_ACTOR_START_FAILURE",
                "message": "Unexpected error occurred: failed to get job supervisor.",
            },
            JobState.LOST,
            None,
        ),
        (
            {"status": "FAILED", "driver_exit_code": None, "error_type": "RUNTIME_ENV_SETUP_FAILURE"},
            JobState.FAILED,
            None,
        ),
        ({"status": "STOPPED", "driver_exit_code": None}, JobState.STOPPED, None),
        ({"status": "PENDING", "driver_exit_code": None, "driver_node_id": None}, JobState.PENDING, None),
    ],
)
def test_how_a_job_ended(changed: dict[str, Any], state: JobState, code: int | None) -> None:
    job = answers.job(SEEN | changed)
    assert (job.state, job.code) == (state, code)


def test_a_listing_leaves_out_drivers_and_helpers_and_is_in_order() -> None:
    later = SEEN | {"submission_id": "a0", "start_time": 1795068885143}
    helper = SEEN | {"submission_id": "stop-a1", "metadata": {answers.STOPS: "a1"}}
    driver = SEEN | {"type": "DRIVER", "submission_id": None}
    assert [job.id for job in answers.submitted([later, helper, driver, SEEN])] == ["a1", "a0"]


def test_a_request_carries_its_digest_and_only_the_needs_it_has() -> None:
    asked = JobRequest(id="r", entrypoint="true", metadata={"a": "b"}, needs=Needs(cpus=2))
    body = answers.request(asked)
    assert body["metadata"]["a"] == "b"
    assert body["metadata"][answers.DIGEST] == answers.digest(asked)
    seen = answers.job(SEEN | {"metadata": body["metadata"]})
    assert seen.needs == asked.needs
    assert body["entrypoint_num_cpus"] == 2
    assert not {"entrypoint_num_gpus", "entrypoint_memory", "entrypoint_resources"} & set(body)
    assert answers.digest(asked) != answers.digest(JobRequest(id="r", entrypoint="false"))


def test_nodes_have_exact_names_of_resources_in_total_and_in_use() -> None:
    total = {"CPU": 2.0, "fast_disk": 1.0, "object_store_memory": 7436552601.0, "node:__internal_head__": 1.0}
    row = {
        "node_id": "n1",
        "node_ip": "10.0.0.1",
        "is_head_node": True,
        "state": "ALIVE",
        "state_message": None,
        "resources_total": total,
        "labels": {"helio-node": "head"},
    }
    dead = row | {
        "node_id": "n2",
        "state": "DEAD",
        "state_message": "health check failed",
        "resources_total": {},
        "labels": {},
    }
    use = {"CPU": [1.5, 2.0], "fastDisk": [1.0, 1.0], "node:InternalHead": [0.0, 1.0]}
    head, gone = answers.nodes(
        {"data": {"result": {"result": [row, dead]}}},
        {"data": {"clusterStatus": {"loadMetricsReport": {"usageByNode": {"n1": use}}}}},
    )
    assert (head.name, head.alive, head.head, head.total) == ("head", True, True, total)
    assert head.used == {"CPU": 1.5, "fast_disk": 1.0, "node:__internal_head__": 0.0}
    assert (gone.name, gone.alive, gone.reason) == ("", False, "health check failed")


def test_nodes_do_without_a_usage_report() -> None:
    row = {"node_id": "n1", "state": "ALIVE", "resources_total": {"CPU": 2.0}}
    (node,) = answers.nodes({"data": {"result": {"result": [row]}}}, {"data": {"clusterStatus": None}})
    assert node.used == {}


def test_a_traceback_is_told_by_its_last_words() -> None:
    seen = (
        "Traceback (most recent call last):\n  File x\nValueError: Job a1 already exists. Use another.\n.\n"
    )
    assert last_line(seen) == "ValueError: Job a1 already exists. Use another."
    assert last_line("") == ""
    assert release("3.0.0.dev0") == (3, 0)
