"""`echo hi` as a job, from the first key to the exit code, on clusters of the same size."""

from __future__ import annotations

from collections.abc import Iterator

from bench.bare import bare
from bench.ours import ours
from bench.row import Row, clock, command, interleave, program


def rows(runs: int) -> Iterator[Row]:
    with ours(workers=1) as mine, bare(workers=1) as plain:
        submit = [program("ray"), "job", "submit", "--", "echo", "hi"]
        seen = interleave(
            {
                "helio": lambda: mine.timed("run", "--", "echo", "hi"),
                "ray": command(submit, env=plain.env),
                "rest": lambda: clock(lambda: plain.rest.job("echo hi")),
            },
            runs,
        )
    yield Row(
        name="echo hi as a job, end to end",
        ours=seen["helio"].wall,
        theirs=seen["ray"].wall,
        peer="ray job submit",
        limit=seen["rest"].wall,
        limit_name="bare REST, looking every 50 ms",
    )
