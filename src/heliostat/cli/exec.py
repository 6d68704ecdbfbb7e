"""`helio exec`: a command on one, some or all nodes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from heliostat.cli.command import HelioCommand, helio_command
from heliostat.cli.nodes import chosen
from heliostat.cli.options import Options

if TYPE_CHECKING:
    import asyncio

    from heliostat.cli.session import Session
    from heliostat.core.executed import Executed
    from heliostat.engine.ports import Site

AFTER = "heliostat.exec"
SLOW = 3.0  # seconds after which somebody wants to know what is waited for


class ExecCommand(HelioCommand):
    """Nodes stand before `--`, the command after it; without `--` all words are the command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" not in args:
            ctx.allow_interspersed_args = False  # what follows its first word is the command's own
            return super().parse_args(ctx, args)
        place = args.index("--")
        ctx.meta[AFTER] = tuple(args[place + 1 :])
        return super().parse_args(ctx, args[:place])

    def needed(self, ctx: click.Context) -> int:
        return 0 if AFTER in ctx.meta else self.words


@helio_command(
    "exec",
    cls=ExecCommand,
    help="Run COMMAND on the head, on the nodes named before `--`, or with --all on every node, all at the "
    "same time. One word is a line for the shell there; several are a program and its arguments. "
    "The node's own Python is first on PATH, and Ray's commands find the cluster.\n\n"
    "For one node the exit code is the command's, and its output is passed on untouched; for several each "
    "line begins with its node, and the exit code is the first that is not 0. When nobody reads the output "
    "any more (`| head`), the command is ended, and the exit code is 141.",
    short_help="Run a command on one, some or all nodes.",
    example="helio exec -- ray status\nhelio exec --all -- nvidia-smi -L\n"
    "helio exec cpu-1 cpu-2 -- python -c 'import ray; print(ray.__version__)'\n"
    "helio exec 'df -h / | tail -1'\nhelio exec -- tee /tmp/notes < notes",
    words=1,
)
@click.argument("words", nargs=-1, metavar="[NODE…] [--] COMMAND…")
@click.option("--all", "-a", "everywhere", is_flag=True, help="On every node.")
@click.option("--no-stdin", "-n", is_flag=True, help="Leave the standard input alone, as in a `while read`.")
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...], everywhere: bool, no_stdin: bool) -> int:
    from heliostat.cli.session import Session
    from heliostat.core.executed import exit_code

    options: Options = ctx.obj
    after: tuple[str, ...] | None = ctx.meta.get(AFTER)
    argv, named = (words, ()) if after is None else (after, words)
    if not argv:
        raise click.UsageError("there is no command: helio exec [NODE…|--all] -- COMMAND…", ctx)
    nodes = chosen(ctx, named, everywhere=everywhere)
    wants_input = nodes is not None and len(nodes) == 1 and not no_stdin
    session = Session(options)
    results = session.play(
        lambda site: _run(session, site, argv, nodes, after is None, wants_input), to_reader=True
    )
    _tell(session, results)
    return session.show([], {"verb": "exec", "nodes": results}, exit_code(results))


async def _run(
    session: Session,
    site: Site,
    argv: Sequence[str],
    nodes: Sequence[str] | None,
    undivided: bool,
    wants_input: bool,
) -> tuple[Executed, ...]:
    from functools import partial

    from heliostat.core.errors import UsageError
    from heliostat.engine.execute import execute
    from heliostat.engine.nodes import pick
    from heliostat.ray.surroundings import surroundings

    if undivided and len(argv) > 1 and argv[0] in {ref.key for ref in await pick(site, None)}:
        fix = f"put -- before the command: helio exec {argv[0]} -- {' '.join(argv[1:])}"
        raise UsageError(f"{argv[0]} is a node, and was read as the command", fix=fix)
    data = await piped(session) if wants_input else b""
    return await execute(site, argv, nodes, env_of=partial(surroundings, site.spec), stdin=data)


async def piped(session: Session) -> bytes:
    """What was piped in, to its end; nothing from a terminal."""
    import asyncio
    import threading

    stream = getattr(sys.stdin, "buffer", None)
    if stream is None or stream.closed or stream.isatty():
        return b""
    loop = asyncio.get_running_loop()
    whole: asyncio.Future[bytes] = loop.create_future()
    # A thread of its own, because a pipe that never ends must not hold up our exit.
    threading.Thread(target=_read, args=(stream.fileno(), loop, whole), daemon=True).start()
    done, _ = await asyncio.wait([whole], timeout=SLOW)
    if not done:
        session.renderer.screen.line(
            "reading the standard input to its end first; --no-stdin leaves it alone"
        )
    return await whole


def _read(number: int, loop: asyncio.AbstractEventLoop, whole: asyncio.Future[bytes]) -> None:
    """Not by Python's own buffer: its lock would be held at exit."""
    import os
    from contextlib import suppress

    parts = []
    try:
        while part := os.read(number, 1 << 20):
            parts.append(part)
    except OSError:
        pass  # what cannot be read, such as a directory, says nothing
    with suppress(RuntimeError):  # interrupted meanwhile: nobody waits any more
        loop.call_soon_threadsafe(whole.set_result, b"".join(parts))


def _tell(session: Session, results: Sequence[Executed]) -> None:
    """The closing line, where some of several failed."""
    from heliostat.core.event import Level, Note
    from heliostat.core.executed import failures

    if len(results) > 1 and (text := failures(results)):
        session.renderer(Note(text=text, level=Level.WARN))
