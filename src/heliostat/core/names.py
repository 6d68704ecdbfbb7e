"""Stable names of nodes: `head`, `cpu-1`, `gpu-2`."""

from __future__ import annotations

from collections.abc import Iterator

from heliostat.core.resource import HEAD, NODE, Ref
from heliostat.core.spec import Group, Node, Spec


def nodes_of(spec: Spec) -> Iterator[tuple[str, Node, Group | None]]:
    """Every node that `up` starts: its name, what it is, and its group (none for the head).

    >>> from heliostat.core.spec import Count
    >>> cpu = Group(name="cpu", count=Count(low=2, high=9))
    >>> [name for name, _, _ in nodes_of(Spec(cluster="c", workers=(cpu,)))]
    ['head', 'cpu-1', 'cpu-2']
    """
    yield HEAD, spec.head, None
    for group in spec.workers:
        for number in range(1, (group.count.low if group.count else 0) + 1):
            yield f"{group.name}-{number}", group.node, group


def group_of(key: str) -> str:
    """The group of a node, by its name.

    >>> group_of("big-gpu-12"), group_of("head")
    ('big-gpu', 'head')
    """
    group, _, number = key.rpartition("-")
    return group if group and number.isdigit() else key


def number_of(key: str) -> int:
    """The number of a node in its group; 0 for the head."""
    number = key.rpartition("-")[2]
    return int(number) if number.isdigit() else 0


def may_scale_to(spec: Spec, ref: Ref) -> bool:
    """Whether this is a node that the autoscaler may have made: beyond `low`, within `high`."""
    if ref.kind != NODE:
        return False
    for group in spec.workers:
        if group.name == group_of(ref.key) and group.count:
            return number_of(ref.key) <= group.count.high
    return False


def enough(spec: Spec, group: str, wanted: int) -> int:
    """How many of the `wanted` nodes of a group must be alive before `up` may say so."""
    for each in spec.workers:
        if each.name == group and each.count:
            return min(wanted, each.count.enough)
    return wanted
