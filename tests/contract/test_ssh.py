"""The SSH ground keeps the contract on real hosts, with real processes of Ray."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from heliostat.core.resource import Ref
from heliostat.core.spec import Count, Group, Node, Spec, SshSite
from heliostat.grounds.ssh.ground import SshGround
from heliostat.testing.contract import GroundContract, Harness
from tests.rig import ray_python
from tests.rig.host import Host
from tests.rig.rig import Rig, wait_until

pytestmark = [pytest.mark.ray, pytest.mark.rig]

SMALL = Node(cpus=1, memory=300_000_000, shm=100_000_000)


def idle(host: Host) -> bool:
    return host.processes() == []


class SshHarness(Harness):
    shared = True
    patience = 120.0

    def __init__(self, hosts: list[Host]) -> None:
        super().__init__()
        self.hosts = {host.name: host for host in hosts}
        self.grounds: list[SshGround] = []

    def ground(self) -> SshGround:
        made = SshGround(self.spec("any"))
        self.grounds.append(made)
        return made

    def spec(self, cluster: str, workers: int = 1) -> Spec:
        groups = (Group(name="w", count=Count(low=workers, high=workers), node=SMALL),) if workers else ()
        return Spec(
            cluster=cluster,
            where="ssh",
            head=SMALL,
            workers=groups,
            python=ray_python.PYTHON,
            ssh=SshSite(hosts=tuple(self.hosts)),
        )

    def changed(self, spec: Spec) -> Spec:
        return replace(spec, env={"CHANGED": "1"})

    def unmakeable(self, spec: Spec) -> Spec:
        return replace(spec, python="/no/such/python")

    async def break_node(self, node: Ref) -> None:
        its = f"[p]ython -I -S .*{node.owner.id}/.*/nodes/{node.key}/config.json"  # which is not pkill itself
        self.hosts[node.facts["host"]].sh(f"pkill -KILL -f '{its}'")

    def close(self) -> None:
        super().close()
        for ground in self.grounds:
            ground.close()


@pytest.fixture(scope="module")
def ssh(rig: Rig) -> Iterator[SshHarness]:
    if lacking := ray_python.missing():
        pytest.skip(f"hosts need {lacking}")
    made = SshHarness(rig.new(3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HELIO_SSH_CONFIG", str(rig.config))
        patch.setenv("HELIO_STATE", str(rig.folder / "state"))
        yield made
        made.close()


class TestSshGround(GroundContract):
    @pytest.fixture
    def harness(self, ssh: SshHarness, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> SshHarness:
        """The checks share hosts, so they share what is known about them."""
        monkeypatch.setenv("HELIO_STATE", str(rig.folder / "state"))
        return ssh

    def test_hosts_are_as_they_were(self, ssh: SshHarness) -> None:
        ssh.close()
        for host in ssh.hosts.values():
            wait_until(partial(idle, host), f"nothing runs on {host.name}")
            assert host.listens() == []
            assert host.sh("ls -A /home/lab/.local/share /tmp /dev/shm") == (
                "/dev/shm:\n\n/home/lab/.local/share:\n\n/tmp:\n"
            )
