"""1 + 2 containers with Ray: `helio up` until verified, beside the bare `docker compose up -d --wait`.

The peer gets the very file that ours hands to Compose, with networks and volumes that Compose makes itself,
and is up once Compose calls every container healthy. Verified is more: in Ray's own list, and the Jobs API
answers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.row import Row, command, interleave, program
from heliostat.core.decode import decode
from heliostat.core.owner import Owner
from heliostat.core.resource import NODE, SERVICE
from heliostat.grounds.compose.file import compose_file, dump
from heliostat.grounds.compose.service import Names
from heliostat.grounds.compose.want import want
from tests.rig import docker

FILE = f"""\
cluster: bench
where: compose
image: {docker.RAY_IMAGE}
docker: {{ pull: never }}
head: {{ cpus: 1, shm: 200 MB }}
workers: {{ count: 2, cpus: 1, shm: 200 MB }}
"""


def rows(runs: int) -> Iterator[Row]:
    if lacking := docker.missing():
        raise SystemExit(f"the bench of containers needs {lacking}")
    with docker.Engine() as engine, tempfile.TemporaryDirectory(prefix="hc") as home:
        docker.images(engine)
        folder = Path(home)
        (folder / "helio.yaml").write_text(FILE)
        (folder / "bare.yaml").write_text(bare())
        own = {f"HELIO_{what.upper()}": str(folder / what) for what in ("state", "cache", "data")}
        env = {**os.environ, **own, "DOCKER_HOST": engine.host}
        yield from measured(env, folder, max(3, runs))


def measured(env: dict[str, str], folder: Path, runs: int) -> Iterator[Row]:
    """Each is brought up on an empty engine and taken down again, in turn."""
    helio = (program("helio"), "-f", str(folder / "helio.yaml"), "--yes")
    compose = ("docker", "compose", "-f", str(folder / "bare.yaml"))
    ups = {
        "ours": _then(command([*helio, "up"], env=env, deadline=200), [*helio, "down"], env),
        "peer": _then(
            command([*compose, "up", "-d", "--wait"], env=env, deadline=200),
            [*compose, "down", "-v", "-t", "0"],
            env,
        ),
    }
    seen = interleave(ups, runs)
    pairs = zip(seen["ours"].costs, seen["peer"].costs, strict=True)
    yield Row(
        name="up, 1 + 2 containers, to verified",
        ours=seen["ours"].wall,
        theirs=seen["peer"].wall,
        peer="docker compose up -d --wait of the same file",
        limit=seen["peer"].wall,
        limit_name="the same",
        note="ours:peer " + "; ".join(f"{ours.wall:.1f}:{peer.wall:.1f}" for ours, peer in pairs),
    )
    command([*helio, "up"], env=env, deadline=200)()
    command([*compose, "up", "-d", "--wait"], env=env, deadline=200)()
    again = interleave(
        {
            "ours": command([*helio, "up"], env=env),
            "peer": command([*compose, "up", "-d", "--wait"], env=env),
        },
        max(5, runs),
    )
    yield Row(
        name="no-op up, 1 + 2 containers",
        ours=again["ours"].wall,
        theirs=again["peer"].wall,
        peer="docker compose up -d --wait again",
    )


def _then(action: Any, after: list[str], env: dict[str, str]) -> Any:
    """The measured action, then what makes room for the next one."""

    def both() -> Any:
        cost = action()
        print(f"{cost.wall:.1f}", file=sys.stderr)
        subprocess.run(after, env=env, capture_output=True, check=True)
        return cost

    return both


def bare() -> str:
    """The same file for Compose alone, which then makes the network and the volumes, too."""
    spec = decode(FILE, source="helio.yaml", folder="/", env={}).spec
    wanted = [one for one in want(spec) if one.kind in (NODE, SERVICE)]
    names = Names(Owner("bench", "bare").id)
    file = compose_file(wanted, {one.key: {} for one in wanted}, names)
    file["networks"] = {"cluster": {}}
    file["volumes"] = {key: {} for key in file["volumes"]}
    return dump(file)
