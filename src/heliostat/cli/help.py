"""`helio help`: a command's help, the exit codes, the environment."""

from __future__ import annotations

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options

ENVIRONMENT = (
    ("HELIO_STATE", "where intent is noted (default ~/.local/state/heliostat)"),
    ("HELIO_CACHE", "where digests of sent files are kept (default ~/.cache/heliostat)"),
    ("HELIO_DATA", "where local clusters live (default ~/.local/share/heliostat)"),
    ("HELIO_SSH_CONFIG", "a file instead of ~/.ssh/config"),
    ("HELIO_SSH_KEEP", "seconds for which a connection to a host is kept for the next command (0)"),
    ("NO_COLOR", "no colours"),
)


@helio_command(
    "help",
    help="Help on a command, or on: exit-codes, environment.",
    short_help="Help on a command or a topic.",
    example="helio help exit-codes",
)
@click.argument("topic", required=False)
@click.pass_context
def command(ctx: click.Context, topic: str | None) -> int:
    from heliostat.cli.main import cli
    from heliostat.cli.render.tables import columns

    options: Options = ctx.obj
    root = ctx.find_root()
    if topic == "exit-codes":
        from heliostat.core.errors import EXIT_CODES

        rows = [(str(code), text) for code, text in EXIT_CODES]
        note = ("", "`helio run` ends with the job's own exit code; --json tells both apart.")
        return options.show([*columns(rows), *note], {"codes": dict(EXIT_CODES)})
    if topic == "environment":
        return options.show(columns(ENVIRONMENT), {"environment": dict(ENVIRONMENT)})
    if topic is None:
        return options.show([root.get_help()], {"help": root.get_help()})
    name, found, _ = cli.resolve_command(root, [topic])
    assert found is not None  # noqa: S101 - an unknown name was told by resolve_command
    text = found.get_help(click.Context(found, info_name=name, parent=root))
    return options.show([text], {"help": text})
