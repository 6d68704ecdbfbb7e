"""Two clusters of ours and a foreign `ray start` on one machine: who sees, hinders, ends and asks whom."""

from __future__ import annotations

import asyncio
import http.client
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.bare import Bare
from bench.rest import wait
from heliostat.grounds.local.places import temp_base, temp_of
from heliostat.ray.node_program.processes import LABEL
from tests.local.neighbours import Person, Shown, foreign, shown, sockets

pytestmark = pytest.mark.ray

ONE = "head: { cpus: 2 }\nworkers: { w: { count: 1, cpus: 1, resources: { far: 2 } } }\n"
TWO = "head: { cpus: 1 }\nworkers: { w: { count: 1, cpus: 1 } }\nenv: { WHOSE: two }\n"

WHERE = """
import os, ray
ray.init()
names = sorted(n["NodeName"] for n in ray.nodes() if n["Alive"])
print(names, os.environ.get("WHOSE"), os.environ["HELIO_LABEL"].count('"cluster":"%s"'))
"""

# Objects travel both ways between two nodes, an actor lives on the far one, and then it waits at a pipe.
BUSY = """
import os, ray
ray.init()
@ray.remote(resources={"far": 1})
def made(): return bytes(20_000_000)
@ray.remote(num_cpus=0, resources={"far": 1})
class Keeper:
    def take(self, data): return len(data)
keeper = Keeper.remote()
print(len(ray.get(made.remote())), ray.get(keeper.take.remote(bytes(20_000_000))))
print("ready", flush=True)
open(os.environ["GATE"]).read()
"""

# A Ray of the job's own, without us knowing.
NESTED_RAY = """
import os, ray
ray.init(address="local", num_cpus=1, include_dashboard=False)
print(ray.get(ray.remote(lambda: 7).remote()), len(ray.nodes()))
print("ready", flush=True)
open(os.environ["GATE"]).read()
"""

NESTED_HELIO = """
import subprocess, sys
done = subprocess.run([sys.executable, "-m", "heliostat", "up", "--yes", "--set", "cluster=nested",
    "--set", "workers=0"], cwd="/", capture_output=True, text=True)
print(done.returncode, done.stderr[-500:])
"""


class Street:
    """Everything that stands here during these tests."""

    def __init__(self, person: Person, other: Bare, before: set[int]) -> None:
        self.person = person
        self.other = other
        self.before = before  # pids of before anything was started

    def ours(self, cluster: str) -> list[Shown]:
        """What carries that cluster's label."""
        mark = f'"cluster":"{cluster}"'.encode()
        return [one for one in shown() if LABEL.encode() in one.environ and mark in one.environ]

    def gate(self, name: str) -> str:
        path = self.person.home / name
        os.mkfifo(path)
        return str(path)

    def token(self, cluster: str) -> str:
        (path,) = (self.person.data / "local").glob(f"{cluster}-*/token")
        return path.read_text()


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    pytest.importorskip("ray", reason="Ray is not installed here (pip install 'heliostat[local]')")
    person = Person(tmp_path_factory.mktemp("home"))
    (person.home / ".ray").mkdir()
    (person.home / ".ray" / "auth_token").write_text("left-by-somebodys-ray-init")
    (person.home / ".ray" / "auth_token").chmod(0o644)
    before = {one.pid for one in shown()}
    other = foreign()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HELIO_DATA", str(person.data))
        try:
            other.up()
            ups = [person.start("one", ONE), person.start("two", TWO)]
            for up, cluster in zip(ups, person.clusters, strict=True):
                assert up.wait(120) == 0, (person.home / f"{cluster}.log").read_text()
            yield Street(person, other, before)
        finally:
            for cluster in [*person.clusters, "nested"]:
                person.helio("down", "--yes", "--set", f"cluster={cluster}")
            other.down()


@pytest.fixture(autouse=True)
def own_data(street: Street, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELIO_DATA", str(street.person.data))


def test_each_is_a_cluster_of_its_own(street: Street) -> None:
    for cluster, whose in (("one", "None"), ("two", "two")):
        said, job = street.person.run(cluster, "where", WHERE % cluster)
        assert job.code == 0, said
        assert f"['head', 'w-1'] {whose} 1\n" in said
    assert street.other.verified()
    listed = street.person.helio("ls").stdout
    assert "one" in listed
    assert "two" in listed


def test_who_has_no_token_or_a_wrong_one_is_refused(street: Street) -> None:
    wrong = ["", "left-by-somebodys-ray-init", street.other.token, street.token("two"), "0" * 64]
    address = asyncio.run(street.person.head("one")).facts["dashboard"]
    host, _, number = address.rpartition(":")

    def answer(method: str, path: str, token: str, body: str | None = None) -> int:
        line = http.client.HTTPConnection(host, int(number), timeout=10)
        line.request(method, path, body, {"Authorization": f"Bearer {token}"} if token else {})
        return line.getresponse().status

    for path in ("/api/version", "/api/jobs/", "/api/v0/nodes", "/nodes?view=summary", "/api/cluster_status"):
        assert {answer("GET", path, token) for token in wrong} <= {401, 403}, path
        assert answer("GET", path, street.token("one")) == 200, path
    for token in wrong:
        assert answer("POST", "/api/jobs/", token, '{"entrypoint": "true"}') in (401, 403)


def test_nothing_listens_beyond_loopback_while_objects_travel(street: Street) -> None:
    gate = street.gate("busy")
    street.person.begin("one", "busy", BUSY, GATE=gate)
    pids = {one.pid for cluster in ("one", "two") for one in street.ours(cluster)}
    names = {name for pid in pids if (name := Path(f"/proc/{pid}/comm").read_text().strip())}
    assert {"raylet", "gcs_server"} <= names
    listening = sockets(pids)
    assert len(listening) > 20, "Ray has many ports; seeing few means looking at the wrong processes"
    beyond = [one for one in listening if not one[0].startswith(("127.", "[::1]", "[::ffff:127."))]
    assert beyond == []
    Path(gate).write_text("go on")


def test_the_token_is_nowhere_but_in_its_own_file(street: Street) -> None:
    for cluster in ("one", "two"):
        token = street.token(cluster).encode()
        told = [one.cmdline for one in shown() if token in one.cmdline or token in one.environ]
        assert told == [], "in a command line or an environment"
        folders = [street.person.home, Path(temp_base()), Path("/tmp/ray")]
        holders = [path for folder in folders for path in files(folder) if token in read(path)]
        assert [path.name for path in holders] == ["token"], "in a log, a label or a state"
        assert stat.S_IMODE(holders[0].stat().st_mode) == 0o600
        temp = Path(temp_of(street.person.owner(cluster)))
        for folder in (holders[0].parent, temp):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder


def files(folder: Path) -> Iterator[Path]:
    for top, _, names in os.walk(folder):
        yield from (Path(top, name) for name in names)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else b""
    except OSError:  # it has just gone
        return b""


def test_a_ray_or_a_cluster_that_a_job_starts_is_not_ours(street: Street) -> None:
    gate = street.gate("nested-ray")
    street.person.begin("one", "nested-ray", NESTED_RAY, GATE=gate)
    env = {"HELIO_DATA": str(street.person.data), "HELIO_STATE": str(street.person.home / "state")}
    said, _ = street.person.run("one", "nested-helio", NESTED_HELIO, **env)
    assert said.startswith("0 "), said
    status = street.person.helio("status", "-f", "one.yaml")
    assert status.returncode == 0, status.stdout
    assert status.stdout.count(" alive ") == 2, status.stdout
    assert {one.cmdline for one in street.ours("nested")}, "it has a label of its own"


def test_after_both_downs_the_others_live_and_nothing_of_ours_does(street: Street) -> None:
    theirs = [one for one in shown() if one.pid in street.other.processes()]
    nested = street.ours("nested")
    ours = {one.pid for cluster in ("one", "two", "nested") for one in street.ours(cluster)}
    listened = {port(address) for address, _ in sockets(ours)}
    assert len(listened) > 20
    down = street.person.helio("down", "--yes", "-f", "one.yaml")
    assert down.returncode == 0, down.stderr
    assert street.ours("one") == []
    assert street.person.helio("status", "-f", "two.yaml").returncode == 0
    nested_too = street.person.helio("status", "--set", "cluster=nested", "--set", "workers=0")
    assert nested_too.returncode == 0, "what a job started as a cluster of its own is one"
    assert [one for one in nested if not one.alive] == []
    for cluster in ("two", "nested"):
        down = street.person.helio("down", "--yes", "--set", f"cluster={cluster}", "--set", "workers=0")
        assert down.returncode == 0, down.stderr
    assert [one for one in theirs if not one.alive] == []
    assert street.other.verified()
    mark = str(street.person.home).encode()
    wait(lambda: not left(street, mark), "nothing of ours runs any more")
    assert not list((street.person.data / "local").iterdir())
    for cluster in ("one", "two", "nested"):
        assert not Path(temp_of(street.person.owner(cluster))).exists()
    others = street.before | set(street.other.processes())
    taken = {port(address) for address, pid in sockets({one.pid for one in shown()}) if pid in others}
    assert [number for number in listened - taken if not free(number)] == []


def left(street: Street, mark: bytes) -> list[Shown]:
    """What was started since and names this person's home, but for the tests themselves."""
    mine = {os.getpid(), os.getppid()}
    return [
        one
        for one in shown()
        if one.pid not in street.before | mine and mark in one.environ + one.cmdline and one.alive
    ]


def port(address: str) -> int:
    return int(address.rpartition(":")[2])


def free(number: int) -> bool:
    """Whether anybody could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what only lingers is nobody's any more
        try:
            probe.bind(("127.0.0.1", number))
        except OSError:
            return False
        return True


def test_ss_sees_a_socket_beyond_loopback() -> None:
    """The look itself works: without this, an empty list would prove nothing."""
    with socket.socket() as probe:
        probe.bind(("0.0.0.0", 0))  # noqa: S104 - beyond loopback is the point
        probe.listen()
        assert (f"0.0.0.0:{probe.getsockname()[1]}", os.getpid()) in sockets({os.getpid()})
    assert subprocess.run(["ss", "-V"], check=False, capture_output=True).returncode == 0
