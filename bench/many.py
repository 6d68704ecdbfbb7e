"""500 jobs in a row, started and left: is one lost, and what does the head weigh afterwards?"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.bare import bare, running
from bench.ours import Ours, ours
from bench.rest import wait
from bench.row import Row, clock, command, interleave, program
from heliostat.ray.node_program.processes import label_of

JOBS = 500
TASTE = 10  # of the peer's, which takes a second each


def rows(runs: int) -> Iterator[Row]:
    del runs  # 500 jobs are their own repetition
    with bare(0) as plain:
        submit = [program("ray"), "job", "submit", "--no-wait", "--", "true"]
        theirs = interleave({"ray": command(submit, env=plain.env)}, TASTE)["ray"].wall * JOBS
    with ours(0) as mine:
        before = weight(mine)
        started = clock(lambda: [mine.run("run", "--detach", "--no-work", "--", "true") for _ in range(JOBS)])
        ended = wait(lambda: len(ends(mine)) >= JOBS, f"the end of {JOBS} jobs", deadline=900)
        how, after = Counter(ends(mine)), weight(mine)
    yield Row(
        name=f"{JOBS} x run --detach -- true",
        ours=started.wall,
        theirs=theirs,
        peer=f"ray job submit --no-wait, {TASTE} of them x {JOBS // TASTE}",
        note=f"the last ended {ended:.0f} s later: {', '.join(f'{n} {state}' for state, n in how.items())}",
    )
    note = f"{before:.0f} MB before"
    yield Row(name=f"the head's memory after {JOBS} jobs (PSS)", ours=after, unit="MB", note=note)


def ends(mine: Ours) -> list[str]:
    """How the jobs that are over ended."""
    states = [job["state"] for job in mine.json("jobs")["jobs"]]
    return [state for state in states if state not in ("pending", "running")]


def weight(mine: Ours) -> float:
    """Megabytes of all processes that carry the cluster's label, shared pages counted once."""
    total = 0
    for pid, _, _ in running():
        label = label_of(pid)
        if label and f'"{mine.name}"'.encode() in label:
            with contextlib.suppress(OSError):  # it ended while we looked
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024
