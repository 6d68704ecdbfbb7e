"""`helio ssh`: a shell on a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options
from heliostat.core.resource import HEAD

if TYPE_CHECKING:
    from heliostat.cli.session import Session
    from heliostat.engine.ports import Site

NOT_STARTED, NOT_FOUND = 126, 127  # as a shell says it


@helio_command(
    "ssh",
    help="Open a shell on the head or on NODE, or run COMMAND there with this terminal. One word is "
    "a line for the shell there; several are a program and its arguments.",
    short_help="Open a shell on a node.",
    example="helio ssh\nhelio ssh cpu-1\nhelio ssh cpu-1 htop\nhelio ssh cpu-1 'cd runs; ls -l'",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("node", default=HEAD)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND…]")
@click.pass_obj
def command(options: Options, node: str, words: tuple[str, ...]) -> int:
    from heliostat.cli.session import Session

    session = Session(options)
    code = session.play(lambda site: _attach(session, site, node, words))
    return session.show([], {"verb": "ssh", "node": node}, code)


async def _attach(session: Session, site: Site, node: str, words: Sequence[str]) -> int:
    """The child has the terminal, so Ctrl-C is its own."""
    import asyncio
    import os

    from heliostat.engine.nodes import pick

    (ref,) = await pick(site, [node])
    async with site.ground.shell(ref) as shell:
        argv, env = shell.attach(["sh", "-c", *words] if len(words) == 1 else words)
        with session.renderer.paused(), session.hands_off():
            try:
                child = await asyncio.create_subprocess_exec(*argv, env={**os.environ, **env})
            except OSError as error:
                session.renderer.screen.line(f"helio: {argv[0]} cannot be started: {error.strerror}")
                return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED
            code = await child.wait()
    return 128 - code if code < 0 else code
