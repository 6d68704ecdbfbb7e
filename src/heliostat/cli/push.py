"""`helio push`: files to nodes."""

from __future__ import annotations

import click

from heliostat.cli.command import helio_command
from heliostat.cli.nodes import chosen
from heliostat.cli.options import Options


@helio_command(
    "push",
    help="Copy LOCAL to REMOTE on the head, on each NODE, or on all: a file, or what is in a folder. "
    "Only what differs travels; a cut transfer goes on where it was. REMOTE is relative to your home there, "
    "as with scp. What .helioignore names stays here, and so does what looks like credentials.",
    short_help="Copy files to nodes.",
    example="helio push data/ data\nhelio push model.pt /scratch/ --all\nhelio push src src --delete",
    words=2,
)
@click.argument("local")
@click.argument("remote")
@click.argument("nodes", nargs=-1, metavar="[NODE]…")
@click.option("--all", "everywhere", is_flag=True, help="To every node.")
@click.option("--delete", is_flag=True, help="Delete in REMOTE what is not in LOCAL.")
@click.pass_context
def command(
    ctx: click.Context, local: str, remote: str, nodes: tuple[str, ...], everywhere: bool, delete: bool
) -> int:
    from pathlib import Path

    from heliostat.cli.render.copies import copied_lines
    from heliostat.cli.session import Session
    from heliostat.core.sync import Copied
    from heliostat.engine.nodes import pick
    from heliostat.engine.ports import Site
    from heliostat.engine.sync.copy import push

    names = chosen(ctx, nodes, everywhere=everywhere)

    async def flow(site: Site) -> tuple[Copied, ...]:
        return await push(site, await pick(site, names), Path(local).expanduser(), remote, delete=delete)

    options: Options = ctx.obj
    session = Session(options)
    copied = session.play(flow)
    return session.show(copied_lines(copied, "sent to"), {"verb": "push", "copied": copied})
