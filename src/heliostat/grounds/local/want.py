"""What must exist for a file on this machine. No look-up but of the running interpreter and of `files`."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from heliostat.core.names import nodes_of
from heliostat.core.resource import HEAD, NODE, Digests, Resource
from heliostat.core.spec import Group, Node, Spec
from heliostat.engine.sync.given import given, signature, stem
from heliostat.grounds.local.find import DIRECTORY, FILES, HOME, TEMP
from heliostat.grounds.local.gpus import turns


def want(spec: Spec) -> tuple[Resource, ...]:
    """Two directories, and a node for the head and for each worker."""
    shared = {"count": sum(1 for _ in nodes_of(spec)), "prepares": prepares(spec)}
    dealt = turns(spec)
    home = Resource(
        kind=DIRECTORY,
        key=HOME,
        digests=Digests(live=digest(dict(spec.tags)) if spec.tags else ""),
        text="the cluster's home: token, runs, state",
        body={"tags": dict(spec.tags)},
    )
    return (
        home,
        Resource(kind=DIRECTORY, key=TEMP, text="a short directory for Ray's sockets"),
        *copies(spec),
        *(
            node_resource(spec, name, node, group, {**shared, "turn": dealt[name]})
            for name, node, group in nodes_of(spec)
        ),
    )


def copies(spec: Spec) -> Iterator[Resource]:
    """The file's `files`: nodes of one machine share one copy."""
    for one in given(spec):
        target = os.path.normpath(os.path.expanduser(one.there))
        yield Resource(
            kind=FILES,
            key=f"{stem(target)}-{digest(target)[:6]}",
            needs=(f"{DIRECTORY}/{HOME}",),
            digests=Digests(live=digest([one.source, signature(one.source)])),
            text=f"a copy of {one.here} at {one.there}",
            body={"source": one.source, "target": target},
        )


def inputs(commands: Iterable[str], folder: str) -> list[list[str]]:
    """The files that a setup names, and what is in them: looked at once for all nodes, before it runs."""
    words = [word for one in commands for word in re.sub(r">+\s*\S+", "", one).split()]
    paths = {os.path.join(folder, word.strip("'\"")) for word in words}
    return [[path, digest(Path(path).read_text("latin-1"))] for path in sorted(paths) if os.path.isfile(path)]


def prepares(spec: Spec) -> bool:
    """Whether any node has a setup, for which others may have to wait."""
    return any(spec.setup if node.setup is None else node.setup for _, node, _ in nodes_of(spec))


def node_resource(
    spec: Spec, name: str, node: Node, group: Group | None, shared: Mapping[str, Any]
) -> Resource:
    """One Ray node; everything that it is made of goes into its digest."""
    python = node.python or spec.python
    whole = replace(node, env={**spec.env, **node.env})
    setup = spec.setup if node.setup is None else node.setup
    body = {
        "node": asdict(whole),
        "group": group.name if group else "",
        "python": python,
        "ray": spec.ray,
        "auth": spec.auth,
        "setup": list(setup),
    }
    # How many nodes share the machine changes nothing for one that lives; another environment does.
    running = sys.prefix if python is None else ""
    return Resource(
        kind=NODE,
        key=name,
        needs=(f"{DIRECTORY}/{HOME}", f"{DIRECTORY}/{TEMP}"),
        digests=Digests(restart=digest({**body, "running": running})),
        text=describe(name, whole),
        body={**body, "folder": spec.folder, "inputs": inputs(setup, spec.folder), **shared},
    )


def describe(name: str, node: Node) -> str:
    """One line for `helio plan`."""
    sizes = [f"{node.cpus:g} CPU" if node.cpus is not None else "a share of the CPUs"]
    if node.gpus is not None:
        sizes.append(f"{node.gpus.count:g} GPU")
    if node.memory is not None:
        sizes.append(f"{node.memory / 2**30:g} GiB")
    return f"{'head' if name == HEAD else 'worker'} on this machine: {', '.join(sizes)}"


def digest(data: Mapping[str, Any] | Any) -> str:
    """A short name for data: equal data, equal name."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
