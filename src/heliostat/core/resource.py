"""What must exist, what does exist, and what became of an attempt to change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from heliostat.core.errors import HelioError
from heliostat.core.owner import Owner

HEAD = "head"
NODE = "node"  # the kind that every ground uses for what runs a Ray node; its key is the node's name

SERVICE = "service"  # the kind of what stands beside Ray: its figures, its store, a notebook


class State(StrEnum):
    """The life of a resource, in the words that every ground is translated to."""

    PENDING = "pending"  # asked for, not there yet
    READY = "ready"
    BROKEN = "broken"  # exists, but does not work: to be replaced
    LEAVING = "leaving"  # being deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests:
    """What a difference in each would cost: nothing, a restart of Ray there, or a new resource."""

    live: str = ""
    restart: str = ""
    replace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One thing that must exist. `body` is the ground's own and opaque to the engine."""

    kind: str
    key: str  # unique within the cluster and the kind; stable between runs
    needs: tuple[str, ...] = ()  # names (kind/key) that must exist before
    digests: Digests = Digests()
    text: str = ""  # one line for `helio plan`
    price: float | None = None  # USD an hour, where known
    body: Mapping[str, Any] = field(default_factory=dict, hash=False)
    data: bool = False  # holds what a person would miss: a volume, a bucket
    # The engine fills these in before `create`:
    run: str = ""  # the operation that makes it, to be written in its labels
    again: bool = False  # restart Ray there even when no digest differs

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """One thing that exists, as the ground lists it now."""

    kind: str
    key: str
    id: str  # the ground's own identity of it, enough to delete it
    owner: Owner
    state: State = State.READY
    needs: tuple[str, ...] = ()  # as written in its labels: the order of deletion
    digests: Digests = Digests()
    run: str = ""  # the operation that made it, as written in its labels
    created: float | None = None  # seconds since the epoch
    data: bool = False  # holds what a person would miss; `down --keep-data` leaves it
    removal: str = ""  # the command that a person would type to remove it by hand
    # addresses, ports, directories: never secrets
    facts: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one create or delete: a ref, or an error, never both."""

    name: str
    ref: Ref | None = None
    error: HelioError | None = None

    @property
    def ok(self) -> bool:
        return self.error is None
