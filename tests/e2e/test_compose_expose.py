"""What can be reached from outside: nothing, or exactly what the file exposes, from where it says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.machine import Machine
from tests.rig.docker import Engine
from tests.rig.rig import wait_until

pytestmark = [pytest.mark.docker, pytest.mark.ray, pytest.mark.slow]

LAB, ELSEWHERE = "10.9.0", "192.168.77"  # .1 is the engine's machine, .2 is a host beside it
SCAN = """
import socket, sys
found = []
for port in range(1, 65536):
    with socket.socket() as probe:
        probe.settimeout(2)
        if probe.connect_ex((sys.argv[1], port)) == 0:
            found.append(port)
print(*found)
"""
GET = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) as line:
        line.sendall(f"GET {sys.argv[3]} HTTP/1.0\\r\\n\\r\\n".encode())
        print(line.recv(100).decode().split("\\r\\n")[0])
except (ConnectionResetError, TimeoutError):  # let go, or never let in
    pass
"""


@pytest.fixture(scope="module")
def outside(engine: Engine) -> Iterator[list[str]]:
    """The words before a command that runs on a host beside the engine's machine, on two networks."""
    host = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "600"])
    mine = os.stat("/proc/self/ns/net").st_ino
    wait_until(lambda: os.stat(f"/proc/{host.pid}/ns/net").st_ino != mine, "a network of its own", 10)
    there = ["nsenter", f"--net=/proc/{host.pid}/ns/net"]
    here = ["nsenter", f"--net=/proc/{engine.pid}/ns/net"]

    def ip(words: list[str], line: str) -> None:
        subprocess.run([*words, "ip", *line.split()], check=True)

    ip(here, f"link add helio-out type veth peer name out netns {host.pid}")
    for words, link, end in ((here, "helio-out", 1), (there, "out", 2)):
        for network in (LAB, ELSEWHERE):
            ip(words, f"addr add {network}.{end}/24 dev {link}")
        ip(words, f"link set {link} up")
    yield there
    host.kill()
    host.wait()


def run(outside: list[str], program: str, *words: str) -> str:
    done = subprocess.run(
        [*outside, "python3", "-c", program, *words], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_by_default_no_port_answers_a_host_beside_it(box: Machine, outside: list[str]) -> None:
    assert run(outside, SCAN, f"{LAB}.1") == ""


def test_what_is_exposed_answers_its_network_alone(box: Machine, outside: list[str]) -> None:
    words = ("--set", "expose.dashboard=10.9.0.0/16", "--set", "expose.notebook=0.0.0.0/0")
    assert "door: dashboard on port 8265 for 10.9.0.0/16" in box("plan", *words).stdout
    try:
        box("up", "--yes", *words)
        assert run(outside, SCAN, f"{LAB}.1") == "8265 8888"
        assert run(outside, GET, f"{LAB}.1", "8265", "/").endswith("200 OK")
        assert run(outside, GET, f"{LAB}.1", "8265", "/api/jobs/").endswith("401 Unauthorized")
        assert run(outside, GET, f"{ELSEWHERE}.1", "8265", "/") == "", "let go without a word"
        assert run(outside, GET, f"{ELSEWHERE}.1", "8888", "/api/contents").endswith("403 Forbidden")
    finally:
        box("up", "--yes")
    assert run(outside, SCAN, f"{LAB}.1") == ""


def test_what_no_login_guards_is_not_for_the_world(box: Machine) -> None:
    refused = box("plan", "--set", "expose.prometheus=0.0.0.0/0", code=2)
    assert "may not be 0.0.0.0/0: no login guards it" in refused.stderr
