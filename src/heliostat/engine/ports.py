"""The seams. Each has at most five methods, so that a new ground is a room and not a rebuild."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from heliostat.core.checked import Checked
    from heliostat.core.event import Event
    from heliostat.core.intent import Intent
    from heliostat.core.job import Job, JobRequest, RayNode
    from heliostat.core.owner import Owner
    from heliostat.core.resource import Outcome, Ref, Resource
    from heliostat.core.spec import Spec

Emit = Callable[["Event"], None]


@dataclass(frozen=True, slots=True)
class Result:
    """What a command on a node left: its own exit code (negative: killed by that signal) and its output."""

    code: int
    out: bytes = b""
    err: bytes = b""


class Shell(Protocol):
    """One node, within reach. Paths on the node are absolute or start with ~/."""

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_output: Callable[[str, bytes], None] | None = None,
    ) -> Result:
        """Run it there to its end. With `on_output`, (stream, bytes) arrive as they come and Result has none.

        `env` travels by the channel, never in argv. Cancelling kills the command with all its children.
        """
        ...

    async def push(self, local: str, remote: str) -> None:
        """Copy a local file, or a folder's contents, to that path; what else stands there stays."""
        ...

    async def pull(self, remote: str, local: str) -> None:
        """Copy a file, or a folder's contents, from the node; a partial file never stands under its name."""
        ...

    def forward(self, host: str, port: int) -> AbstractAsyncContextManager[tuple[str, int]]:
        """A loopback (host, port) here that leads to host:port as the node sees it."""
        ...

    def attach(self, command: Sequence[str] = ()) -> tuple[tuple[str, ...], Mapping[str, str]]:
        """The local argv and extra environment that open `command` (or a login shell) there."""
        ...


class Ground(Protocol):
    """A place where clusters stand."""

    def want(self, spec: Spec) -> tuple[Resource, ...]:
        """What must exist for this file. Pure."""
        ...

    async def find(self, owner: Owner) -> tuple[Ref, ...]:
        """List the place now: every kind, every state; without owner.cluster, all of the principal's."""
        ...

    def create(self, owner: Owner, wanted: Sequence[Resource]) -> AsyncIterator[Outcome]:
        """Make these, or bring what exists to the same digests; one outcome for each, as it happens.

        Idempotent by (owner, kind, key). A node's outcome comes when its start was handed over; Ray's own
        list, not this, tells when it is alive.
        """
        ...

    def delete(self, refs: Sequence[Ref]) -> AsyncIterator[Outcome]:
        """Remove these; what is absent counts as deleted. Only what the ref itself names."""
        ...

    def shell(self, node: Ref) -> AbstractAsyncContextManager[Shell]:
        """Reach a node."""
        ...


@runtime_checkable
class Lags(Protocol):
    """An optional power of a ground: to say by how many seconds its listing may trail the truth."""

    @property
    def lag(self) -> float: ...


@runtime_checkable
class Glances(Protocol):
    """An optional power of a ground: to list without waiting for anything, hence without an event loop."""

    def glance(self, cluster: str) -> tuple[Ref, ...]:
        """What `find` lists of this cluster of ours."""
        ...


@runtime_checkable
class Kinds(Protocol):
    """An optional power of a ground: to name every kind of resource that it can make and looks for."""

    @property
    def kinds(self) -> tuple[str, ...]: ...


@runtime_checkable
class Narrow(Protocol):
    """An optional power of a ground: to look at some nodes without asking for all the others."""

    async def find_nodes(self, owner: Owner, keys: Sequence[str]) -> tuple[Ref, ...]:
        """What is where these nodes should be; they may stand elsewhere, or nowhere."""
        ...


@runtime_checkable
class Tells(Protocol):
    """An optional power of a ground: to tell what happens inside its calls."""

    def hear(self, emit: Emit) -> None: ...


@runtime_checkable
class Services(Protocol):
    """An optional power of a ground: to say more of what stands beside Ray."""

    async def log(self, service: Ref) -> bytes:
        """What it wrote, the last of it."""
        ...

    def page(self, service: Ref, head: Ref) -> AbstractAsyncContextManager[str]:
        """Where its page is, host:port as the head sees it, as long as the context."""
        ...

    async def login(self, service: Ref) -> str | None:
        """The Authorization header that signs a person in on its page; nothing where none is needed."""
        ...


@runtime_checkable
class Foresees(Protocol):
    """An optional power of a ground: to look whether a file can come true there, before anything is made."""

    async def foresee(self, owner: Owner, spec: Spec, *, everything: bool = False) -> Sequence[Checked]:
        """What the file asks for and how it is there; with `everything`, whatever a person might ask for."""
        ...


class Identity(Protocol):
    """Who we are at that place: every ground says so, beside its five methods."""

    async def principal(self, spec: Spec) -> str:
        """Name the cloud, kube or OS principal that will own what is made."""
        ...


class RayApi(Protocol):
    """A living cluster's own word: its node list and its Jobs API, with authentication."""

    async def nodes(self) -> tuple[RayNode, ...]: ...

    async def submit(self, request: JobRequest) -> Job:
        """Safe to repeat: the same id with the same content is the same job."""
        ...

    async def jobs(self, job_id: str | None = None) -> tuple[Job, ...]:
        """All jobs, or that one (empty when unknown), driver exit codes included. Never a stale RUNNING."""
        ...

    async def stop(self, job_id: str) -> Job:
        """End a job in any state, also one that still waits for resources, and return how it ended."""
        ...

    def follow(self, job_id: str, offset: int = 0, *, live: bool = True) -> AsyncIterator[bytes]:
        """The job's output from that byte on, until it has ended and all of it was read.

        Not `live`: until all was read that is there now.
        """
        ...


class Connect(Protocol):
    """Open the Ray API of the cluster whose head this is (tunnel, token and all)."""

    def __call__(self, ground: Ground, head: Ref) -> AbstractAsyncContextManager[RayApi]: ...


class Journal(Protocol):
    """What was intended, kept on this machine; never believed about what exists."""

    def hold(self, owner: Owner, verb: str) -> AbstractContextManager[None]:
        """One change of a cluster at a time: Busy, naming the other process, when one is under way."""
        ...

    def begin(self, owner: Owner, verb: str, run: str, names: Sequence[str]) -> None:
        """Durable before the first change. Only while holding."""
        ...

    def end(self, owner: Owner, run: str, result: str) -> None: ...

    def open(self, owner: Owner) -> tuple[Intent, ...]:
        """Runs that began and never ended (their process is gone); without owner.cluster, of all clusters."""
        ...


class Clock(Protocol):
    """Time, so that tests need not wait for it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float: ...

    async def wait(self, seconds: float) -> None: ...


class Ask(Protocol):
    """Put a question to the person; without a terminal and without --yes it raises UsageError at once."""

    def __call__(self, question: str, *, details: Sequence[str] = (), default: bool = False) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """All that a flow needs, wired once."""

    ground: Ground
    owner: Owner
    spec: Spec
    emit: Emit
    ask: Ask
    journal: Journal
    connect: Connect
    clock: Clock
