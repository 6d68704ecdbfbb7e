"""`helio pull`: files from nodes."""

from __future__ import annotations

import click

from heliostat.cli.command import helio_command
from heliostat.cli.nodes import chosen
from heliostat.cli.options import Options


@helio_command(
    "pull",
    help="Copy REMOTE from the head, from each NODE, or from all: a file, or what is in a folder. REMOTE is "
    "relative to your home there, as with scp; RUN:PATH is a path of a run's work or outputs, RUN: all of "
    "its outputs, into outputs/RUN. Without LOCAL it is put here under its own name; from several "
    "nodes, in a folder for each. What is here already does not travel.",
    short_help="Copy files from nodes.",
    example="helio pull results\nhelio pull /var/log/syslog logs/ --all\nhelio pull my-run:model.pt",
    words=1,
)
@click.argument("remote")
@click.argument("local", required=False)
@click.argument("nodes", nargs=-1, metavar="[NODE]…")
@click.option("--all", "everywhere", is_flag=True, help="From every node.")
@click.pass_context
def command(
    ctx: click.Context, remote: str, local: str | None, nodes: tuple[str, ...], everywhere: bool
) -> int:
    from pathlib import Path

    from heliostat.cli.render.copies import copied_lines
    from heliostat.cli.session import Session
    from heliostat.core.sync import Copied
    from heliostat.engine.nodes import pick
    from heliostat.engine.ports import Site
    from heliostat.engine.sync.copy import bring

    names = chosen(ctx, nodes, everywhere=everywhere)
    own = own_name(remote)
    into = Path(local if local is not None else own).expanduser()
    if local is not None and local.endswith("/"):
        into.mkdir(parents=True, exist_ok=True)

    async def flow(site: Site) -> tuple[Copied, ...]:
        return await bring(site, await pick(site, names), remote, into)

    options: Options = ctx.obj
    session = Session(options)
    copied = session.play(flow)
    return session.show(
        copied_lines(copied, "brought from"), {"verb": "pull", "into": str(into), "copied": copied}
    )


def own_name(remote: str) -> str:
    """Where it is put when nobody says; all outputs of a run where `helio run` itself puts them.

    >>> own_name("/var/log/a:b"), own_name("r-1:out/model.pt"), own_name("r-1:"), own_name("/")
    ('a:b', 'model.pt', 'outputs/r-1', 'root')
    """
    import posixpath

    run, colon, path = remote.partition(":")
    in_run = colon and "/" not in run
    if in_run and not path:
        return f"outputs/{run}"
    return posixpath.basename(posixpath.normpath(path if in_run else remote)) or "root"
