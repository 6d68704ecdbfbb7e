"""The local ground keeps the contract, with real processes of Ray."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest

from heliostat.core.resource import Ref
from heliostat.core.spec import Count, Group, Node, Spec
from heliostat.grounds.local.find import processes
from heliostat.grounds.local.ground import LocalGround
from heliostat.ray.node_program.processes import tell
from heliostat.testing.contract import GroundContract, Harness

pytestmark = pytest.mark.ray


class LocalHarness(Harness):
    shared = True

    def __init__(self, data: str) -> None:
        super().__init__()
        self.data = data

    def ground(self) -> LocalGround:
        return LocalGround()

    def spec(self, cluster: str, workers: int = 1) -> Spec:
        count = Count(low=workers, high=workers)
        groups = (Group(name="w", count=count, node=Node(cpus=1)),) if workers else ()
        return Spec(cluster=cluster, head=Node(cpus=1), workers=groups)

    def changed(self, spec: Spec) -> Spec:
        return replace(spec, env={"CHANGED": "1"})

    def unmakeable(self, spec: Spec) -> Spec:
        return replace(spec, python="/no/such/python")

    async def break_node(self, node: Ref) -> None:
        seen = processes(node.owner)[node.owner.cluster or "", node.key]
        tell([*([seen.supervisor] if seen.supervisor else []), *seen.others], signal.SIGKILL)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalHarness]:
    pytest.importorskip("ray", reason="Ray is not installed here (pip install 'heliostat[local]')")
    made = LocalHarness(str(tmp_path_factory.mktemp("data")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HELIO_DATA", made.data)
        yield made
        made.close()


class TestLocalGround(GroundContract):
    @pytest.fixture
    def harness(self, local: LocalHarness, monkeypatch: pytest.MonkeyPatch) -> LocalHarness:
        """The checks share a cluster, so they share a home too."""
        monkeypatch.setenv("HELIO_DATA", local.data)
        return local
