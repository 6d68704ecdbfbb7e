"""Which nodes share a disk: one of them speaks for all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from heliostat.core.resource import HEAD, Ref


@runtime_checkable
class Meets(Protocol):
    """An optional power of a ground: to say where other nodes of a cluster reach one of them."""

    def meeting(self, node: Ref) -> str:
        """An address of a network that is theirs alone; empty where there is none."""
        ...


def store_key(ref: Ref) -> tuple[str, str]:
    """The machine and the cluster's directory on it; without a host, the place has one disk for all."""
    return ref.facts.get("host", ""), ref.facts.get("home", "")


def distinct(nodes: Iterable[Ref]) -> tuple[Ref, ...]:
    """One node for each disk, the head first."""
    by_key: dict[tuple[str, str], Ref] = {}
    for ref in sorted(nodes, key=lambda ref: ref.key != HEAD):
        by_key.setdefault(store_key(ref), ref)
    return tuple(by_key.values())
