"""`helio jobs`: how jobs stand and how they ended."""

from __future__ import annotations

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options


@helio_command(
    "jobs",
    help="List the cluster's jobs: id, state, exit code, how long they took. RUNNING means: seen alive just "
    "now; a job whose driver died with its node is lost.",
    short_help="Jobs and how they ended.",
    example="helio jobs\nhelio jobs --json",
)
@click.pass_obj
def command(options: Options) -> int:
    from heliostat.cli.render.tables import job_lines
    from heliostat.cli.session import Session
    from heliostat.engine.jobs import jobs

    session = Session(options, makes=False)
    found = session.play(jobs)
    return session.show(job_lines(found), {"verb": "jobs", "jobs": found})
