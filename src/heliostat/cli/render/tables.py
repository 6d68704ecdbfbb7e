"""States and jobs as lines of text. Pure: records in, lines out; which loads none of the records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from heliostat.cli.render.quantities import amount, many, resource, seconds, size

if TYPE_CHECKING:
    from heliostat.core.job import Job, RayNode
    from heliostat.core.proof import Proof
    from heliostat.core.resource import Ref
    from heliostat.core.status import Listed, NodeStatus, Status


def columns(rows: Iterable[Sequence[str]], indent: str = "") -> Iterator[str]:
    """Left-aligned columns, two spaces apart."""
    rows = [list(row) for row in rows]
    if not rows:
        return
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        yield indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def status_lines(status: Status) -> Iterator[str]:
    """The answer to `helio status`."""
    if not status.exists and not any(node.ray for node in status.nodes):
        left = "has no node, but something of it is left" if status.trouble else ""
        none = f"no cluster {status.cluster} on {status.where}; `helio up` makes one"
        yield f"{status.cluster} on {status.where} {left}" if left else none
        yield from status.trouble
        return
    uptime = f", up {seconds(status.uptime)}" if status.uptime is not None else ""
    price = f", {status.price:.2f} USD an hour" if status.price is not None else ""
    yield f"{status.cluster} on {status.where}{uptime}{price}"
    yield from columns(map(_node_row, status.nodes), "  ")
    yield from columns(map(_service_row, status.services), "  ")
    if used := list(_use(status.nodes)):
        yield "in use: " + ", ".join(used)
    yield from job_summary(status.jobs)
    yield from (f"! {trouble}" for trouble in status.trouble)


def _service_row(service: Ref) -> tuple[str, str, str]:
    return service.key, str(service.state), service.facts.get("why") or service.facts.get("health", "")


def _node_row(node: NodeStatus) -> tuple[str, str, str, str]:
    return (
        node.name or (node.ray.id[:12] if node.ray else "?"),
        node.state.value,
        _resources(node.ray) if node.ray else "",
        node.why or (node.ray.reason if node.ray else ""),
    )


def _shown(total: Mapping[str, float]) -> list[str]:
    """The resources that people ask for; Ray's own marks (node:…, …_group_…) are noise."""
    noise = (":", "_group_", "object_store_memory")
    return [name for name, most in total.items() if most and not any(word in name for word in noise)]


def _resources(node: RayNode) -> str:
    return ", ".join(
        f"{resource(name, node.used.get(name, 0))}/{resource(name, node.total[name])} {name}"
        if name != "memory"
        else f"{size(node.total[name])} memory"
        for name in sorted(_shown(node.total))
    )


def _use(nodes: Iterable[NodeStatus]) -> Iterator[str]:
    alive = [node.ray for node in nodes if node.ray is not None and node.ray.alive]
    for name in sorted({name for ray in alive for name in _shown(ray.total)}):
        used = sum(ray.used.get(name, 0) for ray in alive)
        total = sum(ray.total.get(name, 0) for ray in alive)
        yield f"{resource(name, used)} of {resource(name, total)} {name}"


def job_summary(jobs: Sequence[Job]) -> Iterator[str]:
    """One line on the jobs, and those that are not over."""
    if not jobs:
        return
    counts: dict[str, int] = {}
    for job in jobs:
        counts[job.state.value] = counts.get(job.state.value, 0) + 1
    yield "jobs: " + ", ".join(f"{count} {state}" for state, count in counts.items())
    yield from columns((job_row(job) for job in jobs if not job.state.final), "  ")


def job_row(job: Job) -> tuple[str, str, str, str, str]:
    code = "" if job.code is None else f"exit code {job.code}"
    took = seconds(job.ended - job.started) if job.started is not None and job.ended is not None else ""
    from heliostat.core.job import command_of

    words = command_of(job)
    entry = words if len(words) <= 60 else words[:59] + "…"
    return job.id, job.state.value, code, took, entry.replace("\n", " ")


def job_lines(jobs: Sequence[Job]) -> Iterator[str]:
    """The answer to `helio jobs`, newest last."""
    if not jobs:
        yield "no jobs yet"
    yield from columns(map(job_row, sorted(jobs, key=lambda job: job.started or 0)))


def listed_lines(found: Sequence[Listed]) -> Iterator[str]:
    """The answer to `helio ls`."""
    if not found:
        yield "no clusters"
    for each in found:
        if each.remains:
            yield f"! {each.cluster} on {each.where} has no head: `helio clean` removes what is left of it"
    yield from columns(
        (each.cluster, each.where, each.standing.value, many(each.nodes, "node"), _since(each.uptime))
        for each in found
    )


def _since(uptime: float | None) -> str:
    return "" if uptime is None else f"up {seconds(uptime)}"


def proof_lines(proof: Proof) -> Iterator[str]:
    """That a cluster is gone, or what is left and the command that removes it."""
    kinds = f" of every kind ({', '.join(proof.kinds)})" if proof.kinds else ""
    if proof.gone:
        removed = many(len(proof.removed), "thing") if proof.removed else "nothing"
        yield f"{proof.cluster} on {proof.where} is gone: {removed} removed"
        yield f"proof: {amount(proof.listings)} listings in a row found nothing{kinds}"
        return
    yield f"{proof.cluster} on {proof.where}: {many(len(proof.left), 'thing')} left behind"
    yield from columns(((ref.name, ref.state.value, ref.removal) for ref in proof.left), "  ")
