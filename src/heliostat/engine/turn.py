"""Taking turns: a run that finds another helio at work on its cluster waits for it, and goes on then."""

from __future__ import annotations

from collections.abc import Sequence

from heliostat.core.errors import Busy
from heliostat.core.event import Note
from heliostat.core.resource import Ref, State
from heliostat.engine.look import head_of, listing
from heliostat.engine.patience import Pace, Patience, within
from heliostat.engine.ports import Site


async def standing(site: Site, patience: Patience) -> tuple[Sequence[Ref], bool]:
    """What there is, once no other helio changes it and its head works, and whether we had to bring it up."""
    raised = False
    while True:
        # Also where a head stands already: it may be starting, or about to be started anew.
        await _others_end(site, patience)
        refs = await listing(site, patience=patience.answer)
        head = head_of(refs)
        if raised or (head is not None and head.state is State.READY):
            return refs, raised
        from heliostat.engine.lifecycle import up  # most runs find a head that works

        try:
            await up(site, patience=patience)
            raised = True
        except Busy:
            continue  # somebody was quicker by a moment


async def _others_end(site: Site, patience: Patience) -> None:
    """Wait until no other helio is at work on this cluster."""
    pace, told = Pace(first=0.2, most=2.0), False
    what = f"the other helio on {site.spec.cluster} to end"
    seconds = patience.make + patience.join  # as long as another `up` may take
    busy = _busy(site)
    if busy is None:
        return
    async with within(seconds, what, fix=busy.fix):
        while busy is not None:
            await site.clock.wait(pace.next())
            busy = _busy(site)
            if busy is not None and not told:  # not another run that only looked, as we do
                told = True
                site.emit(Note(text=f"waiting for {what}: {busy.why}"))


def _busy(site: Site) -> Busy | None:
    try:
        with site.journal.hold(site.owner, "run"):
            return None
    except Busy as busy:
        return busy
