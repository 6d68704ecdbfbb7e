"""One real cluster for all tests here: a head and a worker with a resource of its own, on this machine."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from heliostat.core.errors import Unavailable
from heliostat.core.job import Job, JobRequest, JobState, Needs
from heliostat.core.owner import Owner
from heliostat.core.resource import HEAD, NODE, Ref
from heliostat.core.spec import Count, Group, Node, Spec
from heliostat.engine.ports import RayApi
from heliostat.grounds.local.ground import LocalGround
from heliostat.ray.connect import connect

SPEC = Spec(
    cluster="rayapi",
    head=Node(cpus=2),
    workers=(Group(name="spot", count=Count(low=1, high=1), node=Node(cpus=1, resources={"spot": 1})),),
)


@dataclass(frozen=True)
class Cluster:
    """A cluster that is up, and how to talk to it."""

    owner: Owner
    ground: LocalGround

    async def ref(self, name: str = HEAD) -> Ref:
        return next(one for one in await self.ground.find(self.owner) if one.kind == NODE and one.key == name)

    @asynccontextmanager
    async def api(self) -> AsyncIterator[RayApi]:
        async with connect(self.ground, await self.ref()) as api:
            yield api

    async def up(self) -> None:
        """Make what is missing, and wait for Ray's own list."""
        async for outcome in self.ground.create(self.owner, self.ground.want(SPEC)):
            assert outcome.ok, outcome.error
        async with asyncio.timeout(90):
            while not await self._complete():  # noqa: ASYNC110  # Ray's list is another program's
                await asyncio.sleep(0.1)

    async def _complete(self) -> bool:
        try:
            async with self.api() as api:
                return sum(node.alive for node in await api.nodes()) == 2
        except (Unavailable, KeyError):
            return False

    async def down(self) -> None:
        async with asyncio.timeout(60):
            while refs := await self.ground.find(self.owner):
                async for outcome in self.ground.delete(refs):
                    assert outcome.ok, outcome.error


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pytest.importorskip("ray", reason="Ray is not installed here (pip install 'heliostat[local]')")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HELIO_DATA", str(tmp_path_factory.mktemp("data")))
        ground = LocalGround()
        principal = asyncio.run(ground.principal(SPEC))
        made = Cluster(Owner(principal, f"rayapi-{os.getpid()}"), ground)
        try:
            asyncio.run(made.up())
            yield made
        finally:
            asyncio.run(made.down())


@pytest.fixture
def talk(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a scene against the cluster, within a deadline."""

    def run(scene: Callable[[RayApi], Coroutine[Any, Any, Any]], deadline: float = 90) -> Any:
        async def limited() -> Any:
            async with asyncio.timeout(deadline), cluster.api() as api:
                return await scene(api)

        return asyncio.run(limited())

    return run


def asked(entrypoint: str, *, needs: Needs | None = None, **env: str) -> JobRequest:
    return JobRequest(
        id=f"t-{secrets.token_hex(4)}",
        entrypoint=entrypoint,
        runtime_env={"env_vars": env} if env else {},
        needs=needs or Needs(),
    )


async def ran(api: RayApi, request: JobRequest) -> tuple[bytes, Job]:
    """Submit, follow to the end, and what Ray says then."""
    await api.submit(request)
    output = b"".join([chunk async for chunk in api.follow(request.id)])
    (job,) = await api.jobs(request.id)
    return output, job


async def until(condition: Callable[[], Awaitable[bool]], what: str, deadline: float = 30) -> None:
    try:
        async with asyncio.timeout(deadline):
            while not await condition():  # noqa: ASYNC110  # what is waited for is another program's state
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"waited {deadline} s for: {what}") from None


async def running(api: RayApi, request: JobRequest) -> None:
    """Submit, and wait until the driver runs."""
    await api.submit(request)

    async def runs() -> bool:
        return (await api.jobs(request.id))[0].state is JobState.RUNNING

    await until(runs, f"{request.id} to run")
