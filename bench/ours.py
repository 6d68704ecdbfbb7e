"""Our contestant: the `helio` program, with a cluster file and a state in a directory of its own."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.rest import Rest
from bench.row import Cost, clock, program


@dataclass
class Ours:
    """A cluster on this machine, driven as a person would: by commands."""

    workers: int = 3
    name: str = field(default_factory=lambda: f"bench-{secrets.token_hex(3)}")
    home: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="ho", dir="/tmp")))

    def __post_init__(self) -> None:
        self.work.mkdir()
        (self.work / "helio.yaml").write_text(
            f"cluster: {self.name}\nwhere: local\nhead: {{ cpus: 1 }}\n"
            f"workers: {{ cpus: 1, count: {self.workers} }}\n"
        )

    @property
    def work(self) -> Path:
        return self.home / "work"

    @property
    def env(self) -> dict[str, str]:
        own = {f"HELIO_{what.upper()}": str(self.home / what) for what in ("state", "cache", "data")}
        return {key: value for key, value in os.environ.items() if not _foreign(key)} | own

    def run(self, *words: str, code: int | None = 0, deadline: float = 300) -> str:
        """What the command prints; another exit code is an error (None: any will do)."""
        done = subprocess.run(
            [program("helio"), *words],
            env=self.env,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=deadline,
            check=False,
        )
        if code is not None and done.returncode != code:
            said = (done.stdout + done.stderr)[-800:].decode(errors="replace")
            raise AssertionError(f"helio {' '.join(words)} ended with {done.returncode}:\n{said}")
        return done.stdout.decode()

    def timed(self, *words: str) -> Cost:
        return clock(lambda: self.run(*words))

    def json(self, *words: str, code: int | None = 0) -> Any:
        """The last record that the command prints for programs."""
        return json.loads(self.run(*words, "--json", code=code).splitlines()[-1])

    def nodes(self) -> dict[str, dict[str, Any]]:
        """What the place says of each node, by name, well or not."""
        return {node["name"]: node["ref"] for node in self.json("status", code=None)["status"]["nodes"]}

    @property
    def rest(self) -> Rest:
        facts = self.nodes()["head"]["facts"]
        return Rest(facts["dashboard"], Path(facts["token_path"]).read_text().strip())

    def pids(self, node: str) -> dict[str, int]:
        """The node program of a node (its name is empty) and Ray's daemons below it."""
        state = json.loads(Path(self.nodes()[node]["id"], "state.json").read_text())
        return {"": state["pid"], **state["daemons"]}

    def close(self) -> None:
        """Down, whatever state it is in; then the directory goes."""
        self.run("down", "--yes")
        shutil.rmtree(self.home, ignore_errors=True)


def _foreign(name: str) -> bool:
    """What is not for us; and what an installed program has, as the peers' are, is its bytecode."""
    return name.startswith("RAY_") or name == "PYTHONDONTWRITEBYTECODE"


@contextmanager
def ours(workers: int = 3) -> Iterator[Ours]:
    """A cluster of ours that is up, and gone afterwards."""
    cluster = Ours(workers)
    try:
        cluster.run("up", "--yes")
        yield cluster
    finally:
        cluster.close()
