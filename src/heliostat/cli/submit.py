"""`helio submit`: `run --detach`."""

from __future__ import annotations

from typing import Any

import click

from heliostat.cli.command import helio_command
from heliostat.cli.run import submitted
from heliostat.cli.run_options import run_options
from heliostat.core.run import OnInterrupt


@helio_command(
    "submit",
    help="Send FILE, or a COMMAND after `--`, to the cluster and come back once it is accepted; the run's id "
    "is printed. `helio logs -f` follows it. The same as `helio run --detach`.",
    short_help="Start a job and come back at once.",
    example="helio submit train.py\nhelio submit -- python -m train",
    words=1,
    own=("-e", "-r"),
    context_settings={"allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="FILE|-- COMMAND…")
@run_options
@click.pass_context
def command(ctx: click.Context, /, words: tuple[str, ...], **rest: Any) -> int:
    return submitted(ctx, words, detach=True, on_interrupt=OnInterrupt.LEAVE, **rest)
