"""What can go wrong with a lab's hosts, and the words in which a person learns of it. No Ray is needed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rig.host import Host
from tests.rig.rig import Rig, wait_until

pytestmark = pytest.mark.rig

HELIO = str(Path(sys.executable).with_name("helio"))


@dataclass
class Lab:
    """A person with a file about some hosts."""

    rig: Rig
    hosts: list[Host]
    folder: Path
    more: str = ""

    def write(self, more: str = "") -> None:
        names = ", ".join(host.name for host in self.hosts)
        (self.folder / "helio.yaml").write_text(
            f"cluster: lab\nwhere: ssh\npython: /usr/bin/python3\nssh: {{ hosts: [{names}] }}\n{more}"
        )

    def helio(self, *words: str, **env: str) -> tuple[int, str]:
        """An exit code, and all that the person saw."""
        own = {f"HELIO_{name}": str(self.folder / name.lower()) for name in ("STATE", "CACHE", "DATA")}
        config = self.folder / "ssh_config"  # that of somebody who does not like to wait
        config.write_text(self.rig.config.read_text() + "  ConnectTimeout 2\n")
        done = subprocess.run(
            [HELIO, "--plain", *words],
            cwd=self.folder,
            # Each command logs in by itself: what has happened to a host meanwhile is seen by the next.
            env={**os.environ, **own, "HELIO_SSH_CONFIG": str(config), "HELIO_SSH_KEEP": "0", **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


Make = Callable[[int], Lab]


@pytest.fixture
def lab(rig: Rig, tmp_path: Path) -> Make:
    def make(count: int = 1) -> Lab:
        made = Lab(rig, rig.new(count), tmp_path)
        made.write()
        return made

    return make


def test_a_host_that_is_down_is_named_within_seconds_and_the_others_are_looked_at(lab: Make) -> None:
    two = lab(2)
    up, dead = two.hosts
    dead.kill()
    began = time.monotonic()
    code, said = two.helio("up", "--yes")
    assert code == 5
    assert re.search(rf"worker-1 failed .*{dead.name} (cannot be reached|does not answer)", said), said
    assert time.monotonic() - began < 40
    code, said = two.helio("status")
    assert re.search(rf"worker-1 +dead +{dead.name}", said), said
    began = time.monotonic()
    code, said = two.helio("down", "--yes")
    assert code == 3
    assert f"ssh {dead.name} rm -r" in said
    assert time.monotonic() - began < 20
    two.rig.boot([dead.number])
    code, said = two.helio("down", "--yes")
    assert code == 0, said
    assert up.sh("ls -A /home/lab/.local/share") == ""


def test_an_sshd_that_refuses(lab: Make) -> None:
    one = lab(1)
    one.hosts[0].stop_sshd()
    code, said = one.helio("up")
    assert (code, "nothing listens on its SSH port" in said) == (5, True), said


def test_a_host_behind_a_cut_is_left_behind_until_it_is_back(lab: Make) -> None:
    one = lab(2)
    code, said = one.helio("status")
    host = one.hosts[1]
    host.sh("mkdir -p ~lab/.local/share/heliostat/ssh && chown -R lab: ~lab/.local")
    host.cut()
    code, said = one.helio("down", "--yes")
    assert (code, host.name in said) == (3, True), said
    host.mend()
    wait_until(host.answers, "it answers again")
    assert one.helio("down", "--yes")[0] == 0


def test_a_changed_host_key_stops_everything(lab: Make) -> None:
    one = lab(2)
    first = one.helio("status")[1]
    assert first.count("pinned for this cluster: ED25519 SHA256:") == 2
    assert "pinned" not in one.helio("status")[1]
    host = one.hosts[1]
    host.new_host_key()
    wait_until(host.answers, "sshd listens again")
    for words in (["up", "--yes"], ["status"], ["down", "--yes"]):
        code, said = one.helio(*words)
        assert (code, f"the host key of {host.name} has changed" in said) == (6, True), said
    forget = next(line for line in said.splitlines() if "forget the old key" in line).partition("key: ")[2]
    subprocess.run(forget.split(), check=True, capture_output=True)
    assert "pinned for this cluster" in one.helio("status")[1]


def test_a_key_that_the_person_knows_is_not_pinned_again(lab: Make) -> None:
    one = lab(1)
    host = one.hosts[0]
    key = host.sh("cat /etc/ssh/rig_host_key.pub").split()
    known = one.rig.folder / "known_hosts"
    known.write_text(f"{host.address} {' '.join(key[:2])}\n")
    try:
        assert "pinned" not in one.helio("status")[1]
        host.new_host_key()
        wait_until(host.answers, "sshd listens again")
        code, said = one.helio("status")
        assert (code, str(known) in said) == (6, True), said
    finally:
        known.unlink()


def test_a_login_that_is_refused(lab: Make) -> None:
    one = lab(1)
    one.hosts[0].sh("rm ~lab/.ssh/authorized_keys")
    code, said = one.helio("up")
    assert (code, "none of your keys was accepted" in said, "ssh-add" in said) == (6, True, True), said


@pytest.mark.parametrize("fault", ["no_python", "old_python"])
def test_a_host_without_a_python_that_is_new_enough(lab: Make, fault: str) -> None:
    one = lab(1)
    getattr(one.hosts[0], fault)()
    code, said = one.helio("up")
    assert (code, f"there is no Python on {one.hosts[0].name}" in said) == (2, True), said
    assert one.helio("down", "--yes")[0] == 0


def test_a_full_disk(lab: Make) -> None:
    one = lab(1)
    one.hosts[0].fill("/home/lab/.local")
    code, said = one.helio("up")
    assert (code, "the disk is full" in said) == (4, True), said
    assert one.hosts[0].sh("ls -A /home/lab/.local/share") == "", "what was made is gone"


def test_noise_and_a_slow_login_change_nothing(lab: Make) -> None:
    one = lab(1)
    one.hosts[0].noise()
    one.hosts[0].slow_login(0.5)
    code, said = one.helio("status")
    assert (code, "no cluster lab" in said, "Welcome" in said) == (5, True, False), said


def test_a_slow_link_is_only_slow_and_a_silent_one_is_named(lab: Make) -> None:
    one = lab(1)
    link = one.rig.slow(one.hosts[0], 0.05)
    text = (one.folder / "helio.yaml").read_text().replace(one.hosts[0].name, link.name)
    (one.folder / "helio.yaml").write_text(text)
    code, said = one.helio("status")
    assert (code, "no cluster lab" in said) == (5, True), said
    link.silent = True
    code, said = one.helio("status")
    assert (code, f"{link.name} does not answer" in said) == (5, True), said


def test_another_user_has_clusters_of_their_own(lab: Make) -> None:
    """Both without sudo, which these hosts do not have."""
    one = lab(1)
    host = one.hosts[0]
    host.sh("mkdir -p ~lab/.local/share/heliostat/ssh/lab-000000/x && chown -R lab: ~lab/.local")
    for user, word in (("guest", "no cluster lab"), ("nobody", "none of your keys was accepted")):
        names = f"hosts: [{host.name}], user: {user}"
        (one.folder / "helio.yaml").write_text(f"cluster: lab\nwhere: ssh\nssh: {{ {names} }}\n")
        code, said = one.helio("status")
        assert (code, word in said) == (5 if user == "guest" else 6, True), said


def test_a_login_shell_that_runs_nothing(lab: Make) -> None:
    one = lab(1)
    one.hosts[0].login_shell("/bin/false")
    code, said = one.helio("up")
    assert (code, "login shell" in said) == (5, True), said


def test_a_python_without_ray(lab: Make) -> None:
    one = lab(1)
    code, said = one.helio("up")
    assert (code, "No module named 'ray'" in said) == (5, True), said
    assert one.hosts[0].listens() == []


def test_no_connection_or_socket_stays(lab: Make) -> None:
    one = lab(2)
    one.helio("status")
    for host in one.hosts:
        wait_until(lambda host=host: not host.processes(), "the connection is closed")  # type: ignore[misc]
    folders = Path("/tmp").glob(f"helio-ssh-{os.getuid()}-[0-9]*")  # of others that run now, too
    assert [one for one in folders if not Path("/proc", one.name.split("-")[3]).exists()] == []


def test_an_environment_is_made_where_no_python_is_named(lab: Make) -> None:
    """Without any internet, from wheels that were brought; a failure names the host, the step and the log."""
    one = lab(1)
    host = one.hosts[0]
    one.write("ray: 9.9.9\n")
    text = (one.folder / "helio.yaml").read_text().replace("python: /usr/bin/python3\n", "")
    (one.folder / "helio.yaml").write_text(text)
    host.sh("mkdir -p ~lab/.cache/heliostat/wheels; chown -R lab: ~lab/.cache")
    code, said = one.helio("up")
    assert (code, "head preparing" in said) == (5, True), said
    assert f"{host.name}: installing Ray 9.9.9 failed with exit code 1" in said
    assert "No matching distribution found for ray" in said
    assert f"{host.name}:~/.cache/heliostat/python/" in said
