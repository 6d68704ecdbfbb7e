"""Files and plans as lines of text. Pure: records in, lines out."""

from __future__ import annotations

from collections.abc import Iterator

from heliostat.cli.render.quantities import many
from heliostat.cli.render.tables import columns
from heliostat.core.plan import Cost, Plan
from heliostat.core.spec import ONE_GROUP, Decoded, Group, Spec

COST_WORDS = {
    Cost.LIVE: "changed while it runs",
    Cost.RESTART: "Ray restarts there",
    Cost.REPLACE: "removed and made again",
}


def cluster_line(spec: Spec) -> str:
    """What a file means, in one line.

    >>> from heliostat.core.spec import Count
    >>> cluster_line(Spec(cluster="demo", workers=(Group(name="cpu", count=Count(low=2, high=10)),)))
    'demo on local: a head and 2..10 cpu'
    """
    groups = [group for group in spec.workers if group.count is None or group.count.high]
    workers = ", ".join(_group(group) for group in groups) or "no workers"
    return f"{spec.cluster} on {spec.where}: a head and {workers}"


def _group(group: Group) -> str:
    count = group.count
    if count is None:
        return f"one {group.name} for each GPU"
    least = f" (at least {count.at_least})" if count.at_least is not None else ""
    if count.low != count.high:
        return f"{count.low}..{count.high} {group.name if group.name != ONE_GROUP else 'workers'}"
    return (many(count.high, "worker") if group.name == ONE_GROUP else f"{count.high} {group.name}") + least


def plan_lines(plan: Plan) -> Iterator[str]:
    """What would be done, and what each of it costs."""
    if plan.empty:
        yield "nothing to do: what is there is what the file says"
        return
    rows = [("+", resource.name, resource.text) for resource in plan.create]
    rows += [
        ("~", change.wanted.name, _both(change.wanted.text, COST_WORDS[change.cost], change.why))
        for change in plan.change
    ]
    rows += [("-", ref.name, "removed: the file no longer names it") for ref in plan.delete]
    yield from columns(rows, "  ")
    kept = f"; {many(len(plan.keep), 'thing')} as before" if plan.keep else ""
    yield f"{len(plan.create)} to create, {len(plan.change)} to change, {len(plan.delete)} to remove{kept}"
    if (price := hourly(plan)) is not None:
        yield f"new resources cost {price:.2f} USD an hour"


def hourly(plan: Plan) -> float | None:
    """USD an hour of what would be made, where the place knows prices."""
    known = [resource.price for resource in plan.create if resource.price is not None]
    return sum(known) if known else None


def _both(text: str, cost: str, why: str) -> str:
    told = f"{cost} ({why})" if why else cost
    return f"{text}: {told}" if text else told


def origin_lines(decoded: Decoded) -> Iterator[str]:
    """Every value and default, and where it came from."""
    yield from columns(
        (
            (origin.path, origin.value, f"{origin.source} {origin.place}".rstrip())
            for origin in decoded.origins
        ),
        "  ",
    )
