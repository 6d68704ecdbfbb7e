"""`helio completion`: the script that makes a shell complete commands and options."""

from __future__ import annotations

import os

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options

SHELLS = ("bash", "zsh", "fish")


@helio_command(
    "completion",
    help="Print the completion script of bash, zsh or fish (default: the shell you use).",
    example='eval "$(helio completion bash)"      # in ~/.bashrc; zsh likewise\n'
    "helio completion fish > ~/.config/fish/completions/helio.fish",
)
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.pass_context
def command(ctx: click.Context, shell: str | None) -> int:
    from click.shell_completion import get_completion_class

    from heliostat.cli.main import cli

    options: Options = ctx.obj
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    kind = get_completion_class(name)
    if kind is None:
        raise click.UsageError(f"there is no completion for {name or 'this shell'}: {', '.join(SHELLS)}", ctx)
    script = kind(cli, {}, "helio", "_HELIO_COMPLETE").source()
    return options.show([script], {"shell": name, "script": script})
