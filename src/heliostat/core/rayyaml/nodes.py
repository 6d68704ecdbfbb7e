"""Ray's node types as `head` and groups of `workers`: names, counts, resources."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from heliostat.core import units
from heliostat.core.decode.forms import NAME, slug
from heliostat.core.decode.log import Path, nearest
from heliostat.core.decode.node_fields import GROUP
from heliostat.core.decode.tree import Mark, Scalar, Table
from heliostat.core.decode.workers import Whole
from heliostat.core.draft import Draft
from heliostat.core.rayyaml.keys import NODE_TYPE
from heliostat.core.rayyaml.reader import At, Reader

HEAD: Path = ("head",)
USUAL_MOST = 2  # Ray's own max_workers where the file has none
_SIZES = {"memory": "memory", "object_store_memory": "shm"}
_NUMBERS = {"CPU": "cpus", "GPU": "gpus"}


@dataclass(frozen=True)
class Kind:
    """One of Ray's node types, and where ours stands."""

    path: Path
    keys: Reader
    head: bool = False
    low: int = 0
    high: int = 0
    mark: Mark = Mark("")  # of what says how many
    origin: str = ""

    @property
    def grows(self) -> bool:
        return not self.head and self.low < self.high


def kinds(top: Reader, draft: Draft) -> list[Kind] | None:
    """The node types of the file; None when it leaves them to Ray's defaults."""
    most = top.take("max_workers", "whole")
    least = top.take("min_workers", "whole")
    types = top.take("available_node_types", "table")
    chosen = top.take("head_node_type", "text")
    head, workers = top.reader("head_node"), top.reader("worker_nodes")
    if types is None:
        if head is None and workers is None:
            top.left.update(_back(most, least))
            return None
        return _old(head, workers, least, most, draft)
    for old in (head, workers):
        if old is not None and old.left:
            draft.lost(old.mark, ".".join(old.path), "Ray ignores it beside available_node_types")
    if least is not None:
        draft.lost(least.mark, least.key, "Ray ignores it beside available_node_types")
    return _new(types, chosen, most, draft)


def _back(*found: At | None) -> dict[str, tuple[Scalar, Scalar]]:
    """Put counts back for whom else they concern."""
    return {
        at.key: (Scalar(at.key, at.mark), Scalar(str(at.value), at.mark)) for at in found if at is not None
    }


def _old(
    head: Reader | None, workers: Reader | None, least: At | None, most: At | None, draft: Draft
) -> list[Kind]:
    high = most.value if most else USUAL_MOST
    low = least.value if least else 0
    if low > high and least:
        draft.log.add(least.mark, f"`min_workers` is {low}, more than `max_workers`, {high}")
    at = least or most
    empty = Table((), draft_mark(head, workers))
    group = Kind(("workers", "worker"), workers or Reader(empty, ("worker_nodes",), draft.log),
                 low=min(low, high), high=high, mark=at.mark if at else empty.mark,
                 origin=at.key if at else "")  # fmt: skip
    return [Kind(HEAD, head or Reader(empty, ("head_node",), draft.log), head=True), group]


def draft_mark(*readers: Reader | None) -> Mark:
    """Where the first of them stands."""
    return next((reader.mark for reader in readers if reader), Mark(""))


def _new(types: At, chosen: At | None, most: At | None, draft: Draft) -> list[Kind]:
    names = [key.text for key, _ in types.value]
    if chosen is None:
        draft.log.add(types.mark, "`head_node_type` is missing: it says which node type the head is of")
    elif chosen.value not in names:
        text = f"`{chosen.value}` is not one of `available_node_types`"
        draft.log.add(chosen.there, text, nearest(chosen.value, names))
    found: list[Kind] = []
    for key, tree in types.value:
        where = ("available_node_types", key.text)
        if not isinstance(tree, Table):
            draft.log.add(tree.mark, f"`{types.key}.{key.text}` wants a mapping, not {tree}")
            continue
        keys = Reader(tree, where, draft.log)
        keys.mark = key.mark
        keys.check(NODE_TYPE)
        is_head = chosen is not None and key.text == chosen.value
        found += _kind(key, keys, is_head, most, found, draft)
    return _capped(found, most, draft)


def _kind(
    key: Scalar, keys: Reader, is_head: bool, most: At | None, before: Sequence[Kind], draft: Draft
) -> list[Kind]:
    low, high = keys.take("min_workers", "whole"), keys.take("max_workers", "whole")
    usual = 0 if is_head else most.value if most else USUAL_MOST
    top = high.value if high else usual
    bottom = min(low.value, top) if low else 0
    if low and low.value > top:
        draft.near(low.mark, low.key, f"max_workers, {top}, is stronger in Ray: so many")
    at = low or high or most
    made: list[Kind] = []
    if is_head:
        made.append(Kind(HEAD, keys, head=True))
        if top == 0:
            return made
        keys = _again(keys)
    taken = {kind.path[-1] for kind in before}
    path = ("workers", group_name(key.text, taken))
    count = (at.mark, at.key) if at else (key.mark, "")
    made.append(Kind(path, keys, low=bottom, high=top, mark=count[0], origin=count[1]))
    return made


def _again(keys: Reader) -> Reader:
    """The same node type once more: the head's may have workers too."""
    copy = Reader(Table((), keys.mark), keys.path, keys.log)
    copy.left = dict(keys.left)
    return copy


def group_name(text: str, taken: set[str]) -> str:
    """A valid and free name, as near to Ray's as can be.

    >>> group_name("ray.worker.default", set()), group_name("head", set())
    ('ray-worker-default', 'head-worker')
    """
    name = slug(text) or "worker"
    if name == "head" or name in GROUP.by_key:
        name = f"{name[:33]}-worker"
    number = 2
    while name in taken:
        name = f"{name[:36].rstrip('-')}-{number}"
        number += 1
    return name


def _capped(found: list[Kind], most: At | None, draft: Draft) -> list[Kind]:
    """Ray's `max_workers` is over all types; ours is each group's own."""
    limit = most.value if most else USUAL_MOST
    mark = most.mark if most else draft_mark(*(kind.keys for kind in found))
    needed = sum(kind.low for kind in found)
    if needed > limit:
        draft.log.add(mark, f"`max_workers` is {limit}, less than all `min_workers` together, {needed}")
        return found
    for kind in found:
        if kind.high > limit:
            text = f"at most {limit} workers of all types together, as `max_workers` of the whole file says"
            usual = "" if most else ", which is Ray's own default"
            draft.near(kind.mark, kind.origin or "max_workers", text + usual)
    capped = [_cap(kind, limit - needed + kind.low) for kind in found]
    together = sum(kind.high for kind in capped)
    if together > limit:
        text = f"at most {limit} workers of all types together; heliostat has each group's own limit only"
        draft.near(mark, "max_workers", text)
    return capped


def _cap(kind: Kind, limit: int) -> Kind:
    if kind.high <= limit:
        return kind
    return Kind(kind.path, kind.keys, kind.head, kind.low, limit, kind.mark, kind.origin)


def say_count(kind: Kind, draft: Draft) -> None:
    if not kind.head:
        count = str(kind.low) if kind.low == kind.high else f"{kind.low}..{kind.high}"
        draft.put((*kind.path, "count"), count, kind.mark, kind.origin)


def say_idle(kind: Kind, cluster: At | None, draft: Draft) -> bool:
    """How long a node of this type may be idle; says whether the cluster's own time was used."""
    own = kind.keys.take("idle_timeout_s", "number")
    seconds = own.value if own else cluster.value * 60 if cluster else None
    at = own or cluster
    if at is None or seconds is None:
        return False
    if not kind.grows:
        if own:
            draft.ours(own.mark, own.key, "this group never shrinks")
        return False
    if seconds < 1:
        draft.near(at.mark, at.key, "a node goes after a second of idleness at the earliest")
    draft.put((*kind.path, "idle"), units.say_time(max(seconds, 1.0)), at.mark, at.key)
    return own is None


def say_resources(table: Table, key: str, path: Path, draft: Draft) -> None:
    """What the node gives to Ray."""
    for name, tree in table:
        where = f"{key}.{name.text}"
        if not isinstance(tree, Scalar) or not re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", tree.text):
            draft.log.add(tree.mark, f"`{where}` wants {Whole.word}, not {tree}")
        elif name.text in _SIZES:
            amount = int(float(tree.text))
            draft.put((*path, _SIZES[name.text]), units.say_size(amount), name.mark, where)
        elif name.text == "GPU":
            _gpus(tree.text, name.mark, where, path, draft)
        elif name.text in _NUMBERS:
            draft.put((*path, _NUMBERS[name.text]), tree.text, name.mark, where)
        else:
            draft.add((*path, "resources"), {name.text: tree.text}, name.mark, where)


def _gpus(number: str, mark: Mark, where: str, path: Path, draft: Draft) -> None:
    had = draft.leaf((*path, "gpus"))
    if had and isinstance(had.value, dict):
        draft.put((*path, "gpus"), {**had.value, "count": number}, had.mark, had.origin)
    elif number != "0":
        draft.put((*path, "gpus"), number, mark, where)


def valid_name(text: str) -> bool:
    return re.fullmatch(NAME, text) is not None
