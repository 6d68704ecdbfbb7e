"""heliostat: one file, one command, Ray clusters on every ground.

>>> import heliostat
>>> heliostat.cluster  # doctest: +ELLIPSIS
<function cluster at ...>
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heliostat.api import Cluster, cluster
    from heliostat.core.errors import (
        Conflict,
        Denied,
        FileError,
        HelioError,
        Infeasible,
        Interrupted,
        JobLost,
        LeftBehind,
        MissingPart,
        NoCapacity,
        Problem,
        Quota,
        Throttled,
        TimedOut,
        Unavailable,
        UsageError,
    )
    from heliostat.core.event import Event
    from heliostat.core.executed import Executed
    from heliostat.core.job import Job, JobState, Needs
    from heliostat.core.plan import Plan
    from heliostat.core.proof import Proof
    from heliostat.core.run import OnInterrupt, RunEnd
    from heliostat.core.status import NodeState, NodeStatus, Status

__version__ = "0.1.0"

_ERRORS = (
    "Conflict", "Denied", "FileError", "HelioError", "Infeasible", "Interrupted", "JobLost", "LeftBehind",
    "MissingPart", "NoCapacity", "Problem", "Quota", "Throttled", "TimedOut", "Unavailable", "UsageError",
)  # fmt: skip
# Where each public name lives: loaded when it is used, because the command line must start without them.
_HOMES = dict.fromkeys(_ERRORS, "core.errors") | {
    "Cluster": "api",
    "cluster": "api",
    "Event": "core.event",
    "Executed": "core.executed",
    "Job": "core.job",
    "JobState": "core.job",
    "Needs": "core.job",
    "Plan": "core.plan",
    "Proof": "core.proof",
    "OnInterrupt": "core.run",
    "RunEnd": "core.run",
    "NodeState": "core.status",
    "NodeStatus": "core.status",
    "Status": "core.status",
}

__all__ = [  # noqa: RUF022 - the way in first, then records, then errors
    "cluster", "Cluster",
    "Event", "Executed", "Job", "JobState", "Needs", "NodeState", "NodeStatus", "OnInterrupt", "Plan",
    "Proof", "RunEnd", "Status",
    "Conflict", "Denied", "FileError", "HelioError", "Infeasible", "Interrupted", "JobLost", "LeftBehind",
    "MissingPart", "NoCapacity", "Problem", "Quota", "Throttled", "TimedOut", "Unavailable", "UsageError",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"heliostat.{_HOMES[name]}"), name)
    globals()[name] = value  # asked once
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
