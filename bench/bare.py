"""The peer: a plain Ray cluster on this machine, by `ray start` with the best flags known.

Ports, directories and a token of its own, and killed by its own process ids, so that any other Ray lives on.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.rest import Rest, wait
from bench.row import program


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Bare:
    """One head and some workers, each a `ray start` in a session of its own."""

    workers: int = 3
    home: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="hb", dir="/tmp")))
    token: str = field(default_factory=lambda: secrets.token_hex(32))
    gcs: int = field(default_factory=free_port)
    dashboard: int = field(default_factory=free_port)
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        """Authentication on, as ours has it; nothing is read from or written to the home of the person."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self.token,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ADDRESS": f"http://127.0.0.1:{self.dashboard}",
        }

    @property
    def gcs_address(self) -> str:
        return f"{own_address()}:{self.gcs}"

    def start(self, name: str) -> None:
        """Hand a node over to `ray start`; ports and a directory of its own, or nodes wait for each other."""
        flags = [f"--temp-dir={self.home / name}", f"--dashboard-agent-listen-port={free_port()}"]
        flags += [f"--metrics-export-port={free_port()}", "--num-cpus=1", "--disable-usage-stats"]
        flags += ["--min-worker-port=0", "--max-worker-port=0", f"--runtime-env-agent-port={free_port()}"]
        if name == "head":
            flags += ["--head", f"--port={self.gcs}", f"--dashboard-port={self.dashboard}"]
            flags += [f"--ray-client-server-port={free_port()}"]
        else:
            flags += [f"--address={self.gcs_address}"]
        env = {key: value for key, value in self.env.items() if key != "RAY_ADDRESS"}
        log = (self.home / f"{name}.log").open("wb")
        command = [program("ray"), "start", *flags]
        self.nodes[name] = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
        log.close()

    def up(self) -> None:
        """All nodes at once, until the node list is complete and the Jobs API answers."""
        for name in ["head", *(f"worker-{n}" for n in range(1, self.workers + 1))]:
            self.start(name)
        wait(self.verified, f"{self.workers + 1} nodes alive")

    @property
    def rest(self) -> Rest:
        return Rest(f"127.0.0.1:{self.dashboard}", self.token)

    def verified(self) -> bool:
        alive = self.rest.nodes()["ALIVE"] == self.workers + 1
        return alive and self.rest.ask("/api/jobs/") is not None

    def processes(self, *names: str) -> dict[int, str]:
        """Process id to command line, of all nodes or of these: whatever is in the sessions we opened."""
        sessions = {self.nodes[name].pid for name in names or self.nodes}
        return {pid: command for pid, session, command in running() if session in sessions}

    def kill(self, *names: str, only: str = "", number: int = signal.SIGKILL) -> None:
        """kill -9 what these nodes run, of that only the commands that contain a word; or another signal."""
        for pid, command in self.processes(*names).items():
            if only in command:
                signal_quietly(pid, number)

    def down(self) -> None:
        """Everything that was started here, until nothing is left."""

        def gone() -> bool:
            self.kill()
            return not self.processes()

        wait(gone, "the plain Ray cluster is gone")
        for starter in self.nodes.values():
            starter.wait()
        shutil.rmtree(self.home, ignore_errors=True)


@contextmanager
def bare(workers: int = 3) -> Iterator[Bare]:
    """A plain cluster that is up, and gone afterwards."""
    cluster = Bare(workers)
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.down()


def own_address() -> str:
    """The address that `ray start` gives this machine, whatever it is told (no packet is sent)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        address: str = probe.getsockname()[0]
        return address


def running() -> Iterator[tuple[int, int, str]]:
    """(pid, session, command line) of every living process."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:  # it ended while we looked
                continue
            if after_name[0] != "Z":
                yield int(entry.name), int(after_name[3]), command


def signal_quietly(pid: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):  # it ended by itself, which is what was wanted
        os.kill(pid, number)
