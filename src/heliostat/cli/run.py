"""`helio run`: a script or a command on the cluster."""

from __future__ import annotations

from typing import Any

import click

from heliostat.cli.command import DASHES, helio_command
from heliostat.cli.options import Options, said
from heliostat.cli.run_options import asked, run_options
from heliostat.core.errors import UsageError
from heliostat.core.run import OnInterrupt, RunEnd


@helio_command(
    "run",
    help="Run FILE, or a COMMAND after `--`, on the cluster; it is brought up when it is not. Your folder is "
    "sent, the output shown as it comes, `outputs` fetched, and the job's own exit code is the exit code. "
    "Ctrl-C asks whether to stop the job or to leave it.",
    short_help="Run a script or a command on the cluster.",
    example="helio run train.py --epochs 3\nhelio run --num-gpus 1 -- python -m train\n"
    "helio run --attach RUN",
    words=1,
    own=("-e", "-r", "-d"),
    context_settings={"allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="FILE|-- COMMAND…")
@click.option("--detach", "--no-wait", "-d", "detach", is_flag=True, help="Come back once it is submitted.")
@click.option("--attach", metavar="RUN", help="Take up a run that goes on without you.")
@click.option(
    "--on-interrupt",
    type=click.Choice([one.value for one in OnInterrupt]),
    default=OnInterrupt.ASK.value,
    help="What Ctrl-C means for the job (default: ask; leave where nobody can be asked).",
)
@run_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    words: tuple[str, ...],
    detach: bool,
    attach: str | None,
    on_interrupt: str,
    **rest: Any,
) -> int:
    way = OnInterrupt(on_interrupt)
    if attach is not None:
        if words or detach:
            raise UsageError("--attach takes up a run that there is: nothing new to run goes with it")
        return taken_up(said(ctx), attach, way)
    return submitted(ctx, words, detach=detach, on_interrupt=way, **rest)


def submitted(
    ctx: click.Context, words: tuple[str, ...], *, detach: bool, on_interrupt: OnInterrupt, **rest: Any
) -> int:
    """Run what was typed, on the cluster of the file."""
    from heliostat.cli.session import Session
    from heliostat.engine.run import run

    session = Session(said(ctx))
    dashes = bool(ctx.meta[DASHES])
    ask = asked(session.decoded.spec, words, dashes=dashes, detach=detach, on_interrupt=on_interrupt, **rest)
    return told(session, session.play(lambda site: run(site, ask)))


def taken_up(options: Options, job_id: str, on_interrupt: OnInterrupt) -> int:
    from heliostat.cli.session import Session
    from heliostat.engine.run import attach

    session = Session(options)
    return told(session, session.play(lambda site: attach(site, job_id, on_interrupt=on_interrupt)))


def told(session: Any, end: RunEnd) -> int:
    """The exit code; why there is none of the job's own, where Ray says; the id, where that is the result."""
    from heliostat.engine.run import exit_code

    if end.job.code is None and end.job.message and end.job.state.final and not end.interrupted:
        session.renderer.screen.line(end.job.message.strip())
    lines = [end.job.id] if end.left_running and not end.interrupted else []
    data = {"verb": "run", "job_code": end.job.code, "end": end}
    code: int = session.show(lines, data, exit_code(end))
    return code
