"""`helio kill`: lose a node on purpose."""

from __future__ import annotations

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options


@helio_command(
    "kill",
    help="Kill a node at once, as a crash would, to see what your program does. `helio up` brings it back.",
    short_help="Kill a node, to practise.",
    example="helio kill cpu-1 --yes",
    words=1,
)
@click.argument("node")
@click.pass_obj
def command(options: Options, node: str) -> int:
    from heliostat.cli.session import Session
    from heliostat.engine.nodes import kill

    session = Session(options)
    ref = session.play(lambda site: kill(site, node))
    return session.show([f"{ref.key} is killed; `helio up` brings it back"], {"verb": "kill", "node": ref})
