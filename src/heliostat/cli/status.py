"""`helio status`: the place's word beside Ray's word."""

from __future__ import annotations

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options
from heliostat.core.errors import Unavailable


@helio_command(
    "status",
    help="Nodes, resources in use, jobs and uptime: what the place lists, beside what Ray says. "
    "Exit code 0 when every wanted node is alive, else 5.",
    short_help="Nodes, resources, jobs.",
    example="helio status\nhelio status --json",
)
@click.pass_obj
def command(options: Options) -> int:
    from heliostat.cli.render.tables import status_lines
    from heliostat.cli.session import Session
    from heliostat.engine.status import status

    session = Session(options, makes=False)
    found = session.play(status)
    code = 0 if found.healthy else Unavailable.code
    return session.show(status_lines(found), {"verb": "status", "status": found}, code)
