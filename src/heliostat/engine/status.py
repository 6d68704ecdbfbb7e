"""What there is: the place's list beside Ray's list."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import groupby

from heliostat.core.errors import HelioError
from heliostat.core.job import Job, RayNode
from heliostat.core.owner import Owner
from heliostat.core.resource import NODE, SERVICE, Ref, State
from heliostat.core.status import Listed, NodeState, NodeStatus, Status, node_statuses, standing_of
from heliostat.engine.look import head_of, listing, nodes_of, ray_of
from heliostat.engine.patience import PATIENCE, Patience
from heliostat.engine.ports import Site
from heliostat.engine.services import service_troubles


async def status(site: Site, *, patience: Patience = PATIENCE) -> Status:
    """The cluster as it is now; an empty one when nothing of it exists."""
    refs = await listing(site, patience=patience.look)
    if not refs:
        return Status(cluster=site.spec.cluster, where=site.spec.where)
    head = head_of(refs)
    nodes, jobs, trouble = await _ask(site, head, patience)
    return status_of(site, refs, nodes, jobs=jobs, trouble=trouble, patience=patience)


async def _ask(
    site: Site, head: Ref | None, patience: Patience
) -> tuple[tuple[RayNode, ...] | None, tuple[Job, ...], tuple[str, ...]]:
    """Ray's word, or a sentence on why there is none."""
    if head is None:
        return None, (), ("There is no head: `helio up` makes one, `helio down` removes the rest.",)
    if head.state is not State.READY:
        word = "is broken" if head.state is State.BROKEN else "is still starting"
        return None, (), (f"The head {word}: `helio up` completes or repairs it.",)
    try:
        async with asyncio.timeout(patience.look), ray_of(site, head) as api:
            nodes, jobs = await asyncio.gather(api.nodes(), api.jobs())
            return nodes, jobs, ()
    except TimeoutError:
        return None, (), (f"The head did not answer within {patience.look:g} s: `helio up` repairs it.",)
    except HelioError as error:
        why = f" ({error.why})" if error.why else ""
        return None, (), (f"The head does not answer: {error.what}{why}. `helio up` repairs it.",)


def status_of(
    site: Site,
    refs: Sequence[Ref],
    ray: Iterable[RayNode] | None,
    *,
    jobs: tuple[Job, ...] = (),
    trouble: tuple[str, ...] = (),
    patience: Patience = PATIENCE,
) -> Status:
    """Put both lists together."""
    head = head_of(refs)
    wanted = [resource.key for resource in site.ground.want(site.spec) if resource.kind == NODE]
    now = site.clock.now()
    nodes = node_statuses(wanted, nodes_of(refs), ray, now=now, grace=patience.join)
    return Status(
        cluster=site.spec.cluster,
        where=site.spec.where,
        nodes=nodes,
        jobs=jobs,
        services=tuple(ref for ref in refs if ref.kind == SERVICE),
        uptime=None if head is None or head.created is None else now - head.created,
        dashboard="" if head is None else head.facts.get("dashboard", ""),
        trouble=(*trouble, *_troubles(nodes if ray is not None else ()), *service_troubles(refs)),
        price=_price(site, refs),
    )


def _troubles(nodes: Iterable[NodeStatus]) -> tuple[str, ...]:
    nodes = tuple(nodes)
    alive = [node for node in nodes if node.state is NodeState.ALIVE and node.why]
    sentences = [f"{node.name}: {node.why}. `helio up` repairs it." for node in alive]
    for state, word in ((NodeState.DEAD, "dead"), (NodeState.MISSING, "missing")):
        names = [node.name for node in nodes if node.state is state]
        if names:
            verb = "is" if len(names) == 1 else "are"
            sentences.append(f"{', '.join(names)} {verb} {word}: `helio up` repairs it.")
    return tuple(sentences)


def _price(site: Site, refs: Sequence[Ref]) -> float | None:
    """What it costs in an hour, as far as the place knows its prices."""
    there = {ref.name for ref in refs}
    prices = [r.price for r in site.ground.want(site.spec) if r.name in there and r.price is not None]
    return sum(prices) if prices else None


async def clusters(site: Site, *, patience: Patience = PATIENCE) -> tuple[Listed, ...]:
    """All clusters of this principal at this place. Asks the place only, so it is quick."""
    refs = await listing(site, Owner(site.owner.principal), patience=patience.look)
    return tuple(_listed(site, owner, list(group)) for owner, group in by_owner(refs))


def by_owner(refs: Iterable[Ref]) -> list[tuple[Owner, tuple[Ref, ...]]]:
    """Sort resources by the cluster that they belong to."""
    ordered = sorted(refs, key=lambda ref: (ref.owner.principal, ref.owner.cluster or ""))
    return [(owner, tuple(group)) for owner, group in groupby(ordered, key=lambda ref: ref.owner)]


def _listed(site: Site, owner: Owner, refs: Sequence[Ref]) -> Listed:
    head = head_of(refs)
    return Listed(
        cluster=owner.cluster or "",
        where=site.spec.where,
        owner=owner,
        standing=standing_of(refs),
        nodes=len(nodes_of(refs)),
        resources=len(refs),
        uptime=None if head is None or head.created is None else site.clock.now() - head.created,
    )
