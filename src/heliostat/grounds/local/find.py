"""List what exists: processes by the label in their environment, directories by the label inside.

No file is believed about a process: what a node's `state.json` says counts only while the process that
wrote it (same pid, same start time) is there.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from heliostat.core.owner import Owner
from heliostat.core.resource import HEAD, NODE, Ref, Resource, State
from heliostat.grounds.local.places import home_of, homes, temp_base, temp_of
from heliostat.ray.label import Label, read_label
from heliostat.ray.node_program.processes import Process, label_of, look
from heliostat.ray.node_program.watch import left_running
from heliostat.ray.paths import node_dir, token_path
from heliostat.ray.program import runs_program

DIRECTORY, FILES = "directory", "files"
HOME, TEMP = "home", "temp"
LABEL_FILE = "owner.json"
UNWATCHED = "unwatched"  # in place of a digest: the node lives, and `up` gives it a program again
PHASES = {"setup": State.PENDING, "starting": State.PENDING, "up": State.READY, "broken": State.BROKEN}


@dataclass(slots=True)
class Seen:
    """The living processes of one node."""

    label: Label
    supervisor: Process | None = None
    others: list[Process] = field(default_factory=list)


def is_supervisor(pid: int) -> bool:
    """Whether this process runs the node program itself, and has not only inherited its label.

    It leads a session; what it has just forked looks like it until it becomes another program.
    """
    try:
        return os.getsid(pid) == pid and runs_program(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def mine() -> Iterable[int]:
    """The pids of this user."""
    uid = os.getuid()
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                try:
                    if entry.stat().st_uid == uid:
                        yield int(entry.name)
                except FileNotFoundError:
                    continue


def processes(owner: Owner) -> dict[tuple[str, str], Seen]:
    """Every node of this owner that has a living process, by (cluster, node)."""
    nodes: dict[tuple[str, str], Seen] = {}
    labels: dict[bytes, Label | None] = {}
    for pid in mine():
        raw = label_of(pid)
        if raw is None:
            continue
        if raw not in labels:
            labels[raw] = read_label(raw)
        label = labels[raw]
        process = look(pid)
        if label is None or not owner.owns(label.owner) or process is None:
            continue
        seen = nodes.setdefault((label.cluster, label.key), Seen(label))
        if is_supervisor(pid):
            seen.supervisor, seen.label = process, label
        else:
            seen.others.append(process)
    return nodes


def read_state(label: Label) -> Mapping[str, Any]:
    """What the node program last wrote, believed or not."""
    try:
        path = Path(node_dir(label.facts["home"], label.key), "state.json")
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError):
        return {}
    return state if isinstance(state, dict) else {}


def node_ref(seen: Seen) -> Ref:
    """One node as it is now."""
    label, state = seen.label, read_state(seen.label)
    facts = dict(label.facts)
    head = seen.supervisor
    if head is None:
        condition, why = State.BROKEN, "its node program is gone, and left processes of Ray behind"
        if left_running(node_dir(label.facts.get("home", ""), label.key), label.text().encode())[0]:
            condition, why = State.READY, "its node program is gone: nobody brings back what dies there"
            label = replace(label, live=UNWATCHED)
            facts |= addresses(label.key, state.get("ports", {}))
    elif (state.get("pid"), state.get("start")) != head.identity:
        condition, why = State.PENDING, ""
    else:
        phase = str(state.get("phase", ""))
        condition = PHASES.get(phase, State.LEAVING)
        why = str(state.get("why", ""))
        if phase == "setup":
            facts["doing"] = "setting up"
        facts |= addresses(label.key, state.get("ports", {}))
    if why:
        facts["why"] = why
    return ref_of(label, condition, facts)


def only_unwatched(found: Ref, wanted: Resource) -> bool:
    """Whether it is as it should be, but for its node program."""
    same = (found.digests.restart, found.digests.replace) == (wanted.digests.restart, wanted.digests.replace)
    return found.digests.live == UNWATCHED and same and not wanted.again


def addresses(key: str, ports: Mapping[str, int]) -> dict[str, str]:
    if key != HEAD:
        return {}
    return {name: f"127.0.0.1:{ports[name]}" for name in ("dashboard", "gcs") if name in ports}


def ref_of(label: Label, state: State, facts: Mapping[str, str]) -> Ref:
    """A node as the engine sees it; its id is its folder, which names cluster and node on this machine."""
    home = facts.get("home", "")
    guarded = label.key == HEAD and facts.get("auth", "token") == "token"
    return label.ref(
        id=node_dir(home, label.key),
        state=state,
        removal=f"helio down --set cluster={label.cluster}",
        facts={**facts, **({"token_path": token_path(home)} if guarded else {})},
    )


def dead_nodes(home: Path, living: set[str]) -> Iterable[Ref]:
    """Nodes whose folder is there and whose processes are not: broken by themselves, killed, or a reboot."""
    for folder in sorted(home.glob("nodes/*")):
        label = label_in(folder)
        if label is None or label.key in living or label.kind != NODE:
            continue
        state = read_state(label)
        why = state.get("why") if state.get("phase") == "broken" else ""
        why = why or "none of its processes is there any more (killed, or this machine was restarted)"
        yield ref_of(label, State.BROKEN, {**label.facts, "why": str(why)})


def label_in(folder: Path) -> Label | None:
    """The label of a directory of ours; None for any other."""
    return label_at(folder / LABEL_FILE)


def label_at(path: Path) -> Label | None:
    """The label in a file, in a folder that is ours."""
    try:
        return read_label(path.read_bytes()) if path.parent.lstat().st_uid == os.getuid() else None
    except OSError:
        return None


def directories(owner: Owner, homes_seen: Iterable[str]) -> Iterable[Ref]:
    """Homes below the data directory or named by living nodes, and the short ones for sockets."""
    places = [*_children(homes()), *(Path(home) for home in homes_seen), *_children(Path(temp_base()))]
    for folder in dict.fromkeys(places):
        label = label_in(folder)
        if label is not None and label.kind == DIRECTORY and owner.owns(label.owner):
            yield label.ref(id=str(folder), removal=f"rm -r {folder}")
    if owner.cluster is not None:
        yield from _half_made(owner)


def _half_made(owner: Owner) -> Iterable[Ref]:
    """Where this cluster's directories are, without a label: whoever made them died before writing it."""
    for key, path in ((HOME, home_of(owner)), (TEMP, temp_of(owner))):
        try:
            found = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and label_in(Path(path)) is None:
            yield Ref(
                kind=DIRECTORY,
                key=key,
                id=path,
                owner=owner,
                state=State.BROKEN,
                created=found.st_mtime,
                removal=f"rm -r {path}",
                facts={"why": "it has no label: whoever made it was killed at that moment"},
            )


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def astray(ref: Ref, alive: Iterable[Ref]) -> Ref:
    """A worker that looks for its head where the head is no more: it must be started again."""
    heads = [one for one in alive if one.key == HEAD and one.owner == ref.owner and "gcs" in one.facts]
    if "joins" not in ref.facts or not heads or heads[0].facts["gcs"] == ref.facts["joins"]:
        return ref
    why = f"it looks for the head at {ref.facts['joins']}, and the head is elsewhere now"
    return replace(ref, digests=replace(ref.digests, restart="astray"), facts={**ref.facts, "why": why})


def listing(owner: Owner) -> tuple[Ref, ...]:
    """Everything of this owner on this machine, now."""
    seen = processes(owner)
    alive = [node_ref(one) for one in seen.values()]
    folders = list(directories(owner, {ref.facts["home"] for ref in alive if "home" in ref.facts}))
    rest: list[Ref] = []
    for folder in folders:
        if folder.key == HOME:
            living = {key for cluster, key in seen if cluster == folder.owner.cluster}
            rest += dead_nodes(Path(folder.id), living)
            if os.path.isdir(f"{folder.id}/files"):
                from heliostat.grounds.local.files import copies

                rest += copies(Path(folder.id))
    alive = [astray(ref, alive) for ref in alive]
    return (*folders, *alive, *rest)
