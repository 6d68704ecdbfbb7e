"""How this machine is shared between the nodes of one cluster, where the file does not say."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from heliostat.core.errors import NoCapacity, UsageError
from heliostat.core.spec import Node

STORE_FLOOR = 80 * 2**20  # the least that Ray takes for an object store
SLOW_STORE = 10**10  # the largest object store that Ray keeps on a disk when /dev/shm is smaller
IDLE_HEAD, IDLE_WORKER = 500 * 2**20, 150 * 2**20  # bytes that a node takes before it has done anything


def memory() -> int:
    """What this machine can still give, in bytes."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 2**30


def shared_memory() -> int:
    """What is free where object stores live."""
    try:
        found = os.statvfs("/dev/shm")  # noqa: S108  (asked about, not written)
    except OSError:
        return 2**30
    return found.f_bavail * found.f_frsize


def check_room(workers: int, head: bool) -> None:
    """Refuse before anything starts what would only make this machine swap."""
    need = IDLE_WORKER * workers + (IDLE_HEAD if head else 0)
    free = memory()
    if need > free:
        most = max(0, int((free - IDLE_HEAD) / IDLE_WORKER))
        raise NoCapacity(
            f"this machine has no room for {workers} more workers",
            why=f"idle they take about {need / 2**30:.1f} GiB of memory; {free / 2**30:.1f} GiB are free",
            fix=f"ask for at most {most}; two or three are enough to try things out",
        )


def check_store(size: int, name: str) -> None:
    """An object store must be at least Ray's smallest, and fit where it is kept."""
    if size < STORE_FLOOR:
        raise UsageError(
            f"{name}: `shm` is too small",
            why=f"{size / 2**20:.0f} MiB are asked for; Ray takes {STORE_FLOOR // 2**20} MiB at least",
            fix="give it more, or leave the key out",
        )
    free, whole = shared_memory(), memory()
    if size > whole or (size > free and size > SLOW_STORE):
        limit = whole if size > whole else free
        raise NoCapacity(
            f"{name}: `shm` does not fit into this machine",
            why=f"{size / 2**30:.1f} GiB are asked for; {limit / 2**30:.1f} GiB are free for shared memory",
            fix="ask for less, or leave the key out: then the nodes share what is there",
        )


def share(node: Node, name: str, count: int) -> Node:
    """The node with its sizes filled in: nodes of one machine must not all claim the whole of it."""
    cores = len(os.sched_getaffinity(0))
    free = memory()
    store = node.shm
    if store is not None:
        check_store(store, name)
    else:
        store = max(STORE_FLOOR, int(min(0.3 * free, 0.8 * shared_memory()) / count))
    return replace(
        node,
        cpus=node.cpus if node.cpus is not None else max(1, cores // count),
        memory=node.memory if node.memory is not None else int(0.5 * free / count),
        shm=store,
    )
