"""One line of the table, and the fair way to fill it: interleaved runs, medians, ratios from one session."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Ours beside the best peer and beside what the machine itself allows.

    >>> Row(name="no-op up", ours=0.5, theirs=11.5, peer="ray up").ratio
    23.0
    """

    name: str
    ours: float
    theirs: float | None = None
    peer: str = ""  # whose figure `theirs` is
    limit: float | None = None
    limit_name: str = ""  # what the limit is: "all four `ray start` at once"
    unit: str = "s"
    note: str = ""  # what a reader must know: a fake, a figure from elsewhere, the spread

    @property
    def ratio(self) -> float | None:
        """How many times less ours is than theirs."""
        return None if self.theirs is None or not self.ours else self.theirs / self.ours

    @property
    def over_limit(self) -> float | None:
        """How many times the physical limit ours is."""
        return self.ours / self.limit if self.limit else None


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took, in seconds; `cpu` counts the children that were waited for."""

    wall: float
    cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """All runs of one contestant."""

    costs: tuple[Cost, ...]

    @property
    def wall(self) -> float:
        return statistics.median(cost.wall for cost in self.costs)

    @property
    def cpu(self) -> float:
        return statistics.median(cost.cpu for cost in self.costs)

    @property
    def best_wall(self) -> float:
        return min(cost.wall for cost in self.costs)

    @property
    def best_cpu(self) -> float:
        return min(cost.cpu for cost in self.costs)


def clock(action: Callable[[], object]) -> Cost:
    """Time one action of this process and the children that it waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    action()
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def program(name: str) -> str:
    """The program of this environment, so that both contestants run by the same Python."""
    return str(Path(sys.executable).with_name(name))


def command(
    argv: Sequence[str], *, env: Mapping[str, str] | None = None, code: int | None = 0, deadline: float = 120
) -> Callable[[], Cost]:
    """A contestant that is a command line; a wrong exit code is an error, not a figure (None: any)."""

    def run() -> None:
        done = subprocess.run(argv, env=env, capture_output=True, timeout=deadline, check=False)
        if code is not None and done.returncode != code:
            raise AssertionError(f"{argv[0]} ended with {done.returncode}: {done.stderr[-500:]!r}")

    return lambda: clock(run)


def interleave(contestants: Mapping[str, Callable[[], Cost]], n: int = 5) -> dict[str, Sample]:
    """Run them in turn, n times over, so that a noisy minute hits all alike.

    >>> samples = interleave({"a": lambda: Cost(1.0), "b": lambda: Cost(3.0)}, n=2)
    >>> samples["b"].wall / samples["a"].wall
    3.0
    """
    costs: dict[str, list[Cost]] = {name: [] for name in contestants}
    for _ in range(n):
        for name, run in contestants.items():
            costs[name].append(run())
    return {name: Sample(tuple(taken)) for name, taken in costs.items()}
