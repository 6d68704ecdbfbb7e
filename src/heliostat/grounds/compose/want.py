"""What must exist for a file: a network, volumes, a container for each node. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from heliostat.core.defaults import VERIFIED_RAY
from heliostat.core.errors import UsageError
from heliostat.core.names import nodes_of
from heliostat.core.resource import HEAD, NODE, Digests, Resource
from heliostat.core.spec import Group, Node, Spec
from heliostat.grounds.compose.deal import deal, vendor_of
from heliostat.shells.docker_images import recipe

NETWORK, VOLUME = "network", "volume"
HOME = "home"  # the key of the volume that all nodes share
CLUSTER = "cluster"  # the key of the network


def want(spec: Spec) -> tuple[Resource, ...]:
    """Everything, in an order that can be read."""
    from heliostat.grounds.compose.services import resources

    dealt = deal(spec)
    tags = Digests(live=digest(dict(spec.tags)) if spec.tags else "")
    body = {"tags": dict(spec.tags)}
    return (
        Resource(kind=NETWORK, key=CLUSTER, digests=tags, text="a network of the cluster's own", body=body),
        Resource(kind=VOLUME, key=HOME, text="a volume that the nodes share: token, runs, state", body=body),
        *(
            Resource(
                kind=VOLUME,
                key=name,
                data=True,
                text=f"the volume {name}: used as it is where the engine has it, else made",
                body=body,
            )
            for name in named_volumes(spec)
        ),
        *(
            _node(spec, name, node, group, dealt.get(name, ()))
            for name, node, group in nodes_of(spec)
        ),
        *resources(spec),
    )  # fmt: skip


def mounts(spec: Spec, node: Node) -> dict[str, str]:
    """The volumes of a node: the cluster's, and its own before them."""
    return {**spec.volumes, **node.volumes}


def is_path(source: str) -> bool:
    """Whether it is a path on the engine's machine rather than the name of a volume."""
    return source.startswith(("/", ".", "~"))


def named_volumes(spec: Spec) -> Iterator[str]:
    """The names of volumes that the file mentions, each once."""
    reserved = {HOME, "prometheus", "grafana", "dashboards", "storage", "keys", "notebook"}
    names = {source for _, node, _ in nodes_of(spec) for source in mounts(spec, node) if not is_path(source)}
    if taken := sorted(names & reserved):
        raise UsageError(
            f"volumes: {', '.join(taken)} cannot be the name of a volume here",
            why="the cluster has one of that name for itself",
            fix="choose another name",
        )
    yield from sorted(names)


def image_of(spec: Spec, node: Node) -> str:
    """The image of a node; Ray's own where the file names none.

    >>> image_of(Spec(cluster="c", ray="2.60.0"), Node())
    'rayproject/ray:2.60.0-py311'
    """
    python = node.python or spec.python or "3.11"
    short = "".join(python.split(".")[:2]) if python.replace(".", "").isdigit() else "311"
    if spec.dockerfile and not node.image:
        return recipe(spec, "").name
    return node.image or spec.image or f"rayproject/ray:{spec.ray or VERIFIED_RAY}-py{short}"


def _node(spec: Spec, name: str, node: Node, group: Group | None, devices: tuple[str, ...]) -> Resource:
    from heliostat.grounds.compose.services import store, variables, volumes_of

    setup = spec.setup if node.setup is None else node.setup
    volumes = {**volumes_of(spec, head=name == HEAD), **mounts(spec, node)}
    body = {
        "node": asdict(node),
        "env": {**(variables(spec) if name == HEAD else {}), **spec.env, **node.env},
        "image": image_of(spec, node),
        "group": group.name if group else "",
        "auth": spec.auth,
        "setup": list(setup),
        "volumes": volumes,
        "devices": list(devices),
        "store": store(spec),
        # What is built here is in no registry.
        "pull": "never" if spec.dockerfile and not node.image else spec.docker.pull,
        **({"shown": True} if name == HEAD and shown(spec) else {}),
    }
    shares = {
        "folder": spec.folder,
        "recipe": asdict(recipe(spec, "")) if spec.dockerfile and not node.image else None,
        "count": sum(node.cpus is None for _, node, _ in nodes_of(spec)),
        "prepares": any(spec.setup if n.setup is None else n.setup for _, n, _ in nodes_of(spec)),
        "tags": dict(spec.tags),
    }
    named = sorted(f"{VOLUME}/{source}" for source in volumes if not is_path(source))
    return Resource(
        kind=NODE,
        key=name,
        needs=(f"{NETWORK}/{CLUSTER}", f"{VOLUME}/{HOME}", *named),
        digests=Digests(restart=digest(body), replace=digest(body["image"])),
        text=describe(name, node, devices),
        body={**body, **shares},
    )


def shown(spec: Spec) -> bool:
    """Whether something beside Ray must reach the dashboard."""
    return spec.notebook is not None or "dashboard" in spec.expose


def describe(name: str, node: Node, devices: tuple[str, ...]) -> str:
    """One line for `helio plan`, with the devices that it is dealt.

    >>> from heliostat.core.spec import Gpus
    >>> describe("gpu-1", Node(cpus=8, gpus=Gpus(count=1)), ("0",))
    'worker in a container: 8 CPU, NVIDIA GPU 0'
    """
    sizes = [f"{node.cpus:g} CPU" if node.cpus is not None else "a share of the CPUs"]
    if node.memory is not None:
        sizes.append(f"{node.memory / 2**30:g} GiB")
    if node.gpus is not None and devices:
        vendor = vendor_of(node.gpus)
        sizes.append(f"{'AMD' if vendor == 'amd' else 'NVIDIA'} GPU {', '.join(devices)}")
    return f"{'head' if name == HEAD else 'worker'} in a container: {', '.join(sizes)}"


def digest(data: Mapping[str, Any] | Any) -> str:
    """A short name for data: equal data, equal name."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
