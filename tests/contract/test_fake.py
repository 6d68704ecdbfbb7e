"""The fake place keeps the contract, also with listings that lag: what is proved on it is worth something."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from heliostat.core.resource import Ref
from heliostat.core.spec import Count, Group, Node, Spec
from heliostat.engine.ports import Shell
from heliostat.shells.local import LocalShell
from heliostat.testing.contract import GroundContract, Harness
from heliostat.testing.fake import Client, FakeGround, FakePlace, Faults, run

T = TypeVar("T")


class FakeHarness(Harness):
    def __init__(self, folder: Path, faults: Faults) -> None:
        super().__init__()
        self.place = FakePlace(faults)
        self.folder = folder

    def ground(self) -> FakeGround:
        return FakeGround(self.place, Client(self.place), self._shell)

    def _shell(self, ref: Ref) -> Shell:
        home = self.folder / ref.owner.id / ref.key
        home.mkdir(parents=True, exist_ok=True)
        return LocalShell(home=str(home))

    def spec(self, cluster: str, workers: int = 1) -> Spec:
        count = Count(low=workers, high=workers)
        groups = (Group(name="cpu", count=count, node=Node(cpus=1)),) if workers else ()
        return Spec(cluster=cluster, workers=groups)

    def changed(self, spec: Spec) -> Spec:
        return replace(spec, ray="2.61.0")

    def unmakeable(self, spec: Spec) -> Spec:
        self.place.faults.capacity = 0
        return spec

    async def break_node(self, node: Ref) -> None:
        self.place.break_node(node.owner, node.key)

    def python(self, node: Ref) -> str:
        return sys.executable

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        return run(main)


class TestFakeGround(GroundContract):
    @pytest.fixture(params=[0.0, 3.0], ids=["", "listings lag"])
    def harness(self, request: pytest.FixtureRequest, tmp_path: Path) -> FakeHarness:
        return FakeHarness(tmp_path, Faults(lag=request.param, latency=0.01))
