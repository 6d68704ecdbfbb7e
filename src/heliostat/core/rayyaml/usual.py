"""What Ray's launcher assumes where a file says nothing, and what both leave out of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from heliostat.core.decode.tree import Table
from heliostat.core.draft import Draft
from heliostat.core.rayyaml.keys import elsewhere, provider_keys
from heliostat.core.rayyaml.nodes import HEAD, USUAL_MOST, Kind
from heliostat.core.rayyaml.reader import At, Reader

_GIT = {".git", "**/.git", "**/.git/**", ".git/", ".git/**", "/.git"}
_HONOURED = {".gitignore", ".helioignore"}


@dataclass(frozen=True, slots=True)
class Usual:
    """The nodes that Ray's launcher makes where the file names none."""

    machine: str
    group: str
    head_disk: str = ""
    worker_disk: str = ""


_USUAL = {
    "gcp": Usual("n1-standard-2", "ray-worker-small", "50 GB", "50 GB"),
    "azure": Usual("Standard_D2s_v3", "ray-worker-default"),
    "aws": Usual("m5.large", "ray-worker-default", "256 GiB"),
}


def nodes(kind: str, top: Reader, draft: Draft) -> list[Kind]:
    """A head, and up to two spare workers."""
    most, least = top.take("max_workers", "whole"), top.take("min_workers", "whole")
    for name in ("head_node_type",):
        if found := top.take(name, "text"):
            draft.log.add(found.mark, f"`{name}` needs `available_node_types`")
    if least is not None:
        draft.lost(least.mark, least.key, "Ray ignores it where there is no available_node_types")
    table = _USUAL[kind]
    group = ("workers", table.group)
    empty = Reader(Table((), top.mark), ("available_node_types",), draft.log)
    mark = most.mark if most else top.mark
    made = [
        Kind(HEAD, empty, head=True),
        Kind(group, empty, low=0, high=most.value if most else USUAL_MOST, mark=mark,
             origin=most.key if most else ""),
    ]  # fmt: skip
    for path, disk in ((HEAD, table.head_disk), (group, table.worker_disk)):
        draft.put((*path, "machine"), table.machine, top.mark)
        if disk:
            draft.put((*path, "disk"), disk, top.mark)
    if kind != "aws":
        for path in (HEAD, group):
            draft.put((*path, "cpus"), "2", top.mark)
    draft.put((*group, "spot"), True, top.mark)
    return made


def of_others(keys: Reader, kind: str) -> Iterator[At]:
    """The keys that only another provider reads."""
    known = provider_keys(kind)
    for name in [name for name in keys.left if name not in known and elsewhere(name)]:
        found = keys.take(name, "any")
        if found:
            yield found


def ignored(top: Reader, draft: Draft) -> None:
    """Patterns of what is not sent."""
    exclude, filters = top.take("rsync_exclude", "list"), top.take("rsync_filter", "list")
    patterns = [item.text for item in exclude.value if item.text not in _GIT] if exclude else []
    if exclude and patterns:
        text = f"write these lines into .helioignore: {', '.join(patterns)}"
        draft.lost(exclude.mark, exclude.key, text)
    elif exclude and exclude.value:
        draft.ours(exclude.mark, exclude.key, "folders called .git are never sent")
    names = [item.text for item in filters.value if item.text not in _HONOURED] if filters else []
    if filters and names:
        draft.lost(filters.mark, filters.key, f"write the lines of {', '.join(names)} into .helioignore")
    elif filters and filters.value:
        draft.ours(filters.mark, filters.key, ".gitignore is honoured without being told")
