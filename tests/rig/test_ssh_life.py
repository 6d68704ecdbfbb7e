"""The life of a cluster on hosts: up, a head lost, a host lost and back, down behind a partition, clean."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.rig import ray_python
from tests.rig.host import Host
from tests.rig.rig import Rig, wait_until

pytestmark = [pytest.mark.ray, pytest.mark.rig]

HELIO = str(Path(sys.executable).with_name("helio"))
FILE = """\
cluster: life
where: ssh
python: {python}
ssh: {{ hosts: [{hosts}] }}
head: {{ cpus: 1, memory: 300 MB, shm: 100 MB }}
workers: {{ count: {{ count: 2, at_least: 1 }}, cpus: 1, memory: 300 MB, shm: 100 MB }}
files: {{ ~/config: ./config }}
host_setup: [ "echo once >>~/host-setup" ]
proxy: http://me:s3cret@proxy.lab:3128
"""


class Life:
    def __init__(self, rig: Rig, folder: Path) -> None:
        self.rig, self.folder = rig, folder
        self.hosts = rig.new(3)
        names = ", ".join(host.name for host in self.hosts)
        (folder / "config").mkdir()
        (folder / "config" / "a").write_text("from here\n")
        (folder / "helio.yaml").write_text(FILE.format(python=ray_python.PYTHON, hosts=names))

    def helio(self, *words: str, code: int | None = 0) -> str:
        own = {f"HELIO_{name}": str(self.folder / name.lower()) for name in ("STATE", "CACHE", "DATA")}
        done = subprocess.run(
            [HELIO, *words],
            cwd=self.folder,
            env={**os.environ, **own, "HELIO_SSH_CONFIG": str(self.rig.config)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
        assert code in (None, done.returncode), done.stdout + done.stderr
        return done.stdout

    def states(self) -> dict[str, str]:
        lines = self.helio("status", "--json", code=None).splitlines()
        status: dict[str, Any] = json.loads(lines[-1])
        return {node["name"]: node["state"] for node in status["status"]["nodes"]}

    def daemons(self, host: Host) -> str:
        return host.sh("pgrep -f '[/]raylet/raylet' || true")


@pytest.fixture(scope="module")
def life(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Life:
    if lacking := ray_python.missing():
        pytest.skip(f"hosts need {lacking}")
    return Life(rig, tmp_path_factory.mktemp("life"))


def test_up_and_up_again(life: Life) -> None:
    life.helio("up", "--yes")
    assert set(life.states().values()) == {"alive"}
    before = [life.daemons(host) for host in life.hosts]
    life.helio("up")
    assert [life.daemons(host) for host in life.hosts] == before, "nothing was disturbed"


def test_exit_codes_of_every_node(life: Life) -> None:
    life.helio("exec", "--all", "--", "sh", "-c", "exit 7", code=7)
    assert life.helio("run", "--", "sh", "-c", "echo hi; exit 3", code=3) == "hi\n"


def test_a_job_finds_the_files_and_the_proxy_and_no_argv_has_its_password(life: Life) -> None:
    look = 'cat ~/config/a ~/host-setup; echo "$https_proxy"; echo "$NO_PROXY" | tr , "\\n" | grep -c lab'
    assert life.helio("run", "--", "sh", "-c", look).splitlines() == [
        "from here",
        "once",
        "http://me:s3cret@proxy.lab:3128",
        "3",
    ]
    for host in life.hosts:
        assert not any("s3cret" in line for line in host.processes())
        assert host.sh("cat /home/lab/host-setup") == "once\n"


def test_a_lost_head_comes_back_and_the_workers_join_it_again(life: Life) -> None:
    head, *workers = life.hosts
    before = [life.daemons(host) for host in workers]
    head.sh("pkill -KILL -u lab -f 'helio|ray' || true")
    life.helio("up", "--yes")
    assert set(life.states().values()) == {"alive"}
    assert [life.daemons(host) for host in workers] == before, "no worker was set up anew"


def test_a_host_that_dies_and_comes_back_is_repaired_alone(life: Life) -> None:
    _, other, lost = life.hosts
    before = life.daemons(other)
    lost.kill()
    wait_until(lambda: life.states()["worker-2"] == "dead", "the host is seen to be dead", 60)
    life.rig.boot([lost.number])
    life.helio("up", "--yes")
    assert set(life.states().values()) == {"alive"}
    assert life.daemons(other) == before, "the running one was not disturbed"


def test_down_behind_a_partition_says_what_is_left_and_clean_ends_it(life: Life) -> None:
    away = life.hosts[2]
    away.cut()
    life.helio("down", "--yes", code=3)
    for host in life.hosts[:2]:
        wait_until(lambda host=host: not host.processes(), f"nothing runs on {host.name}")  # type: ignore[misc]
    assert "raylet" in "\n".join(away.processes()), "it lives on where nobody can reach it"
    away.mend()
    wait_until(away.answers, "it answers again")
    life.helio("clean", "--yes")
    for host in life.hosts:
        wait_until(lambda host=host: not host.processes(), f"nothing runs on {host.name}")  # type: ignore[misc]
        assert host.listens() == []
        assert host.sh("ls -A /home/lab/.local/share /tmp /dev/shm").split() == [
            "/dev/shm:",
            "/home/lab/.local/share:",
            "/tmp:",
        ]
