"""What a person asks of `helio run`, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from heliostat.core.job import Job, Needs


class OnInterrupt(StrEnum):
    """What Ctrl-C means for the job."""

    ASK = "ask"
    STOP = "stop"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAsk:
    """One `helio run`, as typed."""

    command: tuple[str, ...]  # an argv; a single *.py FILE is run by the cluster's Python
    file: bool = False  # the first word is a FILE of the work folder
    cwd: str | None = None  # relative to the work folder
    work: str | None = None  # a folder instead of the file's `work`; "" sends nothing
    needs: Needs = Needs()
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    requirements: str | None = None
    runtime_env: Mapping[str, Any] = field(default_factory=dict, hash=False)
    name: str | None = None
    detach: bool = False
    down: bool = False
    on_interrupt: OnInterrupt = OnInterrupt.ASK


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How it ended: the job as the cluster last reported it, what was fetched, what still runs."""

    job: Job
    seconds: float
    fetched: tuple[str, ...] = ()
    folder: str = ""
    cluster_up: bool = True
    left_running: bool = False
    interrupted: bool = False  # the person ended the wait
