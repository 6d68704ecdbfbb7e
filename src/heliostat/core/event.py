"""What the engine tells while it works. Records only: who renders them is not its business."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from heliostat.core.plan import Plan
from heliostat.core.proof import Proof


class Level(StrEnum):
    INFO = "info"
    WARN = "warn"  # shown in every renderer, always on stderr


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The base of all: subclasses say what happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Began(Event):
    """An operation on a cluster begins: up, down, run …"""

    verb: str
    cluster: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Event):
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Event):
    """One thing moved on: a node, a network, the head's Jobs API. The last state of each subject counts."""

    subject: str  # head, cpu-1, network …
    state: str  # a plain word: creating, starting, waiting, alive, removing, gone, failed
    detail: str = ""
    done: bool = False  # nothing more will come for this subject in this phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(Event):
    """How far a transfer or a count is."""

    what: str
    done: int
    total: int | None
    unit: str = "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Event):
    """Something worth knowing that is no error."""

    text: str
    level: Level = Level.INFO


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(Event):
    """Bytes that a job or a command printed. `source` is a node name for `exec`, empty for a job."""

    data: bytes
    source: str = ""
    stream: str = "stdout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved(Event):
    proof: Proof


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Event):
    """An operation ended well; the closing line."""

    verb: str
    seconds: float
    text: str
