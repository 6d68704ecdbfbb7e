"""Jobs as Ray's Jobs API knows them, and what a person asked to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

COMMAND = "helio-command"  # metadata: the words as typed, without what we put before them


class JobState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"  # its driver died with its node; nobody knows its result

    @property
    def final(self) -> bool:
        return self not in (JobState.PENDING, JobState.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What the driver itself reserves (Ray's `--entrypoint-…`)."""

    cpus: float = 0
    gpus: float = 0
    memory: int = 0
    resources: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What is sent to the Jobs API. Sending the same id twice is safe."""

    id: str
    entrypoint: str
    runtime_env: Mapping[str, Any] = field(default_factory=dict, hash=False)
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    needs: Needs = Needs()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job as the cluster reports it now."""

    id: str
    state: JobState
    entrypoint: str = ""
    message: str = ""
    code: int | None = None  # the driver's own exit code, where Ray knows it
    started: float | None = None
    ended: float | None = None
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    needs: Needs = Needs()  # what its driver reserves, for jobs that heliostat submitted
    agent: str = ""  # address of the node agent that serves the driver's log
    node: str = ""  # Ray's node id of the driver


@dataclass(frozen=True, slots=True, kw_only=True)
class RayNode:
    """One node in Ray's own list. `name` is ours (the label helio-node), empty for a foreign node."""

    id: str
    name: str
    alive: bool
    head: bool = False
    address: str = ""
    total: Mapping[str, float] = field(default_factory=dict, hash=False)
    used: Mapping[str, float] = field(default_factory=dict, hash=False)
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    reason: str = ""  # why it is dead, in Ray's words
    ended: float | None = None  # when Ray saw it die, seconds since the epoch


def command_of(job: Job) -> str:
    """The words of a job as they were typed, where we know them."""
    return job.metadata.get(COMMAND) or job.entrypoint
