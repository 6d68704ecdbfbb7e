"""The table of commands, and the one place where an error becomes words and an exit code.

A module is imported only when its command runs, so that `helio --help` stays quick.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import click

from heliostat import __version__
from heliostat.cli.options import common, said


class Entry(NamedTuple):
    group: str
    module: str
    text: str


COMMANDS: dict[str, Entry] = {
    name: Entry(group, f"heliostat.cli.{module}", text)
    for group, rows in {
        "Cluster": (
            ("init", "init", "Write a helio.yaml to start from."),
            ("check", "check", "Find every mistake in the file, or say what it means."),
            ("convert", "convert", "Write the heliostat file that a Ray or Compose file means."),
            ("plan", "plan", "Show what `up` would do, and where every default came from."),
            ("up", "up", "Bring the cluster up, or to what the file says now."),
            ("status", "status", "Nodes, resources, jobs: what is there, and what Ray says."),
            ("ls", "ls", "All of your clusters."),
            ("restart", "restart", "Restart Ray on every node; the nodes stay."),
            ("kill", "kill", "Kill a node, to practise."),
            ("down", "down", "Remove the cluster, and prove that nothing is left."),
            ("clean", "clean", "Remove what crashed runs left behind."),
        ),
        "Jobs": (
            ("run", "run", "Run a script or a command on the cluster, with its exit code."),
            ("submit", "submit", "Start it and come back at once: `run --detach`."),
            ("jobs", "jobs", "Jobs, how they stand and how they ended."),
            ("logs", "logs", "What a job printed; -f follows it."),
            ("stop", "stop", "End a job, whether it runs or waits."),
        ),
        "Nodes and files": (
            ("exec", "exec", "Run a command on one, some or all nodes."),
            ("ssh", "ssh", "Open a shell on a node."),
            ("push", "push", "Copy files to nodes; only what differs travels."),
            ("pull", "pull", "Copy files from nodes, or from a run."),
            ("open", "open", "Open the dashboard in the browser, logged in."),
        ),
        "Around it": (
            ("image", "image", "Build the nodes' image, or push it."),
            ("bundle", "bundle", "Gather Ray's wheels for hosts without internet."),
            ("doctor", "doctor", "What this machine has, lacks, or has in the way."),
            ("completion", "completion", "Print the completion script of bash, zsh or fish."),
            ("help", "help", "Help on a command, or on: exit-codes, environment."),
        ),
    }.items()
    for name, module, text in rows
}


class HelioGroup(click.Group):
    """A group that knows its commands' names and help without importing them."""

    def __init__(self, *args: Any, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.params.extend(common())

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name].module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if word not in COMMANDS and not ctx.resilient_parsing and word[:1].isalnum():
            raise click.UsageError(f"there is no command {word}.{_nearest(word)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for group in dict.fromkeys(entry.group for entry in COMMANDS.values()):
            rows = [(name.ljust(width), e.text) for name, e in COMMANDS.items() if e.group == group]
            with formatter.section(group):
                formatter.write_dl(rows)


def _nearest(word: str) -> str:
    import difflib

    close = difflib.get_close_matches(word, COMMANDS, n=1, cutoff=0.5)
    return f" Did you mean {close[0]}?" if close else ""


SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=HelioGroup, context_settings=SETTINGS)
@click.version_option(__version__, prog_name="helio")
def cli() -> None:
    """Ray clusters on every place you have, from one file."""


def main(args: Sequence[str] | None = None) -> NoReturn:
    """The entry point: whatever happens inside, one clear message and one documented exit code."""
    gc.set_threshold(10_000)  # loading makes many records and hardly a cycle
    words = list(sys.argv[1:] if args is None else args)
    if "_HELIO_COMPLETE" in os.environ:  # the shell asks what could come next
        cli.main(prog_name="helio")
    code = run(words)
    _flush()
    gc.freeze()  # the end frees it all: looking for what nobody needs any more would only take time
    sys.exit(code)


def run(words: Sequence[str]) -> int:
    """Run one command line to its exit code."""
    ctx: click.Context | None = None
    try:
        with cli.make_context("helio", list(words)) as ctx:
            code = cli.invoke(ctx)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except BaseException as error:  # noqa: BLE001 - the one place: everything becomes words and a code
        from heliostat.cli.failure import failed

        found = getattr(error, "ctx", None) or ctx
        wants_json = said(found).json if found is not None else "--json" in words
        return failed(error, as_json=wants_json or "--json" in words[: _own(words)], words=words)
    return code if isinstance(code, int) else 0


def _own(words: Sequence[str]) -> int:
    """How many words are surely ours: those before `--`."""
    return words.index("--") if "--" in words else len(words)


def _flush() -> None:
    """A reader that went away is no error of ours, also not at the very end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
