"""`helio clean`: what crashed runs left behind."""

from __future__ import annotations

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options


@helio_command(
    "clean",
    help="Remove what crashed runs left behind: parts without a living head, and what an interrupted "
    "command meant to make or remove. Living clusters stay.",
    short_help="Remove what crashed runs left behind.",
    example="helio clean",
)
@click.pass_obj
def command(options: Options) -> int:
    from heliostat.cli.proofs import show
    from heliostat.cli.session import Session
    from heliostat.engine.clean import clean

    session = Session(options, makes=False)
    return show(session, "clean", session.play(clean))
