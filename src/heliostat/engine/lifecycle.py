"""up, down and restart: the flows that change a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from heliostat.core.errors import Conflict, Interrupted, LeftBehind, UsageError
from heliostat.core.event import Began, Ended, Planned, Proved
from heliostat.core.names import may_scale_to
from heliostat.core.plan import Change, Cost, Plan, cost_of, data_of, diff
from heliostat.core.proof import Proof
from heliostat.core.resource import HEAD, NODE, Ref, State
from heliostat.core.status import NodeState, Status, judge
from heliostat.engine.erase import erase
from heliostat.engine.look import Look, listing, look
from heliostat.engine.losses import job_lines, lost_by, lost_with, price_line, running_jobs
from heliostat.engine.patience import PATIENCE, Patience
from heliostat.engine.ports import Foresees, Kinds, Site
from heliostat.engine.raising import Raising
from heliostat.engine.runname import new_run
from heliostat.engine.status import status_of

KEEPING = "down --keep-data"  # as the journal calls it: whoever finishes it must keep the data too


async def plan(site: Site, *, patience: Patience = PATIENCE) -> Plan:
    """What `up` would do now; a file that cannot come true there is refused."""
    found = plan_of(site, await look(site, patience=patience.look), patience)
    await _possible(site, found)
    return found


def plan_of(site: Site, seen: Look, patience: Patience) -> Plan:
    """The difference between the file and the world, what Ray holds for dead included."""
    dead = {
        ref.name
        for ref in seen.nodes.values()
        if ref.state is State.READY
        and (seen.ray is not None or ref.key == HEAD)
        and judge(ref, seen.ray, now=site.clock.now(), grace=patience.join) is NodeState.DEAD
    }
    wanted = site.ground.want(site.spec)

    def spare(
        ref: Ref,
    ) -> bool:  # what the autoscaler may have made stays, as long as it is good for something
        works = ref.name not in dead and ref.state is not State.BROKEN
        return works and may_scale_to(site.spec, ref)

    return diff(wanted, seen.refs, dead=dead, spare=spare)


async def up(site: Site, *, keep: bool = False, adopt: bool = False, patience: Patience = PATIENCE) -> Status:
    """Make the cluster what the file says, and come back when all of it is alive in Ray's own list.

    What this `up` made goes again when it fails or is cancelled, unless `keep`.
    """
    if adopt:
        what = f"--adopt is not available yet on {site.spec.where}"
        raise UsageError(what, why="this place cannot hand a cluster to another owner")
    began = _begin(site, "up")
    with ExitStack() as stack:
        busy = _hold(site, stack, "up")
        seen = await look(site, patience=patience.answer)
        plan = plan_of(site, seen, patience)
        alive = all_alive(site, plan, seen)
        if busy is None or alive:
            site.emit(Planned(plan=plan))
        if alive:
            result = status_of(site, seen.refs, seen.ray, patience=patience)
            if busy is None:
                _close_open(site)
            _end(site, "up", began, f"{site.spec.cluster} is up already: {_count(result)}, nothing to do")
            return result
        if busy is not None:
            raise busy
        await _possible(site, plan)
        await _consent(site, plan, seen)
        raising = Raising(site=site, run=new_run(site, "up"), verb="up", keep=keep, patience=patience)
        verdict = await raising.carry_out(plan, seen)
        _close_open(site)
    result = status_of(site, verdict.refs, verdict.nodes, patience=patience)
    _end(site, "up", began, f"{site.spec.cluster} is up: {_count(result)}")
    return result


async def restart(site: Site, *, patience: Patience = PATIENCE) -> Status:
    """Start Ray anew on every node that there is; the nodes themselves stay."""
    began = _begin(site, "restart")
    with site.journal.hold(site.owner, "restart"):
        seen = await look(site, patience=patience.answer)
        plan = _restarts(site, plan_of(site, seen, patience), seen)
        site.emit(Planned(plan=plan))
        await _consent(site, plan, seen)
        run = new_run(site, "restart")
        raising = Raising(site=site, run=run, verb="restart", keep=False, patience=patience)
        verdict = await raising.carry_out(plan, seen)
    result = status_of(site, verdict.refs, verdict.nodes, patience=patience)
    _end(site, "restart", began, f"Ray was restarted on {_count(result)}")
    return result


def _restarts(site: Site, plan: Plan, seen: Look) -> Plan:
    """Every node there is, with Ray started again; what is broken is made anew."""
    if not seen.nodes:
        raise UsageError(f"no cluster {site.spec.cluster} is up", fix="start it with `helio up`")
    wanted = {resource.name: resource for resource in site.ground.want(site.spec)}
    changes = []
    for ref in seen.nodes.values():
        resource = wanted.get(ref.name)
        if resource is None:
            continue
        broken = ref.state is State.BROKEN
        if not broken and cost_of(resource, ref) is Cost.REPLACE:
            why = f"the file changed so that {ref.key} must be replaced"
            raise UsageError("restarting Ray is not enough", why=why, fix="run `helio up`")
        cost = Cost.REPLACE if broken else Cost.RESTART
        changes.append(Change(wanted=replace(resource, again=not broken), found=ref, cost=cost))
    kept = tuple(ref for ref in plan.keep if ref.kind != NODE)
    return Plan(change=tuple(changes), keep=kept)


async def down(site: Site, *, keep_data: bool = False, patience: Patience = PATIENCE) -> Proof:
    """Remove the cluster, and prove that nothing of it is left."""
    began = _begin(site, "down")
    with site.journal.hold(site.owner, "down"):
        refs = await listing(site, patience=patience.answer)
        lost = await lost_with(site, refs, keep_data=keep_data)
        if lost and not site.ask(f"Remove {site.spec.cluster}?", details=lost):
            raise Interrupted("not confirmed: nothing was removed")
        proof = await remove_all(site, refs, verb="down", keep_data=keep_data, patience=patience)
    _end(site, "down", began, f"{site.spec.cluster} is gone: {len(proof.removed)} resources removed")
    return proof


async def remove_all(
    site: Site,
    refs: Sequence[Ref],
    *,
    verb: str,
    patience: Patience,
    keep_data: bool = False,
    which: Callable[[Ref], bool] | None = None,
) -> Proof:
    """Remove what this owner has (or of it `which` says) and prove it; only while holding."""
    kept = data_of(refs) if keep_data else {}

    def goes(ref: Ref) -> bool:
        return ref.name not in kept and (which is None or which(ref))

    run = new_run(site, verb)
    if refs:
        intent = KEEPING if keep_data else verb
        site.journal.begin(site.owner, intent, run, sorted({ref.name for ref in refs}))
    erased = await erase(site, goes, patience, patience.gone)
    proof = Proof(
        cluster=site.owner.cluster or "",
        where=site.spec.where,
        removed=erased.removed,
        left=erased.left,
        kept=tuple(kept.values()),
        listings=erased.listings,
        kinds=_kinds(site, (*erased.removed, *erased.left)),
    )
    site.emit(Proved(proof=proof))
    if proof.left:
        raise _left_behind(proof)
    if refs:
        site.journal.end(site.owner, run, "gone")
    _close_open(site)
    return proof


def _kinds(site: Site, refs: Iterable[Ref]) -> tuple[str, ...]:
    """Every kind that was looked for, as far as the ground says."""
    wanted = {resource.kind for resource in site.ground.want(site.spec)}
    known = set(site.ground.kinds) if isinstance(site.ground, Kinds) else set()
    return tuple(sorted(wanted | known | {ref.kind for ref in refs}))


def _left_behind(proof: Proof) -> LeftBehind:
    names = ", ".join(ref.name for ref in proof.left)
    by_hand = [ref.removal for ref in proof.left if ref.removal]
    fix = (
        "\n".join(["run `helio down` again, or remove by hand:", *by_hand])
        if by_hand
        else "run `helio down` again"
    )
    return LeftBehind(f"{len(proof.left)} left behind: {names}", why="the place still lists it", fix=fix)


async def _possible(site: Site, plan: Plan) -> None:
    """Refuse what the place is known not to have; what nobody can know, making it will tell."""
    if not plan.comes or not isinstance(site.ground, Foresees):
        return
    for one in await site.ground.foresee(site.owner, site.spec):
        if one.error is not None:
            raise one.error


def all_alive(site: Site, plan: Plan, seen: Look) -> bool:
    """Nothing to change, and everything that should live does, in Ray's own word."""
    if not plan.empty or seen.ray is None:
        return False
    nodes = (
        ref for ref in seen.nodes.values() if not may_scale_to(site.spec, ref) or ref.name in _names(site)
    )
    now = site.clock.now()
    return all(judge(ref, seen.ray, now=now, grace=0.0) is NodeState.ALIVE for ref in nodes)


def _names(site: Site) -> set[str]:
    return {resource.name for resource in site.ground.want(site.spec)}


async def _consent(site: Site, plan: Plan, seen: Look) -> None:
    """Ask before something living goes, and before money is spent; name the jobs that would die."""
    lost = lost_by(plan, seen)
    details = [*lost, *job_lines(await running_jobs(site, seen.refs) if lost else ())]
    if price := price_line(plan):
        details.append(price)
    if details and not site.ask(f"Change {site.spec.cluster}?" if lost else "Go on?", details=details):
        raise Interrupted("not confirmed: nothing was changed")


def _hold(site: Site, stack: ExitStack, verb: str) -> Conflict | None:
    """Hold the cluster. When another does, that matters only if there is something to change."""
    try:
        stack.enter_context(site.journal.hold(site.owner, verb))
    except Conflict as busy:
        return busy
    return None


def _close_open(site: Site) -> None:
    """The cluster is as it should be: what earlier runs left unfinished is finished now."""
    for intent in site.journal.open(site.owner):
        site.journal.end(intent.owner, intent.run, "superseded")


def _count(status: Status) -> str:
    alive = sum(node.state is NodeState.ALIVE for node in status.nodes)
    return f"{alive} node{'' if alive == 1 else 's'} alive"


def _begin(site: Site, verb: str) -> float:
    site.emit(Began(verb=verb, cluster=site.spec.cluster, where=site.spec.where))
    return site.clock.monotonic()


def _end(site: Site, verb: str, began: float, text: str) -> None:
    site.emit(Ended(verb=verb, seconds=site.clock.monotonic() - began, text=text))
