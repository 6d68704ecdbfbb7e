"""exec over many nodes: how many at once, in which order, and what cancelling does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from heliostat.core.errors import Unavailable, UsageError
from heliostat.core.event import Output
from heliostat.core.resource import Ref
from heliostat.engine.execute import AT_ONCE, execute
from heliostat.engine.ports import Result, Shell, Site
from heliostat.testing.fake import FakePlace, fake_site
from tests.engine.worlds import Events, spec, stand


@dataclass
class Machines:
    """All that the shells of one place share: each command takes a second and says its node's name."""

    running: int = 0
    most: int = 0
    ended: list[str] = field(default_factory=list)
    codes: Mapping[str, int] = field(default_factory=dict)
    cut: frozenset[str] = frozenset()

    def shell(self, ref: Ref) -> Shell:
        return FakeShell(self, ref.key)


@dataclass
class FakeShell:
    """A node that runs any command."""

    machines: Machines
    node: str

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_output: Callable[[str, bytes], None] | None = None,
    ) -> Result:
        machines = self.machines
        machines.running += 1
        machines.most = max(machines.most, machines.running)
        try:
            await asyncio.sleep(1.0)
            if self.node in machines.cut:
                raise Unavailable("the connection broke off")
        finally:
            machines.running -= 1
            machines.ended.append(self.node)
        text = f"{self.node} {command[-1]}\n".encode()
        if on_output is None:
            return Result(machines.codes.get(self.node, 0), text)
        on_output("stdout", text)
        return Result(machines.codes.get(self.node, 0))

    async def push(self, local: str, remote: str) -> None:
        raise NotImplementedError

    async def pull(self, remote: str, local: str) -> None:
        raise NotImplementedError

    def forward(self, host: str, port: int) -> AbstractAsyncContextManager[tuple[str, int]]:
        @asynccontextmanager
        async def none() -> AsyncIterator[tuple[str, int]]:
            yield host, port

        return none()

    def attach(self, command: Sequence[str] = ()) -> tuple[tuple[str, ...], Mapping[str, str]]:
        return tuple(command), {}


def env_of(ref: Ref, head: Ref | None) -> Mapping[str, str]:
    return {"NODE": ref.key, "HEAD": head.key if head else ""}


async def world(machines: Machines, *, cpu: int, emit: Events | None = None) -> Site:
    place = FakePlace()
    site = fake_site(
        spec(cpu=cpu), place=place, shells=machines.shell, emit=Events() if emit is None else emit
    )
    await stand(place, site.owner, site.spec)
    return site


async def test_all_nodes_run_side_by_side_but_not_too_many() -> None:
    machines, events = Machines(), Events()
    site = await world(machines, cpu=99, emit=events)
    before = site.clock.monotonic()
    results = await execute(site, ["say", "hi"], None, env_of=env_of)
    assert [each.node for each in results] == ["head", *(f"cpu-{n}" for n in range(1, 100))]
    assert machines.most == AT_ONCE
    assert site.clock.monotonic() - before < 5
    told = {(e.source, e.data) for e in events if isinstance(e, Output)}
    assert ("cpu-42", b"cpu-42 hi\n") in told
    assert len(told) == 100


async def test_output_is_kept_when_asked_for() -> None:
    events = Events()
    site = await world(Machines(codes={"cpu-1": 3}), cpu=1, emit=events)
    head, worker = await execute(site, ["say", "hi"], None, env_of=env_of, keep=True)
    assert (head.out, head.code) == (b"head hi\n", 0)
    assert (worker.out, worker.code) == (b"cpu-1 hi\n", 3)
    assert not events.of(Output)


async def test_a_connection_that_breaks_is_that_nodes_alone() -> None:
    site = await world(Machines(cut=frozenset({"cpu-1"})), cpu=2)
    results = await execute(site, ["say", "hi"], None, env_of=env_of)
    assert [each.code for each in results] == [0, None, 0]
    with pytest.raises(Unavailable, match="broke off"):
        await execute(site, ["say", "hi"], ["cpu-1"], env_of=env_of)


async def test_cancelling_ends_it_everywhere() -> None:
    machines = Machines()
    site = await world(machines, cpu=3)
    task = asyncio.ensure_future(execute(site, ["say"], None, env_of=env_of))
    await asyncio.sleep(0.5)
    assert machines.running == 4
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (machines.running, sorted(machines.ended)) == (0, ["cpu-1", "cpu-2", "cpu-3", "head"])


async def test_no_command_is_an_error() -> None:
    site = await world(Machines(), cpu=1)
    with pytest.raises(UsageError, match="nothing to run"):
        await execute(site, [], None, env_of=env_of)
