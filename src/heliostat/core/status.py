"""What `helio status` says: the place's word beside Ray's word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from heliostat.core.resource import HEAD, NODE, Ref, State

if TYPE_CHECKING:
    from heliostat.core.job import Job, RayNode
    from heliostat.core.owner import Owner


class NodeState(StrEnum):
    ALIVE = "alive"  # there, and in Ray's list
    STARTING = "starting"  # there, not in Ray's list yet
    DEAD = "dead"  # there, but Ray says it is dead or does not answer
    CUT_OFF = "cut off"  # there, but its head is gone: it comes back with the head, or is replaced
    MISSING = "missing"  # wanted by the file, not there
    FOREIGN = "foreign"  # in Ray's list, not ours


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    name: str
    state: NodeState
    ref: Ref | None = None
    ray: RayNode | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    cluster: str
    where: str
    nodes: tuple[NodeStatus, ...] = ()
    jobs: tuple[Job, ...] = ()
    services: tuple[Ref, ...] = ()  # what stands beside Ray
    uptime: float | None = None  # seconds since the head was made
    dashboard: str = ""
    trouble: tuple[str, ...] = ()  # whole sentences: what is wrong and what to do
    price: float | None = None  # USD an hour

    @property
    def exists(self) -> bool:
        return any(node.ref is not None for node in self.nodes)

    @property
    def healthy(self) -> bool:
        """All that is ours lives; a node that Ray has beyond it (a guest, one just gone) does not count."""
        ours = (node for node in self.nodes if node.state is not NodeState.FOREIGN)
        return self.exists and not self.trouble and all(node.state is NodeState.ALIVE for node in ours)


class Standing(StrEnum):
    """How a cluster stands, from the place's list alone."""

    UP = "up"  # its head is there
    STARTING = "starting"
    REMAINS = "remains"  # no living head: `helio clean` removes it
    LEAVING = "leaving"
    DATA = "data"  # removed, but for the data that was to stay


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One line of `helio ls`."""

    cluster: str
    where: str
    owner: Owner
    standing: Standing
    nodes: int = 0
    resources: int = 0  # of all kinds, nodes included
    uptime: float | None = None

    @property
    def remains(self) -> bool:
        return self.standing is Standing.REMAINS


def standing_of(refs: Iterable[Ref]) -> Standing:
    """How a cluster of these resources stands."""
    refs = tuple(refs)
    if refs and all(ref.state is State.LEAVING for ref in refs):
        return Standing.LEAVING
    states = {ref.state for ref in refs if ref.kind == NODE and ref.key == HEAD}
    if State.READY in states:
        return Standing.UP
    if State.PENDING in states:
        return Standing.STARTING
    from heliostat.core.plan import data_of  # what there is none of needs no plan

    return Standing.DATA if refs and len(data_of(refs)) == len(refs) else Standing.REMAINS


def alive_by_name(nodes: Iterable[RayNode], stale: Iterable[str] = ()) -> dict[str, RayNode]:
    """Ray's living nodes by our names, without those whose Ray ids are known to be on their way out."""
    stale = set(stale)
    return {node.name: node for node in nodes if node.alive and node.name and node.id not in stale}


def judge(ref: Ref, nodes: Iterable[RayNode] | None, *, now: float, grace: float) -> NodeState:
    """What a node is: the place's word and Ray's word together (no list: Ray does not answer).

    A node that Ray does not list may still be on its way, for as long as `grace`.
    """
    if ref.state is State.BROKEN or ref.state is State.LEAVING:
        return NodeState.DEAD
    young = ref.created is None or now - ref.created < grace
    if nodes is None:
        return NodeState.STARTING if young else NodeState.DEAD
    ours = [node for node in nodes if node.name == ref.key]
    if any(node.alive for node in ours):
        return NodeState.ALIVE
    # Also one that is being started again; one of which the place says why nobody can tell is not.
    if ref.state is State.PENDING and not ref.facts.get("why"):
        return NodeState.STARTING
    died = max((node.ended for node in ours if node.ended is not None), default=None)
    if died is not None and ref.created is not None and died > ref.created:
        return NodeState.DEAD
    return NodeState.STARTING if young else NodeState.DEAD


def why_dead(ref: Ref, nodes: Iterable[RayNode] | None) -> str:
    """The best reason known for a dead node, in one line or a few."""
    if ref.facts.get("why"):
        return ref.facts["why"]
    reasons = [n.reason for n in nodes or () if n.name == ref.key and not n.alive and n.reason]
    return reasons[-1] if reasons else ""


def node_statuses(
    wanted: Iterable[str],
    refs: Mapping[str, Ref],
    nodes: Iterable[RayNode] | None,
    *,
    now: float,
    grace: float,
) -> tuple[NodeStatus, ...]:
    """Every node that is wanted, there, or in Ray's list; by the node's name."""
    nodes = None if nodes is None else tuple(nodes)
    head = refs.get(HEAD)
    headless = nodes is None and (head is None or head.state is State.BROKEN)
    alive = alive_by_name(nodes or ())
    result = []
    for name in dict.fromkeys((*wanted, *refs)):
        ref = refs.get(name)
        if ref is None:
            result.append(NodeStatus(name=name, state=NodeState.MISSING, ray=alive.get(name)))
            continue
        state = judge(ref, nodes, now=now, grace=grace)
        why = why_dead(ref, nodes) if state is NodeState.DEAD else ref.facts.get("why", "")
        if headless and ref.state is State.READY:
            state, why = NodeState.CUT_OFF, "its head is gone"
        result.append(NodeStatus(name=name, state=state, ref=ref, ray=alive.get(name), why=why))
    known = {status.name for status in result}
    result += [
        NodeStatus(name=node.name or node.address or node.id, state=NodeState.FOREIGN, ray=node)
        for node in nodes or ()
        if node.alive and node.name not in known
    ]
    return tuple(result)
