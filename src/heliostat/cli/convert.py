"""`helio convert`: the heliostat file that somebody else's file means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options, said
from heliostat.core.errors import Interrupted

if TYPE_CHECKING:
    from heliostat.core.foreign import Converted


@helio_command(
    "convert",
    help="Write the heliostat file that FILE means: a cluster YAML of Ray's (`ray up`) or a Compose file "
    "that starts Ray. Comments say where each value came from, and name whatever could not be carried over. "
    "Without -o it is printed. FILE itself is not touched.",
    short_help="Write the heliostat file that a Ray or Compose file means.",
    example="helio convert gce-full.yaml\nhelio convert docker-compose.yaml -o helio.yaml",
)
@click.argument("path", metavar="FILE", required=False)
@click.option(
    "-o", "--output", metavar="OUT", help="The file to write; it is replaced only with --yes or when asked."
)
@click.pass_context
def command(ctx: click.Context, path: str | None, output: str | None) -> int:
    from heliostat.core.foreign import convert
    from heliostat.engine.project import read_file

    options = said(ctx)
    given = path or options.file
    if given is None:
        raise click.UsageError("name the file: helio convert FILE", ctx)
    if path and options.file and path != options.file:
        raise click.UsageError(f"one file at a time: {options.file} or {path}", ctx)
    file, shown, text = read_file(given)
    made = convert(text, shown)
    return _print(options, file, made) if output is None else _write(options, file, made, output)


def _data(file: Path, made: Converted) -> dict[str, object]:
    remarks = [str(remark) for remark in made.remarks]
    return {
        "verb": "convert",
        "file": str(file),
        "kind": made.kind,
        "remarks": remarks,
        "warnings": made.warnings,
    }


def _print(options: Options, file: Path, made: Converted) -> int:
    data = {**_data(file, made), "text": made.text}
    return options.show(made.text.rstrip("\n").split("\n"), data)


def _write(options: Options, file: Path, made: Converted, output: str) -> int:
    from heliostat.cli.session import Session
    from heliostat.core.errors import UsageError
    from heliostat.core.remark import Level
    from heliostat.engine.files import write_text

    session = Session(options)
    target = Path(output).expanduser()
    if target.exists() and target.samefile(file):
        raise UsageError(f"{output} is the file that is read", fix="name another one: -o helio.yaml")
    if target.exists() and not session.ask(f"replace {output}?", details=["what stands there is lost"]):
        raise Interrupted("nothing was written")
    write_text(target, made.text)
    if target.absolute().parent != file.parent:
        folder = target.absolute().parent
        session.renderer.screen.line(
            f"relative paths in it start at {folder} now, no longer at {file.parent}"
        )
    for warning in made.warnings:
        session.renderer.screen.line(warning)
    lost = dict.fromkeys(remark.key for remark in made.remarks if remark.level == Level.LOST)
    named = f"; not carried over, as its last lines say: {', '.join(lost)}" if lost else ""
    lines = [f"wrote {output}, from {made.kind}{named}", f"next: helio check {output}"]
    return session.show(lines, {**_data(file, made), "output": str(target)})
