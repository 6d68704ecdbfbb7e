"""`helio stop`: end jobs."""

from __future__ import annotations

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options


@helio_command(
    "stop",
    help="End jobs, whether they run or wait for resources, and come back when they have ended. Without RUN, "
    "the only one that has not ended.",
    short_help="End a job, whether it runs or waits.",
    example="helio stop\nhelio stop train-261119-0\nhelio stop --all",
)
@click.argument("jobs", metavar="[RUN…]", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that have not ended.")
@click.pass_obj
def command(options: Options, jobs: tuple[str, ...], everything: bool) -> int:
    from heliostat.cli.render.tables import job_lines
    from heliostat.cli.session import Session
    from heliostat.engine.jobs import stop

    session = Session(options, makes=False)
    ended = session.play(lambda site: stop(site, jobs, everything=everything))
    lines = job_lines(ended) if ended else ["no job is running or waiting"]
    return session.show(lines, {"verb": "stop", "jobs": ended})
