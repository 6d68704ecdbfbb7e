"""What it costs to say something before anything is done: CPU time, because it depends less on luck."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

from bench.ours import Ours
from bench.row import Row, command, interleave, program

FLOOR = "python -c 'import click'"


def rows(runs: int) -> Iterator[Row]:
    nobody = Ours()  # its state is empty: there is no cluster
    env = nobody.env | {"HOME": str(nobody.home), "RAY_ADDRESS": "127.0.0.1:1"}
    contestants = {
        "floor": command([sys.executable, "-c", "import click"], env=env),
        "help": command([program("helio"), "--help"], env=env),
        "ray help": command([program("ray"), "--help"], env=env),
        "status": command([program("helio"), "status"], env=env, code=None),
    }
    # It waits half a minute for a cluster that is not there: once is enough.
    once = {"ray status": command([program("ray"), "status"], env=env, code=None)}
    try:
        seen = interleave(contestants, runs) | interleave(once, 1)
    finally:
        shutil.rmtree(nobody.home, ignore_errors=True)
    floor = seen["floor"].best_cpu
    for ours, theirs, what in (
        ("help", "ray help", "--help"),
        ("status", "ray status", "status, no cluster"),
    ):
        yield Row(
            name=what,
            ours=seen[ours].best_cpu,
            theirs=seen[theirs].best_cpu,
            peer=theirs.replace("ray help", "ray --help"),
            limit=floor,
            limit_name=FLOOR,
            unit="s CPU",
        )
