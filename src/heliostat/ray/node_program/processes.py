"""Processes of this machine, as /proc shows them. Standard library only: it is copied to nodes."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterable
from dataclasses import dataclass

LABEL = "HELIO_LABEL"  # in the environment of a node program and of everything that it starts


@dataclass(frozen=True)
class Process:
    """One process: a pid means something only together with its start time."""

    pid: int
    parent: int
    start: int  # clock ticks since boot
    state: str

    @property
    def identity(self) -> tuple[int, int]:
        return self.pid, self.start


def look(pid: int) -> Process | None:
    """Read one process; None when it has ended, collected or not."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    state = fields[0].decode()
    return None if state in "ZX" else Process(pid, int(fields[1]), int(fields[19]), state)


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def label_of(pid: int) -> bytes | None:
    """The label in a process's environment, as it was when that program was started."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = b"\0" + file.read()
    except OSError:
        return None
    _, found, rest = environ.partition(b"\0" + LABEL.encode() + b"=")
    return rest.partition(b"\0")[0] if found else None


def family(root: int | None, label: bytes) -> list[Process]:
    """All living processes below `root` or with this label, without those that carry another label."""
    everyone = {process.pid: process for pid in pids() if (process := look(pid))}
    children: dict[int, list[int]] = {}
    for process in everyone.values():
        children.setdefault(process.parent, []).append(process.pid)
    labels = {pid: label_of(pid) for pid in everyone}
    todo = [pid for pid, found in labels.items() if found == label] + children.get(root or -1, [])
    found: dict[int, Process] = {}
    while todo:
        pid = todo.pop()
        if pid not in found and pid != root and labels[pid] in (None, label):
            found[pid] = everyone[pid]
            todo += children.get(pid, [])
    return list(found.values())


def tell(processes: Iterable[Process], number: int) -> None:
    """Signal these, and only these: a pid that changed hands is left alone."""
    for process in processes:
        now = look(process.pid)
        if now and now.identity == process.identity:
            try:
                os.kill(process.pid, number)
            except ProcessLookupError:
                continue


def wait_gone(processes: Iterable[Process], seconds: float) -> list[Process]:
    """Wait until all of these have ended, and return those that have not."""
    deadline = time.monotonic() + seconds
    left = [process for process in processes if there(process)]
    while left and (rest := deadline - time.monotonic()) > 0:
        handle = handle_of(left[0])
        if handle is None:  # an old kernel: look again soon
            select.select([], [], [], min(rest, 0.02))
        else:
            select.select([handle], [], [], rest)
            os.close(handle)
        left = [process for process in left if there(process)]
    return left


def there(process: Process) -> bool:
    now = look(process.pid)
    return now is not None and now.identity == process.identity


def handle_of(process: Process) -> int | None:
    """Something that becomes readable when the process ends."""
    try:
        return os.pidfd_open(process.pid)
    except (OSError, AttributeError):
        return None


def reap() -> list[tuple[int, int]]:
    """Collect every child that has ended."""
    found: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        found.append((pid, status))
