"""Up to verified, a second `up` that has nothing to do, a look, and down: in turn with plain `ray start`s."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from bench.bare import Bare
from bench.ours import Ours
from bench.row import Cost, Row, Sample, clock, command, program

WORKERS = 3
PEER = f"1 + {WORKERS} `ray start` at once, until all are alive"


def rows(runs: int) -> Iterator[Row]:
    taken: dict[str, list[Cost]] = defaultdict(list)
    for _ in range(runs):
        _ours(taken)
        _theirs(taken)
    seen = {name: Sample(tuple(costs)) for name, costs in taken.items()}
    up, bare = seen["up"], seen["bare"]
    spread = "; ".join(
        f"{cost.wall:.1f}:{peer.wall:.1f}" for cost, peer in zip(up.costs, bare.costs, strict=True)
    )
    yield Row(
        name=f"up, 1 + {WORKERS} nodes, to verified",
        ours=up.wall,
        limit=bare.wall,
        limit_name=PEER,
        note=f"medians of {runs} pairs, ours:theirs {spread}",
    )
    yield Row(name="no-op up", ours=seen["no-op up"].wall)
    yield Row(
        name="status of a cluster that is up",
        ours=seen["status"].wall,
        theirs=seen["ray status"].wall,
        peer="ray status",
    )
    yield Row(
        name="down, with proof",
        ours=seen["down"].wall,
        limit=seen["killed"].wall,
        limit_name="kill -9 of every process, without a look back",
    )


def _ours(taken: dict[str, list[Cost]]) -> None:
    cluster = Ours(WORKERS)
    try:
        taken["up"].append(cluster.timed("up", "--yes"))
        taken["no-op up"].append(cluster.timed("up", "--yes"))
        taken["status"].append(cluster.timed("status"))
        taken["down"].append(cluster.timed("down", "--yes"))
    finally:
        cluster.close()


def _theirs(taken: dict[str, list[Cost]]) -> None:
    cluster = Bare(WORKERS)
    try:
        taken["bare"].append(clock(cluster.up))
        status = [program("ray"), "status", f"--address={cluster.gcs_address}"]
        taken["ray status"].append(command(status, env=cluster.env)())
    finally:
        taken["killed"].append(clock(cluster.down))
