"""Something is killed: how long until it is noticed, and until all is well again? Beside plain Ray."""

from __future__ import annotations

import os
import signal
import statistics
from collections.abc import Iterator

from bench.bare import Bare, bare
from bench.ours import Ours, ours
from bench.rest import Rest, wait, within
from bench.row import Row

WORKERS = 2
PATIENCE = 75.0  # plain Ray gives up after 60 s; what has not come back by then never will


def rows(runs: int) -> Iterator[Row]:
    with ours(WORKERS) as mine:
        eyes = mine.rest
        gcs = statistics.median(_gcs(mine, eyes) for _ in range(runs))
        noticed, back = zip(*(_worker(mine, eyes) for _ in range(runs)), strict=True)
        hangs = statistics.median(_hangs(mine, eyes) for _ in range(runs))
        head = statistics.median(_head(mine) for _ in range(runs))
    plain = _plain()
    yield _row("GCS killed, until a job runs again", gcs, plain["gcs"])
    yield _row("a worker killed, until Ray says so", statistics.median(noticed), plain["noticed"])
    yield _row("a worker killed, until all are alive", statistics.median(back), plain["back"])
    yield _row("a worker hangs, until Ray says so", hangs, plain["hangs"])
    yield _row("all of the head killed, `up` until verified", head, plain["head"])


def _row(name: str, seconds: float, theirs: float | None) -> Row:
    peer = "plain Ray" if theirs is not None else f"plain Ray: not within {PATIENCE:.0f} s"
    return Row(name=name, ours=seconds, theirs=theirs, peer=peer)


def _gcs(mine: Ours, eyes: Rest) -> float:
    os.kill(mine.pids("head")["gcs_server"], signal.SIGKILL)
    return wait(eyes.works, "a job gets through again")


def _worker(mine: Ours, eyes: Rest) -> tuple[float, float]:
    """Seconds until the death is in Ray's list, and until the node is back."""
    dead = eyes.nodes()["DEAD"]
    os.kill(mine.pids("worker-1")["raylet"], signal.SIGKILL)
    noticed = wait(lambda: eyes.nodes()["DEAD"] > dead, "the death is noticed")
    return noticed, noticed + wait(lambda: eyes.nodes()["ALIVE"] == WORKERS + 1, "the worker is back")


def _hangs(mine: Ours, eyes: Rest) -> float:
    """It only stands still; `up` replaces it, so that the next one has a worker to stop."""
    dead = eyes.nodes()["DEAD"]
    os.kill(mine.pids("worker-1")["raylet"], signal.SIGSTOP)
    noticed = wait(lambda: eyes.nodes()["DEAD"] > dead, "the hang is noticed")
    mine.run("up", "--yes")
    return noticed


def _head(mine: Ours) -> float:
    """Everything of the head dies at once, as in a crash of its machine; `up` brings it back."""
    for pid in mine.pids("head").values():
        os.kill(pid, signal.SIGKILL)
    return mine.timed("up", "--yes").wall


def _plain() -> dict[str, float | None]:
    """Once each: what never comes back takes long enough to wait for."""
    seen: dict[str, float | None] = {}
    with bare(WORKERS) as cluster:
        eyes = cluster.rest
        cluster.kill("worker-1", only="/raylet ")
        seen["noticed"] = within(lambda: eyes.nodes()["DEAD"] > 0, PATIENCE)
        cluster.kill("worker-2", only="/raylet ", number=signal.SIGSTOP)
        seen["hangs"] = within(lambda: eyes.nodes()["DEAD"] > 1, PATIENCE)
        cluster.kill("head", only="/gcs_server ")
        # Whoever waits for the dead worker waits for the killed GCS as well: one patience for both.
        seen["gcs"] = within(eyes.works, PATIENCE)
        seen["back"] = within(lambda: eyes.nodes()["ALIVE"] == WORKERS + 1, 0)
    with bare(WORKERS) as cluster:
        seen["head"] = _plain_head(cluster)
    return seen


def _plain_head(cluster: Bare) -> float | None:
    """Kill the head, and type the same `ray start --head` again."""
    cluster.kill("head")
    cluster.start("head")
    return within(cluster.verified, PATIENCE)
