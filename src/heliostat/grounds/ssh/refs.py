"""From what an agent saw on its host to what the engine lists. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from heliostat.core.errors import HelioError
from heliostat.core.owner import Owner
from heliostat.core.resource import HEAD, NODE, Digests, Ref, Resource, State
from heliostat.grounds.ssh.want import DIRECTORY
from heliostat.ray.label import Label, read_label
from heliostat.ray.paths import node_dir, token_path

SILENT = "silent"  # a fact: the host does not answer, so this is what may be there
_STATES = {
    "setup": State.PENDING,
    "starting": State.PENDING,
    "up": State.READY,
    "broken": State.BROKEN,
    "stopping": State.LEAVING,
    "stopped": State.BROKEN,
}


def refs(owner: Owner, host: str, answer: Mapping[str, Any]) -> Iterator[Ref]:
    """Everything on one host."""
    for found in answer["directories"]:
        label = read_label(_text(found["label"]))
        if label is not None:
            yield _directory(label, host, found["path"])
        elif owner.cluster is not None and found["id"] == owner.id:
            yield _half_made(owner, host, found)
    for found in answer["files"]:
        label = read_label(_text(found["label"]))
        if label is not None:
            yield _copy(label, host, found["why"])
    for found in answer["nodes"]:
        label = read_label(_text(found["label"]))
        if label is not None:
            yield _node(label, host, found)


def _text(data: Any) -> str:
    return json.dumps(data)


def _directory(label: Label, host: str, path: str) -> Ref:
    facts = {**label.facts, "host": host, "home": path}
    return label.ref(key=host, id=f"{host}:{path}", removal=f"ssh {host} rm -r {path}", facts=facts)


def _half_made(owner: Owner, host: str, found: Mapping[str, Any]) -> Ref:
    return Ref(
        kind=DIRECTORY,
        key=host,
        id=f"{host}:{found['path']}",
        owner=owner,
        state=State.BROKEN,
        created=found["made"],
        removal=f"ssh {host} rm -r {found['path']}",
        facts={
            "host": host,
            "home": found["path"],
            "why": "it has no label: whoever made it was cut off at that moment",
        },
    )


def _copy(label: Label, host: str, why: str) -> Ref:
    target = label.facts.get("target", "")
    return label.ref(
        id=f"{host}:{target}",
        state=State.BROKEN if why else State.READY,
        removal=f"ssh {host} rm -r {target}",
        facts={**label.facts, "host": host, **({"why": why} if why else {})},
    )


def _node(label: Label, host: str, found: Mapping[str, Any]) -> Ref:
    home = label.facts.get("home", "")
    facts = {**label.facts, "host": host}
    state = _STATES.get(found["phase"], State.PENDING)
    if found["why"]:
        facts["why"] = found["why"]
    if label.key == HEAD:
        facts["token_path"] = token_path(home)
        ports = found["ports"]
        places = {"dashboard": "127.0.0.1", "gcs": found.get("ip", "")}
        facts |= {name: f"{ip}:{ports[name]}" for name, ip in places.items() if name in ports and ip}
    return label.ref(
        id=f"{host}:{node_dir(home, label.key)}",
        state=state,
        removal=f"helio down --set cluster={label.cluster}",
        facts=facts,
    )


def silent(owner: Owner, host: str, wanted: Iterable[Resource], error: HelioError) -> Iterator[Ref]:
    """What may be on a host that does not answer: nobody can say that it is gone."""
    why = f"{error.what}: {error.why}" if error.why else error.what
    by_hand = f"ssh {host} rm -r .local/share/heliostat/ssh/{owner.id}/{host}"
    for resource in wanted:
        if resource.body.get("host") == host:
            directory, node = resource.kind == DIRECTORY, resource.kind == NODE
            yield Ref(
                kind=resource.kind,
                key=resource.key,
                id=f"{host}:{resource.key}",
                owner=owner,
                state=State.PENDING,
                needs=resource.needs,
                # The node alone counts as not what it should be, so that `up` tries it.
                digests=Digests(replace=resource.digests.replace) if node else resource.digests,
                created=0.0,
                removal=f"{by_hand}    # or run `helio down` again once {host} answers" if directory else "",
                facts={"host": host, SILENT: error.what, "why": why},
            )
