"""Stopping a job that waits for resources: Ray's API answers yes and does nothing, so a program does it.

It runs on the head, by the way that leads there; where there is none, as a job of its own, which is slower.

It writes STOPPED as the job's state, as Ray does for one that runs, and then ends the actor that waits.
These are private names of Ray: the helper says so when they are not there, and tests/rayapi holds them.
"""

from __future__ import annotations

import secrets
import shlex

from heliostat.core.errors import UsageError
from heliostat.core.job import JobRequest
from heliostat.ray.answers import STOPS

VERIFIED = ((2, 52), (3, 0))  # from, and below

_PROGRAM = """
import asyncio, os, sys
from ray._raylet import GcsClient
from ray._private.grpc_utils import init_grpc_channel
from ray.core.generated import gcs_service_pb2 as gcs, gcs_service_pb2_grpc as services
from ray.dashboard.modules.job.common import (
    JOB_ACTOR_NAME_TEMPLATE, SUPERVISOR_ACTOR_RAY_NAMESPACE, JobInfoStorageClient, JobStatus)
job, address = sys.argv[1], os.environ["RAY_ADDRESS"]
jobs = JobInfoStorageClient(GcsClient(address=address))
status = lambda: asyncio.run(jobs.get_status(job))
put = lambda: asyncio.run(jobs.put_status(job, JobStatus.STOPPED, message="Stopped before it started."))
if status() != JobStatus.PENDING:
    sys.exit(0)  # it started, or ended, meanwhile: the ordinary stop is on its way
put()
actors = services.ActorInfoGcsServiceStub(init_grpc_channel(address))
name = JOB_ACTOR_NAME_TEMPLATE.format(job_id=job)
found = actors.GetNamedActorInfo(
    gcs.GetNamedActorInfoRequest(name=name, ray_namespace=SUPERVISOR_ACTOR_RAY_NAMESPACE), timeout=10)
if found.actor_table_data.actor_id:  # else it is gone already
    actors.KillActorViaGcs(gcs.KillActorViaGcsRequest(
        actor_id=found.actor_table_data.actor_id, force_kill=True, no_restart=True), timeout=10)
if not status().is_terminal():
    put()  # it was starting at the same moment, and died before it could run anything for long
"""


def words(job_id: str, version: str) -> tuple[str, ...]:
    """What the head's Python is told, to take `job_id` out of the queue."""
    low, high = VERIFIED
    if not low <= release(version) < high:
        raise UsageError(
            f"a job that waits cannot be stopped on Ray {version}",
            why=f"how is known from Ray {low[0]}.{low[1]} on and below {high[0]}.0",
            fix="wait until it runs, or `helio restart`",
        )
    return "-c", _PROGRAM, job_id


def helper(job_id: str, version: str) -> JobRequest:
    """The job that takes `job_id` out of the queue; it needs no CPU, and listings leave it out."""
    program = " ".join(shlex.quote(word) for word in words(job_id, version))
    return JobRequest(
        id=f"stop-{job_id}-{secrets.token_hex(2)}",
        entrypoint=f"exec python {program}",
        metadata={STOPS: job_id},
    )


def release(version: str) -> tuple[int, int]:
    """The first two numbers of a version.

    >>> release("2.60.0rc1")
    (2, 60)
    """
    major, minor, *_ = version.split(".")
    return int(major), int(minor)
