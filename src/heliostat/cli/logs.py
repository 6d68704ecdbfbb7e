"""`helio logs`: what a job printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options
from heliostat.core.errors import UsageError

if TYPE_CHECKING:
    from heliostat.engine.ports import Site


@helio_command(
    "logs",
    help="Print what a job wrote so far (the latest one without RUN; the beginning of an id is enough), or "
    "what a service such as prometheus wrote. With -f, follow a job to its end, over cut connections, and "
    "exit with the job's own code. With --node, what that node said while it booted.",
    short_help="What a job printed; -f follows it.",
    example="helio logs\nhelio logs -f train-261119-0\nhelio logs --node worker-1",
    own=("-f",),
)
@click.argument("job", metavar="[RUN|SERVICE]", required=False)
@click.option("-f", "--follow", is_flag=True, help="To its end.")
@click.option("--node", metavar="NODE", help="How a node booted, instead of a job.")
@click.pass_obj
def command(options: Options, job: str | None, follow: bool, node: str | None) -> int:
    from heliostat.cli.session import Session

    if node is not None:
        if job or follow:
            raise UsageError("--node is about a node: no RUN and no -f go with it")
        session = Session(options, makes=False)
        session.play(lambda site: _booted(site, node))
        return session.show([], {"verb": "logs", "node": node})
    from heliostat.core.run import RunEnd
    from heliostat.engine.jobs import logs
    from heliostat.engine.run import exit_code
    from heliostat.engine.services import log_of

    session = Session(options, makes=False)
    written = session.play(lambda site: log_of(site, job)) if job and not follow else None
    if written is not None:
        text = written.decode(errors="replace")
        return session.show(text.splitlines(), {"verb": "logs", "service": job, "text": text})
    found = session.play(lambda site: logs(site, job, live=follow), to_reader=True)
    code = exit_code(RunEnd(job=found, seconds=0)) if follow else 0
    return session.show([], {"verb": "logs", "job": found}, code)


async def _booted(site: Site, node: str) -> None:
    from heliostat.core.event import Output
    from heliostat.engine.bootlog import boot_log
    from heliostat.engine.nodes import pick

    (ref,) = await pick(site, [node])
    site.emit(Output(data=await boot_log(site.ground, ref)))
