"""`helio up`: bring the cluster to what the file says."""

from __future__ import annotations

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options


@helio_command(
    "up",
    help="Bring the cluster up, or to what the file says now. It is up when every wanted node is alive in "
    "Ray's own list and the Jobs API answers. When it fails or is interrupted, what it made goes again.",
    example="helio up\nhelio up --set workers=4 --yes",
)
@click.option("--keep", is_flag=True, help="When it fails, leave what was made, to look at it.")
@click.option("--adopt", is_flag=True, help="Take over a cluster of this name that somebody else made.")
@click.pass_obj
def command(options: Options, keep: bool, adopt: bool) -> int:
    from heliostat.cli.render.tables import status_lines
    from heliostat.cli.session import Session
    from heliostat.engine.lifecycle import up

    session = Session(options)
    status = session.play(lambda site: up(site, keep=keep, adopt=adopt))
    return session.show(status_lines(status), {"verb": "up", "status": status})
