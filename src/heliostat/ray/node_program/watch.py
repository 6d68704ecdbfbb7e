"""The daemons of a node, and how those that a killed node program left behind are watched over again.

Standard library only: it is copied to nodes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heliostat.ray.node_program.processes import handle_of, label_of, look


@dataclass
class Daemon:
    """One of Ray's daemons: enough to start it again exactly as Ray did."""

    role: str
    argv: list[str]
    env: dict[str, str]
    pid: int


def left_running(folder: str, label: bytes) -> tuple[list[Daemon], Mapping[str, Any]]:
    """What a killed program left, whole and alive, and its last state; nothing when a part is gone."""
    try:
        with open(os.path.join(folder, "state.json"), encoding="utf-8") as file:
            state = json.load(file)
        with open(os.path.join(folder, "spawned.jsonl"), encoding="utf-8") as file:
            started = {line["role"]: line for line in map(json.loads, file)}
        if state["phase"] != "up":
            return [], {}
        daemons = [Daemon(**{**started[role], "pid": pid}) for role, pid in state["daemons"].items()]
    except (OSError, ValueError, KeyError, TypeError):
        return [], {}
    whole = set(started) == {daemon.role for daemon in daemons}
    alive = all(look(daemon.pid) and label_of(daemon.pid) == label for daemon in daemons)
    return (daemons, state) if whole and alive else ([], {})


class Strangers:
    """Daemons that are not our children: their end comes by no signal, but by a handle of the kernel."""

    def __init__(self) -> None:
        self.handles: dict[int, int] = {}  # handle -> pid

    def take(self, daemons: list[Daemon]) -> bool:
        """Watch these from now on; False where the kernel cannot."""
        for daemon in daemons:
            process = look(daemon.pid)
            handle = handle_of(process) if process else None
            if handle is None:
                self.drop()
                return False
            self.handles[handle] = daemon.pid
        return True

    def ended(self, handle: int) -> int:
        """The pid behind a handle that became readable."""
        os.close(handle)
        return self.handles.pop(handle)

    def drop(self) -> None:
        for handle in self.handles:
            os.close(handle)
        self.handles.clear()
