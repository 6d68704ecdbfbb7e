"""From what must exist and what does exist to what is to be done. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from graphlib import TopologicalSorter
from typing import Protocol, TypeVar

from heliostat.core.resource import Ref, Resource, State


class Cost(StrEnum):
    """What a change of something that lives costs."""

    LIVE = "live"
    RESTART = "restart"  # Ray restarts on that node
    REPLACE = "replace"  # the resource goes and comes again


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    wanted: Resource
    found: Ref
    cost: Cost
    why: str = ""  # it is broken, it is dead, or empty: the file changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Data, not deeds: applying it reads the world again."""

    create: tuple[Resource, ...] = ()
    change: tuple[Change, ...] = ()
    delete: tuple[Ref, ...] = ()
    keep: tuple[Ref, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.create or self.change or self.delete)

    @property
    def goes(self) -> tuple[Ref, ...]:
        """All that is deleted, also what comes again."""
        return (*self.delete, *(c.found for c in self.change if c.cost is Cost.REPLACE))

    @property
    def comes(self) -> tuple[Resource, ...]:
        """All that is handed to the ground's `create`."""
        return (*self.create, *(c.wanted for c in self.change))


class Needy(Protocol):
    """A resource or a ref."""

    @property
    def name(self) -> str: ...
    @property
    def needs(self) -> tuple[str, ...]: ...


N = TypeVar("N", bound=Needy)


def waves(items: Iterable[N]) -> tuple[tuple[N, ...], ...]:
    """Sort into waves: nothing comes before what it needs; needs outside of the items are met already.

    >>> net, node = Resource(kind="net", key="a"), Resource(kind="node", key="b", needs=("net/a",))
    >>> [[r.name for r in wave] for wave in waves([node, net])]
    [['net/a'], ['node/b']]
    """
    every = list(items)
    names = {item.name for item in every}
    sorter = TopologicalSorter({item.name: [n for n in item.needs if n in names] for item in every})
    sorter.prepare()
    result: list[tuple[N, ...]] = []
    while sorter.is_active():
        ready = set(sorter.get_ready())
        result.append(tuple(item for item in every if item.name in ready))
        sorter.done(*ready)
    return tuple(result)


def reverse_waves(items: Iterable[N]) -> tuple[tuple[N, ...], ...]:
    """The order of deletion: what needs something goes before it."""
    return tuple(reversed(waves(items)))


def cost_of(wanted: Resource, found: Ref) -> Cost | None:
    """What it costs to turn `found` into `wanted`; nothing when they agree."""
    if found.state is State.BROKEN or wanted.digests.replace != found.digests.replace:
        return Cost.REPLACE
    if wanted.digests.restart != found.digests.restart:
        return Cost.RESTART
    if wanted.digests.live != found.digests.live:
        return Cost.LIVE
    return None


def _nothing(_ref: Ref) -> bool:
    return False


def diff(
    wanted: Iterable[Resource],
    found: Iterable[Ref],
    *,
    dead: Collection[str] = (),
    spare: Callable[[Ref], bool] = _nothing,
) -> Plan:
    """Compare what must exist with what does; what is leaving counts as already gone.

    `dead` names what exists but does not live, in Ray's word; `spare` says of what the file does not name
    whether it may stay all the same (nodes that the autoscaler made).
    """
    wanted = tuple(wanted)
    there, surplus = _by_name(found, wanted)
    create: list[Resource] = []
    change: dict[str, Change] = {}
    keep: dict[str, Ref] = {}
    for resource in wanted:
        ref = there.pop(resource.name, None)
        if ref is None:
            create.append(resource)
        elif ref.name in dead:
            change[ref.name] = Change(wanted=resource, found=ref, cost=Cost.REPLACE, why="it is dead")
        elif (cost := cost_of(resource, ref)) is not None:
            why = "it is broken" if ref.state is State.BROKEN else ""
            change[ref.name] = Change(wanted=resource, found=ref, cost=cost, why=why)
        else:
            keep[ref.name] = ref
    spared = with_needs(list(there.values()), spare)
    keep.update(spared)
    delete = (*surplus, *(ref for ref in there.values() if ref.name not in spared))
    _follow(wanted, change, keep)
    return Plan(create=tuple(create), change=tuple(change.values()), delete=delete, keep=tuple(keep.values()))


def _by_name(found: Iterable[Ref], wanted: Iterable[Resource]) -> tuple[dict[str, Ref], list[Ref]]:
    """One ref for each name, the one nearest to what is wanted; its doubles are surplus."""
    by_name = {resource.name: resource for resource in wanted}
    ranks: dict[Cost | None, int] = {None: 0, Cost.LIVE: 1, Cost.RESTART: 2, Cost.REPLACE: 3}

    def rank(ref: Ref) -> int:
        resource = by_name.get(ref.name)
        return ranks[cost_of(resource, ref)] if resource else ranks[Cost.REPLACE]

    there: dict[str, Ref] = {}
    surplus: list[Ref] = []
    for ref in sorted((r for r in found if r.state is not State.LEAVING), key=rank):
        if ref.name in there:
            surplus.append(ref)
        else:
            there[ref.name] = ref
    return there, surplus


def with_needs(left: Sequence[Ref], which: Callable[[Ref], bool]) -> dict[str, Ref]:
    """Those, with all that they need; by name."""
    chosen = {ref.name: ref for ref in left if which(ref)}
    todo = list(chosen.values())
    while todo:
        needs = todo.pop().needs
        more = [ref for ref in left if ref.name in needs and ref.name not in chosen]
        chosen.update((ref.name, ref) for ref in more)
        todo.extend(more)
    return chosen


def _follow(wanted: Iterable[Resource], change: dict[str, Change], keep: dict[str, Ref]) -> None:
    """What stands on something that goes must go and come with it."""
    by_name = {resource.name: resource for resource in wanted}
    todo = [c.found.name for c in change.values() if c.cost is Cost.REPLACE]
    while todo:
        gone = todo.pop()
        for ref in [*keep.values(), *(c.found for c in change.values() if c.cost is not Cost.REPLACE)]:
            if gone in ref.needs and ref.name in by_name:
                keep.pop(ref.name, None)
                why = f"it stands on {gone}"
                change[ref.name] = Change(wanted=by_name[ref.name], found=ref, cost=Cost.REPLACE, why=why)
                todo.append(ref.name)


def data_of(refs: Iterable[Ref]) -> dict[str, Ref]:
    """What holds a person's data, and what that stands on; by name."""
    return with_needs(list(refs), lambda ref: ref.data)
