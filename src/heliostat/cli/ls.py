"""`helio ls`: every cluster of mine, at every place that can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options

if TYPE_CHECKING:
    from heliostat.cli.session import Session
    from heliostat.core.spec import Decoded
    from heliostat.core.status import Listed


@helio_command(
    "ls",
    help="All of your clusters, at every place that can be asked from here: this machine, and the place of "
    "the file.",
    short_help="All of your clusters.",
    example="helio ls",
)
@click.pass_obj
def command(options: Options) -> int:
    from heliostat.cli.render.tables import listed_lines
    from heliostat.cli.session import Session

    session = Session(options, makes=False)
    places = _places(session)
    found = session.wait_for(lambda: _everywhere(session, places))
    return session.show(listed_lines(found), {"verb": "ls", "clusters": found})


def _places(session: Session) -> list[Decoded]:
    """One file for each place: what is asked there are all clusters of the person, not the file's own."""
    from heliostat.core.decode import default_cluster

    chosen = session.decoded
    here = default_cluster(chosen.spec.folder)
    return [chosen] if chosen.spec.where == here.spec.where else [here, chosen]


async def _everywhere(session: Session, places: list[Decoded]) -> tuple[Listed, ...]:
    from heliostat import wiring
    from heliostat.engine.status import clusters

    found: list[Listed] = []
    for place in places:
        site = await wiring.site(place, emit=session.renderer, ask=session.ask)
        found += await clusters(site)
    return tuple(found)
