"""`helio doctor`: what this machine has, lacks, or has in the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options
from heliostat.core.errors import HelioError, MissingPart

if TYPE_CHECKING:
    from heliostat.cli.checkup import Finding
    from heliostat.cli.session import Session


@helio_command(
    "doctor",
    help="What this machine has, lacks, or has in the way, and what to do about it. Exit code 2 when "
    "clusters on this machine cannot work.",
    short_help="Look at this machine.",
    example="helio doctor",
)
@click.pass_obj
def command(options: Options) -> int:
    from heliostat.cli.checkup import Mark, findings
    from heliostat.cli.session import Session

    session = Session(options)
    found = [*findings(), *_leftovers(session)]
    code = MissingPart.code if any(each.mark is Mark.BAD for each in found) else 0
    return session.show(_lines(found), {"verb": "doctor", "findings": found}, code)


def _lines(found: Sequence[Finding]) -> list[str]:
    from heliostat.cli.render.tables import columns

    lines = list(columns((each.mark.value, each.what, each.text) for each in found))
    todo = [f"{each.what}: {each.todo}" for each in found if each.todo]
    return [*lines, *(["", "what to do:", *todo] if todo else [])]


def _leftovers(session: Session) -> list[Finding]:
    """Clusters without a head, here on this machine."""
    from heliostat import wiring
    from heliostat.cli.checkup import Finding, Mark
    from heliostat.core.decode import default_cluster
    from heliostat.core.status import Listed
    from heliostat.engine.status import clusters

    async def listed() -> tuple[Listed, ...]:
        site = await wiring.site(default_cluster("."), emit=session.renderer, ask=session.ask)
        return await clusters(site)

    try:
        known = session.wait_for(listed)
    except HelioError as error:
        return [Finding("clusters", Mark.WARN, f"cannot be listed: {error.what}", error.fix)]
    remains = [each.cluster for each in known if each.remains]
    if remains:
        return [Finding("clusters", Mark.WARN, f"left behind: {', '.join(remains)}", "helio clean")]
    return [Finding("clusters", Mark.OK, f"{len(known)} on this machine")]
