"""The Compose ground keeps the contract on a real engine, with containers in which Ray runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from heliostat.core.resource import Ref
from heliostat.core.spec import Count, Docker, Group, Node, Spec
from heliostat.grounds.compose.ground import ComposeGround
from heliostat.testing.contract import GroundContract, Harness
from tests.rig.docker import RAY_IMAGE, Engine

pytestmark = [pytest.mark.docker, pytest.mark.ray, pytest.mark.slow]

SMALL = Node(cpus=1, shm=200_000_000)


class ComposeHarness(Harness):
    shared = True
    patience = 120.0

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine

    def ground(self) -> ComposeGround:
        return ComposeGround()

    def spec(self, cluster: str, workers: int = 1) -> Spec:
        groups = (Group(name="w", count=Count(low=workers, high=workers), node=SMALL),) if workers else ()
        return Spec(
            cluster=cluster,
            where="compose",
            image=RAY_IMAGE,
            docker=Docker(pull="never"),
            head=SMALL,
            workers=groups,
        )

    def changed(self, spec: Spec) -> Spec:
        return replace(spec, env={"CHANGED": "1"})

    def unmakeable(self, spec: Spec) -> Spec:
        return replace(spec, volumes={"/no/such/folder": "/data"})

    async def break_node(self, node: Ref) -> None:
        self.engine.docker("kill", node.id)


@pytest.fixture(scope="module")
def harness_of_engine(engine: Engine) -> Iterator[ComposeHarness]:
    made = ComposeHarness(engine)
    yield made
    made.close()
    ours = ("--filter", "label=heliostat.kind", "-q")
    left = [engine.docker(kind, "ls", *ours) for kind in ("volume", "network")]
    assert [engine.docker("container", "ls", "-a", *ours), *left] == ["", "", ""]


class TestComposeGround(GroundContract):
    @pytest.fixture
    def harness(self, harness_of_engine: ComposeHarness) -> ComposeHarness:
        return harness_of_engine
