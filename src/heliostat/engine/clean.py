"""Removing what crashed runs left: what they never finished, and clusters without a living head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heliostat.core.errors import Conflict, LeftBehind
from heliostat.core.event import Began, Ended, Note
from heliostat.core.intent import Intent
from heliostat.core.owner import Owner
from heliostat.core.plan import with_needs
from heliostat.core.proof import Proof
from heliostat.core.resource import Ref
from heliostat.core.status import Standing, standing_of
from heliostat.engine.lifecycle import KEEPING, remove_all
from heliostat.engine.look import listing
from heliostat.engine.losses import lost_with
from heliostat.engine.patience import PATIENCE, Patience
from heliostat.engine.ports import Site
from heliostat.engine.status import by_owner

REMOVING = ("down", KEEPING)
YOUNG = 900.0  # seconds: without a word in our journal, it may be somebody's `up` on another machine


async def clean(site: Site, *, patience: Patience = PATIENCE) -> tuple[Proof, ...]:
    """Clean up after every cluster of this principal at this place; a proof for each that was touched."""
    began = site.clock.monotonic()
    site.emit(Began(verb="clean", cluster="", where=site.spec.where))
    everything = Owner(site.owner.principal)
    found = dict(by_owner(await listing(site, everything, patience=patience.answer)))
    intents = site.journal.open(everything)
    owners = dict.fromkeys([*found, *(intent.owner for intent in intents)])
    proofs: list[Proof] = []
    failed: list[LeftBehind] = []
    for owner in owners:
        mine = replace(site, owner=owner, spec=replace(site.spec, cluster=owner.cluster or ""))
        try:
            proof = await _clean_one(mine, patience)
        except Conflict as busy:
            site.emit(Note(text=f"{owner.cluster} is left alone: {busy.why}"))
        except LeftBehind as error:
            failed.append(error)
        else:
            proofs += [proof] if proof else []
    if failed:
        raise failed[0]
    text = f"{len(proofs)} cleaned up" if proofs else "nothing to clean up"
    site.emit(Ended(verb="clean", seconds=site.clock.monotonic() - began, text=text))
    return tuple(proofs)


async def _clean_one(site: Site, patience: Patience) -> Proof | None:
    """One cluster, held; nothing when it is sound or may still be coming up elsewhere."""
    with site.journal.hold(site.owner, "clean"):
        intents = site.journal.open(site.owner)
        refs = await listing(site, patience=patience.answer)
        if not intents and not _abandoned(site, refs):
            return None
        if _all_goes(refs, intents):
            keep_data = any(intent.verb == KEEPING for intent in intents)
            lost = await lost_with(site, refs, keep_data=keep_data)
            if lost and not site.ask(f"Remove what is left of {site.spec.cluster}?", details=lost):
                return None
            return await remove_all(site, refs, verb="clean", keep_data=keep_data, patience=patience)
        # What stays needs what it stands on, whoever made that.
        stays = with_needs(refs, lambda ref: not _made_by(ref, intents))

        def which(ref: Ref) -> bool:
            return ref.name not in stays and _made_by(ref, intents)

        return await remove_all(site, refs, verb="clean", which=which, patience=patience)


def _abandoned(site: Site, refs: Sequence[Ref]) -> bool:
    """Without a living head, and old enough not to be coming up from another machine."""
    if standing_of(refs) not in (Standing.REMAINS, Standing.LEAVING):
        return False
    newest = max((ref.created or 0.0 for ref in refs), default=0.0)
    if site.clock.now() - newest < YOUNG:
        text = f"{site.spec.cluster} has no head, but is new: another machine may be making it. Left alone."
        site.emit(Note(text=text))
        return False
    return True


def _made_by(ref: Ref, intents: Sequence[Intent]) -> bool:
    """Whether one of these unfinished runs made it; by name and time where the place writes no runs."""
    for intent in intents:
        if ref.run == intent.run:
            return True
        if not ref.run and ref.name in intent.names and (ref.created or 0.0) >= intent.at:
            return True
    return False


def _all_goes(refs: Sequence[Ref], intents: Sequence[Intent]) -> bool:
    """A half removed cluster, one without a head, and one whose head was never finished go as a whole."""
    if any(intent.verb in REMOVING for intent in intents):
        return True
    rest = [ref for ref in refs if not _made_by(ref, intents)]
    return standing_of(rest) in (Standing.REMAINS, Standing.LEAVING)
