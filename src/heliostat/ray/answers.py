"""From Ray's JSON to our records. Pure; every name of a field of Ray's that we read is in this file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from heliostat.core.job import Job, JobRequest, JobState, Needs, RayNode

NODE_LABEL = "helio-node"
DIGEST = "helio-digest"  # metadata: what was asked, so that the same id with other content is noticed
NEEDS = "helio-needs"  # metadata: what the driver reserves, which Ray does not tell again
STOPS = "helio-stops"  # metadata of a helper job: the id of the job that it ends

_STATES = {
    "PENDING": JobState.PENDING,
    "RUNNING": JobState.RUNNING,
    "SUCCEEDED": JobState.SUCCEEDED,
    "FAILED": JobState.FAILED,
    "STOPPED": JobState.STOPPED,
}
# How Ray says that the process which watched the driver is gone: nobody saw the driver's end.
_WATCHER_GONE = ("JOB_SUPERVISOR_ACTOR_DIED", "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE")
_NO_WATCHER = "failed to get job supervisor"  # said by a job manager that started after a loss of the head


def job(raw: Mapping[str, Any]) -> Job:
    """One submitted job."""
    return Job(
        id=raw["submission_id"],
        state=_state(raw),
        entrypoint=raw.get("entrypoint") or "",
        message=raw.get("message") or "",
        code=_code(raw.get("driver_exit_code")),
        started=_seconds(raw.get("start_time")),
        ended=_seconds(raw.get("end_time")),
        metadata=raw.get("metadata") or {},
        needs=_needs((raw.get("metadata") or {}).get(NEEDS, "")),
        agent=raw.get("driver_agent_http_address") or "",
        node=raw.get("driver_node_id") or "",
    )


def _code(code: int | None) -> int | None:
    """As a shell counts: 128 and the signal for a driver that was killed.

    >>> _code(-9), _code(7)
    (137, 7)
    """
    return 128 - code if code is not None and code < 0 else code


def _state(raw: Mapping[str, Any]) -> JobState:
    state = _STATES[raw["status"]]
    began = bool(raw.get("driver_node_id"))
    if state is JobState.FAILED and began and raw.get("driver_exit_code") is None:
        unseen = raw.get("error_type") in _WATCHER_GONE or _NO_WATCHER in (raw.get("message") or "")
        return JobState.LOST if unseen else state
    return state


def submitted(raw: Sequence[Mapping[str, Any]]) -> tuple[Job, ...]:
    """The submitted jobs of a listing, oldest first; interactive drivers have no submission id."""
    found = [job(one) for one in raw if one.get("type") == "SUBMISSION" and not _helper(one)]
    return tuple(sorted(found, key=lambda one: (one.started or 0, one.id)))


def _needs(text: str) -> Needs:
    try:
        data = json.loads(text) if text else {}
        return Needs(**data)
    except (ValueError, TypeError):  # written by somebody else
        return Needs()


def waits_for_resources(waiting: Job) -> bool:
    """Whether a job that has not started may never do so by itself."""
    return waiting.needs != Needs() or "waiting for resources" in waiting.message


def _helper(raw: Mapping[str, Any]) -> bool:
    return STOPS in (raw.get("metadata") or {})


def request(asked: JobRequest) -> dict[str, Any]:
    """The body of a submission; our digest of it travels in its metadata."""
    needs = asked.needs
    metadata = {**asked.metadata, DIGEST: digest(asked)}
    if needs != Needs():
        metadata[NEEDS] = json.dumps(asdict(needs))
    body: dict[str, Any] = {
        "submission_id": asked.id,
        "entrypoint": asked.entrypoint,
        "runtime_env": dict(asked.runtime_env),
        "metadata": metadata,
    }
    if needs.cpus:
        body["entrypoint_num_cpus"] = needs.cpus
    if needs.gpus:
        body["entrypoint_num_gpus"] = needs.gpus
    if needs.memory:
        body["entrypoint_memory"] = needs.memory
    if needs.resources:
        body["entrypoint_resources"] = dict(needs.resources)
    return body


def digest(asked: JobRequest) -> str:
    """What was asked, in one short word."""
    needs = asked.needs
    content = [
        asked.entrypoint,
        dict(asked.runtime_env),
        dict(asked.metadata),
        [needs.cpus, needs.gpus, needs.memory, dict(needs.resources)],
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def nodes(listing: Mapping[str, Any], usage: Mapping[str, Any]) -> tuple[RayNode, ...]:
    """Ray's node list with exact totals, joined with what is in use."""
    rows = listing["data"]["result"]["result"]
    used = _used_by_node(usage)
    return tuple(_node(row, used.get(row["node_id"], {})) for row in rows)


def _node(row: Mapping[str, Any], used: Mapping[str, Sequence[float]]) -> RayNode:
    total = {name: float(amount) for name, amount in (row.get("resources_total") or {}).items()}
    labels = row.get("labels") or {}
    return RayNode(
        id=row["node_id"],
        name=labels.get(NODE_LABEL, ""),
        alive=row.get("state") == "ALIVE",
        head=bool(row.get("is_head_node")),
        address=row.get("node_ip") or "",
        total=total,
        used={name: float(used[mangled(name)][0]) for name in total if mangled(name) in used},
        labels=labels,
        reason=row.get("state_message") or "",
        ended=_seconds(row.get("end_time_ms")),
    )


def _used_by_node(usage: Mapping[str, Any]) -> Mapping[str, Mapping[str, Sequence[float]]]:
    status = (usage.get("data") or {}).get("clusterStatus") or {}
    return (status.get("loadMetricsReport") or {}).get("usageByNode") or {}


def mangled(name: str) -> str:
    """A resource's name as the dashboard rewrites it in the usage report, and only there.

    >>> mangled("object_store_memory"), mangled("CPU"), mangled("fast_disk")
    ('objectStoreMemory', 'CPU', 'fastDisk')
    """
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _seconds(milliseconds: float | None) -> float | None:
    return milliseconds / 1000 if milliseconds else None


_WATCHER = "_ray_internal_job_actor_"


def watched(listing: Mapping[str, Any]) -> frozenset[str]:
    """The jobs whose driver is watched by a living supervisor actor."""
    rows = listing["data"]["result"]["result"]
    return frozenset(row["name"].removeprefix(_WATCHER) for row in rows if row.get("name"))
