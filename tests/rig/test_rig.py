"""The rig itself: hosts are apart from one another, faults do what they say, and nothing stays behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.host import Host
from tests.rig.rig import CHECKOUT, PREFIX, Rig, missing, sweep, wait_until

pytestmark = pytest.mark.rig


def ssh(rig: Rig, name: str, command: str, *options: str) -> subprocess.CompletedProcess[str]:
    argv = ["ssh", "-F", str(rig.config), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=accept-new"]
    known = ["-o", f"UserKnownHostsFile={rig.folder}/known-{name}"]
    return subprocess.run(
        [*argv, *known, *options, name, command],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def host(rig: Rig) -> Host:
    return rig.new()[0]


def test_hosts_have_their_own_files_processes_and_address(rig: Rig) -> None:
    one, two = rig.new(2)
    one.sh(
        "echo here >/tmp/file; echo here >/etc/file; echo here >/dev/shm/file; sleep 4321 >/dev/null 2>&1 &"
    )
    assert "sleep 4321" in "\n".join(one.processes())
    assert not two.processes()
    assert two.sh("cat /tmp/file /etc/file /dev/shm/file 2>/dev/null || true") == ""
    assert not Path("/etc/file").exists()
    assert ssh(rig, two.name, "hostname; id -un").stdout.split() == [f"node{two.number:02}", "lab"]
    assert two.sh(f"ls {CHECKOUT} 2>/dev/null || true") == ""  # the checkout is not there


def test_hosts_see_each_other_and_nothing_else(rig: Rig) -> None:
    one, two = rig.new(2)
    greets = f"exec 3<>/dev/tcp/{two.name}/22; head -c 4 <&3"
    assert ssh(rig, one.name, f"bash -c '{greets}'").stdout == "SSH-"
    assert "default" not in one.sh("ip route")
    assert "Network is unreachable" in ssh(rig, one.name, "bash -c 'echo >/dev/tcp/192.0.2.2/80'").stderr


def test_orphans_are_reaped(host: Host) -> None:
    host.sh("(sh -c 'exit 0' &) ; (sh -c 'exit 0' &)")
    wait_until(lambda: "<defunct>" not in host.sh("ps -e -o args="), "no zombie is left")


def test_a_killed_host_is_dark_and_boots_again_with_its_disk(rig: Rig, host: Host) -> None:
    host.sh("echo kept >/etc/kept; echo lost >/tmp/lost")
    host.kill()
    assert not host.answers()
    rig.boot([host.number])
    assert host.sh("cat /etc/kept; ls /tmp") == "kept\n"


def test_sshd_refuses_and_comes_back(rig: Rig, host: Host) -> None:
    host.stop_sshd()
    assert "Connection refused" in ssh(rig, host.name, "true").stderr
    host.start_sshd()
    assert ssh(rig, host.name, "echo back").stdout == "back\n"


def test_a_partition_hides_a_host_that_lives_on(host: Host) -> None:
    host.cut()
    assert not host.answers()
    host.sh("true")
    host.mend()
    wait_until(host.answers, "it answers again")


def test_a_slow_link_delays_and_a_cut_one_breaks(rig: Rig, host: Host) -> None:
    link = rig.slow(host, 0.1)
    before = time.monotonic()
    assert ssh(rig, link.name, "echo far").stdout == "far\n"
    assert time.monotonic() - before > 0.8  # a login takes several round trips
    link.delay = 0.0
    argv = [
        "ssh",
        "-F",
        str(rig.config),
        "-o",
        "StrictHostKeyChecking=accept-new",
        link.name,
        "echo go; sleep 60",
    ]
    session = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert session.stdout is not None
    assert session.stdout.readline() == "go\n"
    link.cut()
    assert session.wait(10) == 255
    session.communicate()


def test_a_disk_is_full(rig: Rig, host: Host) -> None:
    host.fill("/home/lab/small")
    assert "No space left" in ssh(rig, host.name, "head -c 200000 /dev/zero >small/file").stderr


def test_a_changed_host_key_is_noticed(rig: Rig, host: Host) -> None:
    assert ssh(rig, host.name, "echo first").stdout == "first\n"
    host.new_host_key()
    wait_until(host.answers, "sshd listens again")
    assert "IDENTIFICATION HAS CHANGED" in ssh(rig, host.name, "true").stderr


def test_python_can_be_missing_or_old_and_sudo_is(rig: Rig) -> None:
    none, old = rig.new(2)
    none.no_python()
    old.old_python()
    assert "not found" in ssh(rig, none.name, "python3 --version").stderr
    assert ssh(rig, old.name, "python3 --version").stdout == "Python 3.6.8\n"
    assert ssh(rig, old.name, "sudo -n true").returncode != 0


def test_start_up_files_talk_and_dawdle(rig: Rig) -> None:
    loud, slow = rig.new(2)
    loud.noise()
    slow.slow_login(1)
    assert "Welcome" in ssh(rig, loud.name, "echo mine").stdout
    before = time.monotonic()
    assert ssh(rig, slow.name, "echo mine").stdout == "mine\n"
    assert time.monotonic() - before >= 1


def test_another_user_is_another_user(rig: Rig, host: Host) -> None:
    assert ssh(rig, host.name, "id -un", "-l", "guest").stdout == "guest\n"
    assert "Permission denied" in ssh(rig, host.name, "ls /home/guest").stderr


@pytest.fixture
def by_hand() -> Iterator[subprocess.Popen[str]]:
    """The command that a developer types, as its own process."""
    if lacking := missing():
        pytest.skip(f"the rig needs: {lacking}")
    command = [sys.executable, "-m", "tests.rig", "2"]
    process = subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()


def family(pid: int) -> set[int]:
    """That process and all that stem from it, whatever namespace they are in."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended while we looked
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind(by_hand: subprocess.Popen[str], number: signal.Signals) -> None:
    assert by_hand.stdout is not None
    line = by_hand.stdout.readline()
    config, address = Path(line.split()[2]), line.split("@")[1].strip()
    cable = ".".join(address.split(".")[:3]) + ".1/24"
    assert cable in subprocess.check_output(["ip", "-br", "addr"], text=True)
    all_of_it = family(by_hand.pid)
    assert len(all_of_it) > 8  # keeper, two hosts with an sshd each
    os.kill(by_hand.pid, number)
    by_hand.wait(10)
    wait_until(
        lambda: cable not in subprocess.check_output(["ip", "-br", "addr"], text=True), "the cable is gone"
    )
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in all_of_it), "its processes are gone")
    sweep()  # what the next run does first
    assert not list(config.parent.parent.glob(f"{PREFIX}{by_hand.pid}-*"))
