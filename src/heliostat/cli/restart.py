"""`helio restart`: Ray again, on the same nodes."""

from __future__ import annotations

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options


@helio_command(
    "restart",
    help="Restart Ray on every node; the nodes stay. Jobs that run now end: it asks first.",
    short_help="Restart Ray on every node.",
    example="helio restart --yes",
)
@click.pass_obj
def command(options: Options) -> int:
    from heliostat.cli.render.tables import status_lines
    from heliostat.cli.session import Session
    from heliostat.engine.lifecycle import restart

    session = Session(options)
    status = session.play(restart)
    return session.show(status_lines(status), {"verb": "restart", "status": status})
