"""Two clusters of ours beside somebody else's Ray: separate processes, as people start them."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from bench.bare import Bare
from heliostat.core.job import Job, JobRequest
from heliostat.core.owner import Owner
from heliostat.core.resource import HEAD, NODE, Ref
from heliostat.engine.ports import RayApi
from heliostat.grounds.local.ground import LocalGround
from heliostat.grounds.local.places import principal
from heliostat.ray.connect import connect

ROOT = Path(__file__).parents[2]
WAIT = 60.0


@dataclass
class Person:
    """Somebody with a home of their own, where a `ray.init()` has left its token for all to read."""

    home: Path
    clusters: list[str] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def env(self) -> dict[str, str]:
        mine = {
            "HOME": str(self.home),
            "HELIO_DATA": str(self.data),
            "HELIO_STATE": str(self.home / "state"),
            "PYTHONPATH": str(ROOT / "src"),
        }
        return {**os.environ, **mine}

    def helio(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "heliostat", *words],
            cwd=self.home,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def start(self, cluster: str, text: str) -> subprocess.Popen[bytes]:
        """`helio up`, without waiting for it."""
        self.clusters.append(cluster)
        (self.home / f"{cluster}.yaml").write_text(f"cluster: {cluster}\n{text}")
        words = ["up", "--yes", "-f", f"{cluster}.yaml"]
        with (self.home / f"{cluster}.log").open("wb") as log:
            argv = [sys.executable, "-m", "heliostat", *words]
            return subprocess.Popen(argv, cwd=self.home, env=self.env, stdin=-3, stdout=log, stderr=log)

    def owner(self, cluster: str) -> Owner:
        return Owner(principal(), cluster)

    async def head(self, cluster: str) -> Ref:
        refs = await LocalGround().find(self.owner(cluster))
        return next(ref for ref in refs if ref.kind == NODE and ref.key == HEAD)

    def ask(self, cluster: str, scene: Callable[[RayApi], Awaitable[Any]]) -> Any:
        """Talk to a cluster of ours by its REST API."""

        async def story() -> Any:
            async with asyncio.timeout(WAIT), connect(LocalGround(), await self.head(cluster)) as api:
                return await scene(api)

        return asyncio.run(story())

    def run(self, cluster: str, job: str, code: str, **env: str) -> tuple[str, Job]:
        """A job of Python text, to its end."""

        async def scene(api: RayApi) -> tuple[str, Job]:
            await api.submit(request(job, code, env))
            output = b"".join([chunk async for chunk in api.follow(job)])
            (ended,) = await api.jobs(job)
            return output.decode(), ended

        found: tuple[str, Job] = self.ask(cluster, scene)
        return found

    def begin(self, cluster: str, job: str, code: str, **env: str) -> None:
        """A job of Python text that has started, and printed `ready`."""

        seen = bytearray()

        async def scene(api: RayApi) -> bool:
            await api.submit(request(job, code, env))
            async with aclosing(cast(AsyncGenerator[bytes, None], api.follow(job))) as output:
                async for chunk in output:
                    seen.extend(chunk)
                    if b"ready\n" in seen:
                        return True
            return False

        try:
            ready = self.ask(cluster, scene)
        except TimeoutError:
            ready = False
        assert ready, f"{job} did not get ready; it said:\n{seen.decode()}"


def request(job: str, code: str, env: Mapping[str, str]) -> JobRequest:
    entry = f"python -c {shlex.quote(code)}"
    return JobRequest(id=job, entrypoint=entry, runtime_env={"env_vars": dict(env)} if env else {})


@dataclass(frozen=True)
class Shown:
    """One process as /proc shows it."""

    pid: int
    start: str
    cmdline: bytes
    environ: bytes

    @property
    def alive(self) -> bool:
        return any(one.pid == self.pid and one.start == self.start for one in shown())


def shown() -> Iterator[Shown]:
    """Every process that can be looked into."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                found = ((entry / "cmdline").read_bytes(), (entry / "environ").read_bytes())
            except OSError:
                continue
            if stat[0] != "Z":
                yield Shown(int(entry.name), stat[19], *found)


def sockets(pids: set[int]) -> list[tuple[str, int]]:
    """(address, pid) of every TCP and UDP socket of these that waits for somebody."""
    found = []
    for flags in ("-ltnpH", "-lunpH"):
        out = subprocess.run(["ss", flags], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            words = line.split()
            holders = {int(part.partition(",")[0]) for part in line.split("pid=")[1:]}
            found += [(words[3], pid) for pid in holders & pids]
    return found


def foreign() -> Bare:
    """Somebody else's Ray: a head by `ray start`, with directories, ports and a token of its own."""
    return Bare(workers=0)
