"""`heliostat.cluster()`: the verbs of the command line as methods."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from heliostat import wiring
from heliostat.api import flows
from heliostat.api.call import call
from heliostat.api.output import Teller
from heliostat.api.overrides import sets
from heliostat.core.errors import UsageError
from heliostat.core.event import Event, Output
from heliostat.core.executed import Executed
from heliostat.core.job import Job, Needs
from heliostat.core.plan import Plan
from heliostat.core.proof import Proof
from heliostat.core.resource import HEAD, Ref
from heliostat.core.run import OnInterrupt, RunEnd
from heliostat.core.spec import Decoded, Spec
from heliostat.core.status import Status
from heliostat.engine.ports import Emit, Site

T = TypeVar("T")
ALL = "all"  # every node, where nodes are named
Told = Callable[[Event], None]


def cluster(
    file: str | os.PathLike[str] | None = None,
    *,
    keep: bool = False,
    yes: bool = False,
    output: Callable[[str], None] | None = None,
    on_event: Told | None = None,
    **overrides: object,
) -> Cluster:
    """The cluster of this file, else of the nearest helio.yaml, else the default one on this machine.

    Other keywords are keys of the file and replace its values: `workers=3`, `head={"cpus": 2}`. As a context
    manager it is brought up, and removed at the end unless it was up before or `keep` is set. `output` gets
    what jobs print (default: sys.stdout), `on_event` everything that happens. What would lose something or
    cost money is refused unless `yes`.
    """
    from heliostat.engine.project import load

    decoded = load(None if file is None else os.fspath(file), sets=sets(overrides))
    return Cluster(decoded, keep=keep, yes=yes, output=output, on_event=on_event)


class Cluster:
    """One cluster. Each method does what the verb of its name does, and comes back when that has ended."""

    def __init__(
        self,
        decoded: Decoded,
        *,
        keep: bool = False,
        yes: bool = False,
        output: Callable[[str], None] | None = None,
        on_event: Told | None = None,
    ) -> None:
        self._decoded = decoded
        self._keep = keep
        self._yes = yes
        self._output = output
        self._on_event = on_event
        self._ours: set[str] = set()  # jobs that were submitted here
        self._made = False  # by `with`, from nothing

    @property
    def spec(self) -> Spec:
        """What the file says."""
        return self._decoded.spec

    @property
    def name(self) -> str:
        return self.spec.cluster

    @property
    def where(self) -> str:
        return self.spec.where

    def __repr__(self) -> str:
        return f"<heliostat cluster {self.name} on {self.where}>"

    def __enter__(self) -> Self:
        self._made = self._do(flows.enter)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._made and not self._keep:
            self._do(partial(flows.leave, ours=frozenset(self._ours)), yes=True)

    def plan(self) -> Plan:
        """What `up` would do."""
        from heliostat.engine.lifecycle import plan

        return self._do(plan)

    def up(self, *, keep: bool = False) -> Status:
        """Make it what the file says; when that fails, what was made goes again unless `keep`."""
        from heliostat.engine.lifecycle import up

        return self._do(partial(up, keep=keep))

    def status(self) -> Status:
        """What is there, and what Ray says of it."""
        from heliostat.engine.status import status

        return self._do(status)

    def restart(self) -> Status:
        """Start Ray anew on every node."""
        from heliostat.engine.lifecycle import restart

        return self._do(restart)

    def run(
        self,
        command: str | os.PathLike[str] | Sequence[str],
        *args: object,
        needs: Needs | None = None,
        env: Mapping[str, str] | None = None,
        requirements: str | os.PathLike[str] | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        name: str | None = None,
        work: str | os.PathLike[str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        on_interrupt: OnInterrupt = OnInterrupt.STOP,
    ) -> RunEnd:
        """Run a file of the work folder with its `args`, or a command as a list, to its end.

        Its output is shown as it comes, its outputs are fetched, and its exit code is `.job.code`. `work=""`
        sends no folder. An interrupt stops the job, or leaves it with OnInterrupt.LEAVE.
        """
        ask = flows.Asked(command, args, needs, env, requirements, runtime_env, name, work, cwd)
        end = self._do(partial(flows.run, asked=ask, detach=False, on_interrupt=on_interrupt))
        self._ours.add(end.job.id)
        return end

    def submit(
        self,
        command: str | os.PathLike[str] | Sequence[str],
        *args: object,
        needs: Needs | None = None,
        env: Mapping[str, str] | None = None,
        requirements: str | os.PathLike[str] | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        name: str | None = None,
        work: str | os.PathLike[str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> Job:
        """The same without waiting for its end."""
        ask = flows.Asked(command, args, needs, env, requirements, runtime_env, name, work, cwd)
        end = self._do(partial(flows.run, asked=ask, detach=True, on_interrupt=OnInterrupt.LEAVE))
        self._ours.add(end.job.id)
        return end.job

    def attach(self, job: str | Job, *, on_interrupt: OnInterrupt = OnInterrupt.LEAVE) -> RunEnd:
        """Take up a run that was left: its output from the beginning, its outputs, its exit code."""
        from heliostat.engine.run import attach

        return self._do(partial(attach, job_id=_id(job), on_interrupt=on_interrupt))

    def jobs(self) -> tuple[Job, ...]:
        """All jobs that the cluster knows, oldest first."""
        from heliostat.engine.jobs import jobs

        return self._do(jobs)

    def logs(self, job: str | Job | None = None) -> str:
        """What a job has printed so far; without one, the latest."""
        from heliostat.engine.jobs import logs

        pieces: list[bytes] = []

        def take(event: Event) -> None:
            if isinstance(event, Output):
                pieces.append(event.data)

        self._do(partial(logs, job_id=None if job is None else _id(job), live=False), tell=take)
        return b"".join(pieces).decode(errors="replace")

    def stop(self, *jobs: str | Job) -> tuple[Job, ...]:
        """End these jobs, running or waiting; without one, the only one that has not ended."""
        from heliostat.engine.jobs import stop

        return self._do(partial(stop, ids=[_id(job) for job in jobs]))

    def exec(
        self,
        command: str | Sequence[str],
        nodes: str | Sequence[str] = HEAD,
        *,
        stdin: bytes = b"",
        capture: bool = False,
    ) -> tuple[Executed, ...]:
        """Run a shell's line, or a program with its arguments, on these nodes ("all": on every one).

        One result for each node, whatever its exit code; with `capture` the output is in it.
        """
        words = [command] if isinstance(command, str) else list(command)
        return self._do(partial(flows.execute, words=words, names=_names(nodes), stdin=stdin, keep=capture))

    def push(self, local: str | os.PathLike[str], remote: str, nodes: str | Sequence[str] = HEAD) -> None:
        """Copy a file, or a folder's contents, to that path on these nodes."""
        self._do(partial(flows.push, local=Path(local), remote=remote, names=_names(nodes)))

    def pull(self, remote: str, local: str | os.PathLike[str], nodes: str | Sequence[str] = HEAD) -> None:
        """Bring a file or a folder; from several nodes, each into a folder of its name."""
        self._do(partial(flows.pull, remote=remote, into=Path(local), names=_names(nodes)))

    def kill(self, node: str) -> Ref:
        """Lose a node on purpose, as by a crash; `up` brings it back."""
        from heliostat.engine.nodes import kill

        return self._do(partial(kill, name=node))

    def down(self, *, keep_data: bool = False) -> Proof:
        """Remove it, and prove that nothing is left."""
        from heliostat.engine.lifecycle import down

        return self._do(partial(down, keep_data=keep_data))

    def _do(self, flow: Callable[[Site], Awaitable[T]], *, yes: bool = False, tell: Told | None = None) -> T:
        """Wire a site and run one flow on it, heard in this thread."""
        agreed = self._yes or yes

        def ask(question: str, *, details: Sequence[str] = (), default: bool = False) -> bool:
            del default
            if agreed:
                return True
            fix = "agree with heliostat.cluster(…, yes=True)"
            raise UsageError(f"this needs an answer: {question}", why="; ".join(details), fix=fix)

        async def whole(emit: Emit) -> T:
            return await flow(await wiring.site(self._decoded, emit=emit, ask=ask))

        if tell is not None:
            return call(whole, tell)
        teller = Teller(self._output, self._on_event)
        try:
            return call(whole, teller)
        finally:
            teller.close()


def _id(job: str | Job) -> str:
    return job if isinstance(job, str) else job.id


def _names(nodes: str | Sequence[str]) -> Sequence[str] | None:
    if nodes == ALL:
        return None
    return [nodes] if isinstance(nodes, str) else list(nodes)
