"""`helio check`: every mistake in the file at once, or what the file means."""

from __future__ import annotations

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options, remember, said
from heliostat.core.errors import UsageError


@helio_command(
    "check",
    help="Find every mistake in the file at once, each with its line, its column and the nearest valid name, "
    "or say what the file means. Nothing is asked of any place. With --schema, print the JSON Schema with "
    "which editors complete and check the file.",
    short_help="Find every mistake in the file.",
    example="helio check\nhelio check --schema > helio.schema.json",
)
@click.argument("path", metavar="[FILE]", required=False)
@click.option("--schema", is_flag=True, help="Print the file's JSON Schema.")
@click.pass_context
def command(ctx: click.Context, path: str | None, schema: bool) -> int:
    if schema:
        return _schema(said(ctx))
    if path is not None:
        if said(ctx).file is not None:
            raise click.UsageError(f"one file at a time: {said(ctx).file} or {path}", ctx)
        remember(ctx, file=path)
    return _check(said(ctx))


def _schema(options: Options) -> int:
    import json

    from heliostat.core.schema import json_schema

    # What is asked for is JSON already: --json wraps it in nothing.
    return options._replace(json=False).show([json.dumps(json_schema(), indent=2)], {})


def _check(options: Options) -> int:
    from heliostat.cli.render.plans import cluster_line
    from heliostat.cli.session import Session
    from heliostat.core.remark import Level

    session = Session(options)
    decoded = session.decoded
    spec = decoded.spec
    if not spec.source:
        raise UsageError(
            "there is no helio.yaml to check, here or above",
            why="without one the commands use the cluster `default` on this machine",
            fix="helio init writes one; or name a file: helio check FILE",
        )
    data = {"verb": "check", "file": spec.source, "cluster": spec.cluster, "where": spec.where}
    for remark in decoded.remarks:
        if remark.level != Level.OURS:
            session.renderer.screen.line(str(remark))
    lines = [f"ok: {cluster_line(spec)}"]
    return session.show(
        lines, {**data, "notes": decoded.notes, "remarks": [str(remark) for remark in decoded.remarks]}
    )
