"""`helio plan`: what `up` would do, what it costs, and where every value came from."""

from __future__ import annotations

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options


@helio_command(
    "plan",
    help="Show what `up` would do: each difference, whether it is live, restarts Ray or replaces the node, "
    "the price where it is known, and every value with where it came from. Nothing is changed.",
    short_help="Show what `up` would do.",
    example="helio plan\nhelio plan --set workers=4",
)
@click.pass_obj
def command(options: Options) -> int:
    from heliostat.cli.render.plans import hourly, origin_lines, plan_lines
    from heliostat.cli.session import Session
    from heliostat.engine.lifecycle import plan

    session = Session(options)
    found = session.play(plan)
    decoded = session.decoded
    lines = [f"{decoded.spec.cluster} on {decoded.spec.where}", *plan_lines(found)]
    if decoded.origins:
        lines += ["", "values and where they come from:", *origin_lines(decoded)]
    data = {"verb": "plan", "empty": found.empty, "plan": found, "price": hourly(found)}
    return session.show(lines, {**data, "origins": decoded.origins})
