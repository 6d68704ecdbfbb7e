"""`helio doctor`: what this machine has, lacks, or has in the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options
from heliostat.core.errors import HelioError, MissingPart

if TYPE_CHECKING:
    from heliostat.cli.session import Session
    from heliostat.core.checked import Checked


@helio_command(
    "doctor",
    help="What this machine has, lacks, or has in the way, and what to do about it. With -f FILE also the "
    "place of that file: which GPUs it has and to which worker each would go, which ports are taken. "
    "Exit code 2 when clusters on this machine, or that file's, cannot work.",
    short_help="Look at this machine, or at a file's place.",
    example="helio doctor\nhelio doctor -f helio.yaml",
)
@click.pass_obj
def command(options: Options) -> int:
    from heliostat.cli.checkup import findings
    from heliostat.cli.session import Session
    from heliostat.core.checked import Mark

    session = Session(options)
    found = [*findings(), *_leftovers(session), *(_place(session) if options.file else ())]
    code = MissingPart.code if any(each.mark is Mark.BAD for each in found) else 0
    return session.show(_lines(found), {"verb": "doctor", "findings": found}, code)


def _lines(found: Sequence[Checked]) -> list[str]:
    from heliostat.cli.render.tables import columns

    lines = list(columns((each.mark.value, each.what, each.text) for each in found))
    todo = [f"{each.what}: {each.todo}" for each in found if each.todo]
    return [*lines, *(["", "what to do:", *todo] if todo else [])]


def _place(session: Session) -> list[Checked]:
    """The place of the file that was named, as far as it can be looked at before anything is there."""
    from heliostat.core.checked import Checked, Mark
    from heliostat.engine.ports import Foresees, Site

    async def looked(site: Site) -> list[Checked]:
        if not isinstance(site.ground, Foresees):
            return []
        return list(await site.ground.foresee(site.owner, site.spec, everything=True))

    try:
        return session.play(looked)
    except HelioError as error:
        return [Checked(session.decoded.spec.where, Mark.BAD, error.what, error.fix, error)]


def _leftovers(session: Session) -> list[Checked]:
    """Clusters without a head, here on this machine."""
    from heliostat import wiring
    from heliostat.core.checked import Checked, Mark
    from heliostat.core.decode import default_cluster
    from heliostat.core.status import Listed
    from heliostat.engine.status import clusters

    async def listed() -> tuple[Listed, ...]:
        site = await wiring.site(default_cluster("."), emit=session.renderer, ask=session.ask)
        return await clusters(site)

    try:
        known = session.wait_for(listed)
    except HelioError as error:
        return [Checked("clusters", Mark.WARN, f"cannot be listed: {error.what}", error.fix)]
    remains = [each.cluster for each in known if each.remains]
    if remains:
        return [Checked("clusters", Mark.WARN, f"left behind: {', '.join(remains)}", "helio clean")]
    return [Checked("clusters", Mark.OK, f"{len(known)} on this machine")]
