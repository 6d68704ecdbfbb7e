"""Up to 1,000 hosts that are not there: a shell that takes 1 s for each command, whatever it is.

It proves that nothing is done one after the other; it says nothing about Ray, sshd or a network.
"""

from __future__ import annotations

import asyncio
import json
import resource
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from bench.row import Row
from heliostat.core.owner import Owner
from heliostat.core.plan import waves
from heliostat.core.resource import NODE, State
from heliostat.core.spec import Count, Group, Spec, SshSite
from heliostat.engine.ports import Result
from heliostat.grounds.ssh.ground import SshGround
from heliostat.grounds.ssh.hosts import Hosts

LATENCY = 1.0
COUNTS = (16, 64, 256, 1000)
GOAL = 15.0  # seconds for 1,000


def rows(runs: int) -> Iterator[Row]:
    del runs  # latency is simulated: one is like another
    for count in COUNTS:
        began = time.perf_counter()
        asyncio.run(simulated(count))
        taken = time.perf_counter() - began
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        yield Row(
            name=f"{count:,} simulated hosts of {LATENCY:g} s a command, listed, made and started",
            ours=taken,
            limit=GOAL if count == 1000 else None,
            limit_name="the goal for 1,000" if count == 1000 else "",
            note=f"a simulation: no host, no Ray; at most {memory:.0f} MB in this process so far",
        )


def spec_of(cluster: str, hosts: Sequence[str], python: str) -> Spec:
    """One node for each host."""
    workers = Group(name="w", count=Count(low=len(hosts) - 1, high=len(hosts) - 1))
    site = SshSite(hosts=tuple(hosts))
    return Spec(cluster=cluster, where="ssh", python=python, workers=(workers,), ssh=site)


async def simulated(count: int) -> None:
    spec = spec_of("big", [f"n{number}" for number in range(1, count + 1)], "/py")
    ground = SshGround(spec)
    ground._hosts = Nowhere()  # noqa: SLF001 - the way to hosts is what is simulated
    await up(ground, spec, Owner("ssh:me", "big"))


async def up(ground: SshGround, spec: Spec, owner: Owner) -> None:
    """What `up` asks of a place, until all of it is there."""
    await ground.find(owner)
    for wave in waves([replace(one, run="r") for one in ground.want(spec)]):
        async for outcome in ground.create(owner, wave):
            if outcome.error:
                raise outcome.error
    ready = 0
    while ready < sum(one.kind == NODE for one in ground.want(spec)):
        found = await ground.find(owner)
        if broken := [ref.facts.get("why", "") for ref in found if ref.state is State.BROKEN]:
            raise AssertionError(broken[0])
        ready = sum(ref.kind == NODE and ref.state is State.READY for ref in found)


class Nowhere(Hosts):
    """Hosts by the thousand, each a dictionary."""

    def __init__(self) -> None:
        self._there: dict[str, Far] = {}

    async def ask(
        self, host: str, orders: Sequence[Mapping[str, Any]], *, pythons: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """The agent's answers after a second: no program of ours runs there, each is made up."""
        del pythons
        far = self._there.setdefault(host, Far(host))
        line = json.dumps(list(orders)).encode()  # what would travel
        await asyncio.sleep(LATENCY)
        return [{"ok": True, **far.obey(order)} for order in json.loads(line)]

    @asynccontextmanager
    async def shell(self, host: str, *, home: str = "", python: str = "") -> AsyncIterator[Any]:
        del home, python
        yield self._there.setdefault(host, Far(host))


class Far:
    """A shell whose agent answers after a second, as the real one would."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.directory: dict[str, Any] | None = None
        self.nodes: dict[str, Any] = {}

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_output: Callable[[str, bytes], None] | None = None,
    ) -> Result:
        del env, cwd, on_output, stdin
        await asyncio.sleep(LATENCY)
        return Result(0, b"token") if command[0] == "cat" else Result(127)

    def obey(self, order: Mapping[str, Any]) -> dict[str, Any]:
        home = f"/home/me/{self.host}"
        if order["do"] == "make":
            label = json.loads(order["label"])
            self.directory = {"path": home, "label": label, "made": 0.0, "id": order["id"]}
        elif order["do"] == "converge":
            label = {**order["label"], "facts": {**order["label"]["facts"], "home": home}}
            ports = {"gcs": 1, "dashboard": 2}
            self.nodes[order["key"]] = {
                "label": label,
                "ports": ports,
                "ip": "10.0.0.1",
                "why": "",
                "phase": "up",
            }
        return {
            "python": "/py",
            "nodes": list(self.nodes.values()),
            "directories": [self.directory] if self.directory else [],
            "hosts": [],
        }
