"""`helio status`: the place's word beside Ray's word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options
from heliostat.core.errors import Unavailable

if TYPE_CHECKING:
    from heliostat.cli.session import Session
    from heliostat.core.status import Status


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

    session = Session(options, makes=False)
    found = looked(session)
    code = 0 if found.healthy else Unavailable.code
    return session.show(status_lines(found), {"verb": "status", "status": found}, code)


def looked(session: Session) -> Status:
    """The cluster as it is; that there is none takes no event loop to say, where the place allows it."""
    if (named := session.nothing_there()) is not None:
        from heliostat.core.status import Status

        return Status(cluster=named[0], where=named[1])
    from heliostat.engine.status import status

    return session.play(status)
