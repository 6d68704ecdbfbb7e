"""End the processes of a node, all of them and no others, and remove directories."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress

from heliostat.core.errors import LeftBehind
from heliostat.core.resource import Ref
from heliostat.grounds.local.find import processes
from heliostat.grounds.local.places import remove_tree, short, temp_base, temp_of
from heliostat.ray.node_program.processes import Process, family, label_of, tell, wait_gone

PATIENCE = 8.0  # for a node program to end what it started; then its processes are killed from here
KILLED = 10.0  # for killed processes to be gone


async def stop_node(ref: Ref) -> None:
    """Ask the node program to end, finish what it leaves, and remove the node's folders."""
    seen = processes(ref.owner).get((ref.owner.cluster or "", ref.key))
    if seen and seen.supervisor:
        tell([seen.supervisor], signal.SIGTERM)
        await asyncio.to_thread(wait_gone, [seen.supervisor], PATIENCE)
    deadline = time.monotonic() + KILLED
    while left := remains(ref):
        if time.monotonic() > deadline:
            raise LeftBehind(
                f"{len(left)} processes of {ref.key} do not end",
                why="they were killed and are still there: " + ", ".join(str(one.pid) for one in left),
                fix="they hang in the kernel; once they end, run `helio clean`",
            )
        tell(left, signal.SIGKILL)
        await asyncio.to_thread(wait_gone, left, 1.0)
    await asyncio.to_thread(remove_tree, ref.id)
    await asyncio.to_thread(remove_tree, f"{temp_of(ref.owner)}/{short(ref.key)}")


def remains(ref: Ref) -> list[Process]:
    """Every living process with this node's label, and what descends from them without another."""
    seen = processes(ref.owner).get((ref.owner.cluster or "", ref.key))
    if seen is None:
        return []
    roots = [*seen.others, *([seen.supervisor] if seen.supervisor else [])]
    found = {root.pid: root for root in roots}
    for raw in {label_of(root.pid) for root in roots} - {None}:
        found |= {process.pid: process for process in family(None, raw or b"")}
    return list(found.values())


async def stop_directory(ref: Ref) -> None:
    """Remove a directory with everything in it, and the common one when it was the last."""
    await asyncio.to_thread(remove_tree, ref.id)
    if os.path.dirname(ref.id) == temp_base():
        with suppress(OSError):
            os.rmdir(temp_base())
