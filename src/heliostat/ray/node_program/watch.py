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


SPAWNED = "spawned.jsonl"  # in a node's folder: each daemon with its arguments


def whole(spawned: str) -> str:
    """The file that stands beside those lines once Ray's start command has ended well."""
    return f"{spawned}.whole"


def left_running(folder: str, label: bytes) -> tuple[list[Daemon], Mapping[str, Any]]:
    """What a killed program left, whole and alive, and its last state; nothing when a part is gone.

    Ray lists a node before its start command ends: a program that was killed in between had not said `up`.
    """
    try:
        with open(os.path.join(folder, "state.json"), encoding="utf-8") as file:
            state = json.load(file)
        with open(os.path.join(folder, SPAWNED), encoding="utf-8") as file:
            started = {line["role"]: line for line in map(json.loads, file)}
        pids = state["daemons"]
        if state["phase"] == "starting" and os.path.exists(whole(os.path.join(folder, SPAWNED))):
            pids = {role: line["pid"] for role, line in started.items()}
        elif state["phase"] != "up":
            return [], {}
        daemons = [Daemon(**{**started[role], "pid": pid}) for role, pid in pids.items()]
    except (OSError, ValueError, KeyError, TypeError):
        return [], {}
    complete = set(started) == {daemon.role for daemon in daemons}
    alive = all(look(daemon.pid) and label_of(daemon.pid) == label for daemon in daemons)
    return (daemons, state) if daemons and complete and alive else ([], {})


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
