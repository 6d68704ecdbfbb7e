"""What must exist for a file on hosts of one's own. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from heliostat.core.downloads import download_env
from heliostat.core.names import nodes_of
from heliostat.core.resource import HEAD, NODE, Digests, Resource
from heliostat.core.spec import Group, Node, Spec
from heliostat.engine.sync.given import given, signature
from heliostat.grounds.ssh.deal import deal

DIRECTORY, FILES = "directory", "files"


def want(spec: Spec) -> tuple[Resource, ...]:
    """A directory on every host that is used, the file's `files`, and a node in each."""
    dealt = deal(spec)
    hosts = sorted(set(dealt.values()))
    first = {dealt[name]: host_setup(spec, node) for name, node, _ in nodes_of(spec)}
    homes = [
        Resource(
            kind=DIRECTORY,
            key=host,
            digests=Digests(live=live(spec, first[host])),
            text=f"on {host}: the cluster's home, and a short directory for sockets",
            body={
                "host": host,
                "hosts": hosts,
                "auth": spec.auth,
                "tags": dict(spec.tags),
                "host_setup": first[host],
                "env": download_env(spec),
            },
        )
        for host in hosts
    ]
    prepares = any(spec.setup if node.setup is None else node.setup for _, node, _ in nodes_of(spec))
    nodes = (_node(spec, name, node, group, dealt, prepares) for name, node, group in nodes_of(spec))
    return (*homes, *copies(spec, hosts), *nodes)


def host_setup(spec: Spec, node: Node) -> list[str]:
    """What is to be run on the host of that node before anything else."""
    return list(spec.host_setup if node.host_setup is None else node.host_setup)


def live(spec: Spec, first: list[str]) -> str:
    """What can change about a host while Ray runs there."""
    changing = {"tags": dict(spec.tags), "host_setup": first}
    return (
        digest({name: value for name, value in changing.items() if value}) if any(changing.values()) else ""
    )


def copies(spec: Spec, hosts: Iterable[str]) -> Iterator[Resource]:
    """The file's `files`, once on every host."""
    for one in given(spec):
        live = digest([one.source, signature(one.source)])
        for host in hosts:
            yield Resource(
                kind=FILES,
                key=f"{host}:{one.there}",
                needs=(f"{DIRECTORY}/{host}",),
                digests=Digests(live=live),
                text=f"a copy of {one.here} on {host}",
                body={"host": host, "source": one.source, "target": one.there},
            )


def _node(
    spec: Spec, name: str, node: Node, group: Group | None, dealt: Mapping[str, str], prepares: bool
) -> Resource:
    host = dealt[name]
    whole = replace(node, env={**download_env(spec), **spec.env, **node.env}, host_setup=None)
    setup = spec.setup if node.setup is None else node.setup
    made_of = {
        "node": asdict(whole),
        "group": group.name if group else "",
        "python": node.python or spec.python,
        "ray": spec.ray,
        "auth": spec.auth,
        "setup": list(setup),
    }
    return Resource(
        kind=NODE,
        key=name,
        # The head's directory too: nobody joins before there can be a head.
        needs=tuple(f"{DIRECTORY}/{one}" for one in dict.fromkeys((host, dealt[HEAD]))),
        digests=Digests(restart=digest(made_of), replace=digest(host)),
        text=f"{'head' if name == HEAD else 'worker'} on {host}{sizes(whole)}",
        body={
            **made_of,
            "host": host,
            "peers": sorted({one.rpartition("@")[2] for one in dealt.values()}),
            "downloads": download_env(spec),
            "prepares": prepares,
        },
    )


def sizes(node: Node) -> str:
    """What it is told to offer, where the file says so.

    >>> sizes(Node(cpus=2)), sizes(Node())
    (': 2 CPU', '')
    """
    words = [f"{node.cpus:g} CPU"] if node.cpus is not None else []
    words += [f"{node.gpus.count:g} GPU"] if node.gpus is not None else []
    words += [f"{node.memory / 2**30:g} GiB"] if node.memory is not None else []
    return f": {', '.join(words)}" if words else ""


def digest(data: Mapping[str, Any] | Any) -> str:
    """A short name for data: equal data, equal name."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
