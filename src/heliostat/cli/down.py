"""`helio down`: remove the cluster, with proof."""

from __future__ import annotations

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options


@helio_command(
    "down",
    help="Remove the cluster, and prove it: the place is listed again until it is empty twice. "
    "Exit code 3 when something is left, with the command that removes it.",
    short_help="Remove the cluster, and prove it.",
    example="helio down --yes",
)
@click.option("--keep-data", is_flag=True, help="Keep volumes and runs' files.")
@click.pass_obj
def command(options: Options, keep_data: bool) -> int:
    from heliostat.cli.proofs import show
    from heliostat.cli.session import Session
    from heliostat.engine.lifecycle import down

    session = Session(options, makes=False)
    session.then = "what is left is removed by running `helio down` again"
    proof = session.play(lambda site: down(site, keep_data=keep_data))
    return show(session, "down", (proof,))
