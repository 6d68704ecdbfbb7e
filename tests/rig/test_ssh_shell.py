"""The SSH shell keeps its contract on real hosts, and says in our words what can go wrong with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from heliostat.core.owner import Owner
from heliostat.core.resource import HEAD, NODE, Outcome, Ref, Resource
from heliostat.core.spec import Spec
from heliostat.engine.ports import Shell
from heliostat.shells.ssh.link import Pool
from heliostat.shells.ssh.shell import SshShell
from heliostat.shells.ssh.words import Way
from heliostat.testing.contract import Harness, ShellContract
from tests.rig.host import Host
from tests.rig.rig import Rig, wait_until

pytestmark = pytest.mark.rig


class Hosts:
    """A place that is no more than one host: enough for the checks of the shell."""

    def __init__(self, pool: Pool, way: Way) -> None:
        self.pool, self.way = pool, way

    def want(self, _spec: Spec) -> tuple[Resource, ...]:
        return ()

    async def find(self, _owner: Owner) -> tuple[Ref, ...]:
        return ()

    async def create(self, _owner: Owner, _wanted: Sequence[Resource]) -> AsyncIterator[Outcome]:
        raise NotImplementedError
        yield  # an asynchronous iterator, as the port asks

    async def delete(self, _refs: Sequence[Ref]) -> AsyncIterator[Outcome]:
        raise NotImplementedError
        yield  # an asynchronous iterator, as the port asks

    async def principal(self, _spec: Spec) -> str:
        return "lab"

    @asynccontextmanager
    async def shell(self, _node: Ref) -> AsyncIterator[Shell]:
        shell = SshShell(self.pool, self.way)
        await shell.open()
        yield shell


class ShellHarness(Harness):
    shared = True

    def __init__(self, place: Hosts) -> None:
        super().__init__()
        owner = Owner("lab", "c")
        self.place = place
        self.kept = (owner, Ref(kind=NODE, key=HEAD, id="1", owner=owner))

    def ground(self) -> Hosts:
        return self.place

    def spec(self, cluster: str, workers: int = 1) -> Spec:
        raise NotImplementedError

    def changed(self, spec: Spec) -> Spec:
        raise NotImplementedError

    async def break_node(self, node: Ref) -> None:
        raise NotImplementedError

    def python(self, node: Ref) -> str:
        return "/usr/bin/python3"


@pytest.fixture(scope="module")
def way(rig: Rig) -> Way:
    return Way(host=rig.new()[0].name, config=str(rig.config))


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    made = Pool(tmp_path / "pins")
    yield made
    made.close()


@pytest.fixture(scope="module")
def loud(rig: Rig, way: Way) -> Way:
    host = rig.new()[0]
    host.noise()
    return replace(way, host=host.name)


class TestSshShell(ShellContract):
    @pytest.fixture
    def harness(self, pool: Pool, way: Way) -> ShellHarness:
        return ShellHarness(Hosts(pool, way))


class TestSshShellOfNoisyHosts(ShellContract):
    """Start-up files that print: not a byte of it is taken for a command's output."""

    # There a person sees what the host says.
    test_attaching_is_a_command_of_this_machine = None  # type: ignore[assignment]  # not a check here

    @pytest.fixture
    def harness(self, pool: Pool, loud: Way) -> ShellHarness:
        return ShellHarness(Hosts(pool, loud))


def logins(host: Host) -> set[str]:
    """The processes of sshd that serve somebody's login."""
    return set(host.sh("pgrep -f '^sshd: lab$|^sshd: lab@' || true").split())


def test_a_connection_is_kept_for_the_next_command(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one that has died meanwhile, and none where we leave."""
    monkeypatch.setenv("HELIO_SSH_KEEP", "60")
    host = rig.new()[0]
    way = Way(host=host.name, config=str(rig.config))

    def command(*, leaves: bool = False) -> set[str]:
        pool = Pool(tmp_path / "pins")

        async def play() -> set[str]:
            result = await SshShell(pool, way).run(["echo", "hi"])
            assert (result.code, result.out) == (0, b"hi\n")
            return logins(host)

        if leaves:
            pool.leave(host.name)
        seen = asyncio.run(play())
        pool.close()
        return seen

    first = command()
    assert command() == first
    host.end_connections()
    wait_until(lambda: not first & logins(host), "it is broken")
    third = command()
    assert not third & first
    assert command(leaves=True) == third
    wait_until(lambda: not logins(host), "it ended with the command")
