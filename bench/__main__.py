"""`python -m bench [FAMILY ...] [--runs N] [--json FILE]`: ours beside the peers, in one run."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator

from bench.row import Row
from bench.table import keep, table

# Quickest first: what was measured is not lost when a later family fails.
FAMILIES = {
    "start": "start-up of --help and status: CPU time, best run",
    "up": "1 + 3 nodes on this machine: up, no-op up, status, down",
    "ssh": "4 hosts over ssh: up, no-op up, exec, push, down, beside `ray up` (root)",
    "compose": "1 + 2 containers on an engine: up, no-op up, beside the bare `docker compose up` (root)",
    "hosts": "16 and 64 hosts over ssh with a stub of Ray that sleeps 1 s (root)",
    "thousand": "up to 1,000 simulated hosts of 1 s a command",
    "jobs": "echo hi as a job, end to end",
    "push": "1, 1,000 and 100,000 files, one of them changed",
    "recovery": "GCS, a worker, the whole head killed: until all is well again",
    "many": "500 detached jobs in a row, and the head's memory",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("family", nargs="*", help=", ".join(FAMILIES) + " (default: all)")
    parser.add_argument("--runs", type=int, default=5, help="interleaved runs of each contestant (default 5)")
    parser.add_argument("--json", metavar="FILE", help="keep the figures, too")
    words = parser.parse_args()
    if unknown := set(words.family) - set(FAMILIES):
        parser.error(f"no such family: {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    made: list[Row] = []
    try:
        for family in words.family or FAMILIES:
            print(f"{family}: {FAMILIES[family]} …", file=sys.stderr)
            rows: Callable[[int], Iterator[Row]] = importlib.import_module(f"bench.{family}").rows
            made.extend(rows(words.runs))
    finally:
        if made:
            print(table(made))
        if made and words.json:
            keep(made, words.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
