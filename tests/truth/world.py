"""What really runs and lies on this machine, seen without any of our own listings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from heliostat.ray.node_program.processes import look

Identity = tuple[int, int]


def processes_with(word: str) -> dict[int, str]:
    """Every living process of this machine whose command line or environment has this word in it, by pid."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            there = word.encode() in command + (entry / "environ").read_bytes()
        except OSError:  # it ended while we looked
            continue
        if there and look(int(entry.name)):
            found[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace")[:120]
    return found


def identities(pids: Iterable[int]) -> set[Identity]:
    """The same processes, by pid and start: a pid alone may be another's by now."""
    return {process.identity for pid in pids if (process := look(pid))}
