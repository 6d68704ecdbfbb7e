"""Finding a node by its name, and taking one away to practise."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from heliostat.core.errors import Interrupted, LeftBehind, Unavailable, UsageError
from heliostat.core.resource import HEAD, NODE, Ref, State
from heliostat.engine.apply import remove
from heliostat.engine.look import head_of, listing, listing_of, nodes_of
from heliostat.engine.losses import job_lines, running_jobs
from heliostat.engine.patience import PATIENCE, Patience
from heliostat.engine.ports import Site


async def head(site: Site, *, patience: Patience = PATIENCE) -> Ref:
    """The head, ready to be reached."""
    found = head_of(await listing_of(site, [HEAD], patience=patience.look))
    if found is None:
        raise _not_up(site)
    if found.state is not State.READY:
        word = "is broken" if found.state is State.BROKEN else "is still starting"
        raise UsageError(f"the head of {site.spec.cluster} {word}", fix="`helio up` completes or repairs it")
    return found


async def pick(site: Site, names: Sequence[str] | None, *, patience: Patience = PATIENCE) -> tuple[Ref, ...]:
    """The nodes of these names, in this order; all of them without names."""
    return named(site, await around(site, names, patience=patience), names)


async def around(
    site: Site, names: Sequence[str] | None, *, patience: Patience = PATIENCE
) -> Mapping[str, Ref]:
    """The nodes of these names and the head, as far as they are there; maybe others. Without names all."""
    if names is None:
        there = nodes_of(await listing(site, patience=patience.look))
    else:
        there = nodes_of(await listing_of(site, [HEAD, *names], patience=patience.look))
    if not there:
        raise _not_up(site)
    return there


def named(site: Site, there: Mapping[str, Ref], names: Sequence[str] | None) -> tuple[Ref, ...]:
    """Of these nodes those of these names, in this order; all of them without names."""
    if names is None:
        return tuple(there.values())
    for name in names:
        if name in there:
            continue
        if name in {one.key for one in site.ground.want(site.spec) if one.kind == NODE}:
            raise Unavailable(
                f"{name} is missing", why="it is not there now", fix="`helio up` makes it again"
            )
        near = difflib.get_close_matches(name, there, n=1)
        hint = f"did you mean {near[0]}?" if near else ""
        why = f"there are: {', '.join(there)}"
        raise UsageError(f"{site.spec.cluster} has no node {name}", why=why, fix=hint)
    return tuple(there[name] for name in dict.fromkeys(names))


async def kill(site: Site, name: str, *, patience: Patience = PATIENCE) -> Ref:
    """Take one node away, as a fault would; `up` brings it back."""
    with site.journal.hold(site.owner, "kill"):
        (ref,) = await pick(site, [name], patience=patience)
        details = job_lines(await running_jobs(site, [ref])) if name == HEAD else []
        if name == HEAD and not site.ask(f"Kill the head of {site.spec.cluster}?", details=details):
            raise Interrupted("not confirmed: nothing was killed")
        if await remove(site, [ref], patience, patience.gone):
            raise LeftBehind(f"{name} is still there", why="the place still lists it", fix=ref.removal)
    return ref


def _not_up(site: Site) -> UsageError:
    return UsageError(f"no cluster {site.spec.cluster} is up", fix="start it with `helio up`")
