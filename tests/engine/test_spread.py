"""Our own uplink carries contents once; nodes bring the rest to one another, and only to one another."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

from heliostat.core.resource import Ref
from heliostat.engine.sync.copy import push
from heliostat.engine.sync.there import spread as there
from heliostat.engine.sync.there.store import Store
from heliostat.engine.sync.work import run_dir, send_work
from heliostat.testing.shell_contract import tree
from tests.engine.ground import Disks, site_of

LARGE = 3_000_000


class Neighbours(Disks):
    """Nodes that reach one another, or are told a wrong address."""

    at = "127.0.0.1"

    def meeting(self, node: Ref) -> str:
        del node
        return self.at


def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    (made / "large").write_bytes(os.urandom(LARGE))
    for number in range(300):
        (made / f"{number}").write_bytes(os.urandom(2000))
    (made / "0").chmod(0o755)
    return made


async def test_a_push_leaves_here_once(tmp_path: Path) -> None:
    disks, data = Neighbours(tmp_path / "disks"), folder(tmp_path)
    nodes = [disks.node(name) for name in ("head", "cpu-1", "cpu-2")]
    wires = [disks.wire(node) for node in nodes]
    copied = await push(site_of(disks), nodes, data, "data")
    assert [one.moved_bytes > LARGE for one in copied] == [True, False, False]
    assert wires[0].sent > LARGE
    assert max(wire.sent for wire in wires[1:]) < 400_000
    for node in ("head", "cpu-1", "cpu-2"):
        got = disks.folder / node / "account" / "data"
        assert tree(got) == tree(data)
        assert stat.S_IMODE((got / "0").stat().st_mode) == 0o755
        assert not os.listdir(disks.folder / node / "store" / "packs"), "it stands at its place alone"


async def test_a_run_s_work_leaves_here_once(tmp_path: Path) -> None:
    disks, data = Neighbours(tmp_path / "disks"), folder(tmp_path)
    nodes = [disks.node(name) for name in ("head", "cpu-1")]
    wires = [disks.wire(node) for node in nodes]
    await send_work(site_of(disks), nodes, data, "r1")
    assert wires[0].sent > LARGE > 400_000 > wires[1].sent
    for node in nodes:
        assert tree(Path(run_dir(node, "r1"), "work")) == tree(data)


async def test_what_nodes_cannot_bring_one_another_comes_from_here(tmp_path: Path) -> None:
    disks, data = Neighbours(tmp_path / "disks"), folder(tmp_path)
    disks.at = "192.0.2.1"  # nobody has it
    nodes = [disks.node(name) for name in ("head", "cpu-1")]
    await push(site_of(disks), nodes, data, "data")
    for node in ("head", "cpu-1"):
        assert tree(disks.folder / node / "account" / "data") == tree(data)


def test_who_does_not_know_the_secret_gets_nothing(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.make()
    ours, theirs = socket.socketpair()
    with ours, theirs, theirs.makefile("rwb") as stream:
        stream.write(os.urandom(32) + os.urandom(32))
        stream.flush()
        there._serve(store, {"secret": "ab" * 32, "session": "s"}, ours)
        assert len(stream.read()) == 64, "its greeting and its proof, and no more"
