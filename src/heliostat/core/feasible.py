"""Can a request ever be met? A driver must fit one node, so the largest single node decides. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from heliostat.core.errors import Infeasible
from heliostat.core.job import Needs, RayNode
from heliostat.core.spec import Node, Spec

CPU, GPU, MEMORY = "CPU", "GPU", "memory"
_FLAGS = {CPU: "--num-cpus", GPU: "--num-gpus", MEMORY: "--memory"}
SETTING_UP = "its process and environment to be set up"  # what every job waits for, a moment
_HIDDEN = ("node:", "object_store_memory", "accelerator_type:")


@dataclass(frozen=True, slots=True)
class Shape:
    """What one node has, or would have if it were started. An amount that nobody knows yet is infinite."""

    name: str
    has: Mapping[str, float]

    def lacks(self, wanted: Mapping[str, float]) -> tuple[str, ...]:
        return tuple(name for name, amount in wanted.items() if amount > self.has.get(name, 0))


def ensure_feasible(needs: Needs, nodes: Sequence[RayNode], spec: Spec) -> None:
    """Raise Infeasible unless some node, alive or one that the file allows, could ever take the driver."""
    wanted = wants(needs)
    shapes = (*_alive(nodes), *_allowed(spec, nodes))
    if not wanted or not shapes or any(not shape.lacks(wanted) for shape in shapes):
        return
    raise Infeasible(
        f"no node of {spec.cluster} can ever have {_text(wanted)} for one job",
        why=f"at its largest the cluster has {_largest(shapes, wanted)}",
        fix=f"the nearest that fits is {_nearest(wanted, shapes)}; or give a group of the file larger nodes",
    )


def waits_for(needs: Needs, nodes: Sequence[RayNode]) -> str:
    """What a job that has not started is waiting for, in plain words."""
    wanted = wants(needs)
    if not wanted:
        return f"{SETTING_UP} on the head"
    free = [
        Shape(node.name or node.id[:8], {k: v - node.used.get(k, 0) for k, v in node.total.items()})
        for node in nodes
        if node.alive
    ]
    fits = [shape.name for shape in free if not shape.lacks(wanted)]
    if fits:
        return f"{SETTING_UP} on {fits[0]}"
    able = {shape.name for shape in _alive(nodes) if not shape.lacks(wanted)}
    if not able:
        return f"a node with {_text(wanted)}, which is not there yet"
    shown = "; ".join(
        f"{shape.name} has {_text({name: shape.has.get(name, 0) for name in wanted})}"
        for shape in free
        if shape.name in able
    )
    return f"{_text(wanted)} to be free on one node: {shown} free now"


def wants(needs: Needs) -> dict[str, float]:
    """What is asked for, by Ray's names of resources.

    >>> wants(Needs(cpus=2, resources={"fast_disk": 1}))
    {'CPU': 2, 'fast_disk': 1}
    """
    amounts = {CPU: needs.cpus, GPU: needs.gpus, MEMORY: needs.memory, **needs.resources}
    return {name: amount for name, amount in amounts.items() if amount > 0}


def _alive(nodes: Sequence[RayNode]) -> tuple[Shape, ...]:
    return tuple(Shape(node.name or node.id[:8], node.total) for node in nodes if node.alive)


def _allowed(spec: Spec, nodes: Sequence[RayNode]) -> Iterator[Shape]:
    """A node of every kind that the file allows and that is not alive now."""
    alive = {node.name for node in nodes if node.alive}
    if "head" not in alive:
        yield Shape("head", _declared(spec.head))
    for group in spec.workers:
        peers = [n.total for n in nodes if n.alive and n.name.startswith(f"{group.name}-")]
        if group.count and len(peers) >= group.count.high:
            continue
        # One that lives shows better than the file what the next one of its group will have.
        yield Shape(f"a node of {group.name}", peers[0] if peers else _declared(group.node))


def _declared(node: Node) -> dict[str, float]:
    """What the file says a node will have; a machine type may bring anything."""
    unknown = inf
    gpus = node.gpus.count if node.gpus else unknown if node.machine else 0
    return {
        CPU: unknown if node.cpus is None else node.cpus,
        GPU: gpus,
        MEMORY: unknown if node.memory is None else float(node.memory),
        **node.resources,
    }


def _largest(shapes: Sequence[Shape], wanted: Mapping[str, float]) -> str:
    """For each thing that is asked for, the node that has most of it."""
    parts = []
    for name in wanted:
        best = max(shapes, key=lambda shape: shape.has.get(name, 0))
        amount = best.has.get(name, 0)
        parts.append(f"{_amount(name, amount)} on {best.name}" if amount else f"no {_plain(name)}")
    extra = sorted({n for s in shapes for n in s.has if n not in (CPU, GPU, MEMORY)} - set(wanted))
    shown = [name for name in extra if not name.startswith(_HIDDEN)]
    unknown = [n for n in wanted if n not in (CPU, GPU, MEMORY) and not any(n in s.has for s in shapes)]
    names = f" (its resources are called: {', '.join(shown)})" if shown and unknown else ""
    return ", ".join(parts) + names


def _nearest(wanted: Mapping[str, float], shapes: Sequence[Shape]) -> str:
    """The flags that would fit the node which comes closest."""

    def met(shape: Shape) -> tuple[int, float]:
        share = sum(min(1.0, shape.has.get(name, 0) / amount) for name, amount in wanted.items())
        return -len(shape.lacks(wanted)), share

    best = max(shapes, key=met)
    fit = {name: min(amount, best.has.get(name, 0)) for name, amount in wanted.items()}
    flags = [_flag(name, amount) for name, amount in fit.items() if amount > 0]
    return f"{' '.join(flags) or 'no request at all'} ({best.name})"


def _flag(name: str, amount: float) -> str:
    if name == MEMORY:
        return f"--memory {int(amount // 2**20)}MiB"
    return f"{_FLAGS[name]} {amount:g}" if name in _FLAGS else f"--resources '{{\"{name}\": {amount:g}}}'"


def _text(wanted: Mapping[str, float]) -> str:
    return ", ".join(_amount(name, amount) for name, amount in wanted.items())


def _amount(name: str, amount: float) -> str:
    if name == MEMORY:
        gib = amount / 2**30
        return f"{gib:.4g} GiB of memory" if gib < 10_000 else f"{gib / 1024:,.0f} TiB of memory"
    return f"{amount:g} {name if amount == 1 else _plain(name)}"


def _plain(name: str) -> str:
    return {CPU: "CPUs", GPU: "GPUs"}.get(name, name)
