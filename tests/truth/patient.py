"""A cluster to which things are done, and the questions that are asked then, all by the real program."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from bench.ours import Ours
from bench.rest import Rest, wait
from heliostat.ray.node_program.processes import label_of
from tests.truth.world import Identity, identities, processes_with

WORST = 6  # times a promise until we stop waiting: long enough for a machine with other work to do


class Patient:
    """Its doctor knows processes; what it says of itself it says by `helio`."""

    def __init__(self, mine: Ours) -> None:
        self.mine = mine

    def heal(self) -> None:
        """All are alive when `up` is back; a moment later each node's program has taken its daemons over."""
        self.mine.run("up", "--yes")
        assert set(self.states().values()) == {"alive"}
        wait(self.all_alive, "every node program to have taken over", 20)

    @property
    def rest(self) -> Rest:
        return self.mine.rest

    def status(self) -> dict[str, Any]:
        """What `helio status` says, well or not."""
        found: dict[str, Any] = self.mine.json("status", code=None)["status"]
        return found

    def states(self) -> dict[str, str]:
        return {node["name"]: node["state"] for node in self.status()["nodes"]}

    def ray_ids(self) -> dict[str, str]:
        """Ray's own ids: another one is another life."""
        return {node["name"]: node["ray"]["id"] for node in self.status()["nodes"] if node["ray"]}

    def all_alive(self) -> bool:
        """In Ray's word, and in that of each node's program: it has taken its daemons over."""
        nodes = self.status()["nodes"]
        return all(node["state"] == "alive" and node["ref"]["state"] == "ready" for node in nodes)

    def processes(self, node: str) -> dict[int, str]:
        """Everything of that node that runs."""
        ours = processes_with(f'"cluster":"{self.mine.name}"')
        return {
            pid: command
            for pid, command in ours.items()
            if f'"key":"{node}"'.encode() in (label_of(pid) or b"")
        }

    def daemons(self, *nodes: str) -> set[Identity]:
        """The node programs and Ray's daemons of these nodes; not what comes and goes."""
        return identities(pid for node in nodes for pid in self.mine.pids(node).values())

    def kill(self, node: str, role: str, number: int = signal.SIGKILL) -> int:
        """Signal one of its daemons, or its node program ("")."""
        pid = self.mine.pids(node)[role]
        os.kill(pid, number)
        return pid

    def kill_all(self, node: str) -> None:
        for pid in self.processes(node):
            os.kill(pid, signal.SIGKILL)

    def script(self, name: str, text: str) -> None:
        (self.mine.work / name).write_text(text)

    def submit(self, *words: str) -> str:
        """A job that goes on without us; its id."""
        return self.mine.run("submit", *words).strip().splitlines()[-1]

    def job(self, job_id: str) -> dict[str, Any]:
        (found,) = [job for job in self.mine.json("jobs")["jobs"] if job["id"] == job_id]
        return dict(found)

    def prints(self, job_id: str, line: str) -> None:
        """Wait until it has printed that."""
        wait(lambda: line in self.mine.run("logs", job_id).splitlines(), f"{job_id} to print {line}")

    def within(self, promised: float, condition: Callable[[], bool], what: str) -> None:
        """It held in the promised time; see `kept`."""
        kept(what, self.until(condition, what, promised * WORST), promised)

    def until(self, condition: Callable[[], bool], what: str, deadline: float) -> float:
        """Seconds until it held; what is late is a failure that says so."""
        began = time.monotonic()
        wait(condition, what, deadline)
        return time.monotonic() - began


def kept(what: str, took: float, promised: float) -> None:
    """A promise holds for a machine with nothing else to do; a shared one gets back what others take.

    The figure is printed in any case.
    """
    share = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    crowded = f", with {share:.1f} processes to a core" if share > 1 else ""
    told = f"{what}: {took:.1f} s, promised {promised:g} s{crowded}"
    print(told)  # noqa: T201 - the figure
    assert took <= promised * share, told
