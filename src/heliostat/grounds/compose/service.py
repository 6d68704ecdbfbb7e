"""One node as a service of a Compose file. Pure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from heliostat.core.resource import HEAD, Resource
from heliostat.core.spec import Gpus, Node
from heliostat.grounds.compose import entry
from heliostat.grounds.compose.deal import render_node, vendor_of
from heliostat.grounds.compose.want import HOME, VOLUME, digest, is_path
from heliostat.ray import program
from heliostat.ray.node_config import Setup, Site, node_config
from heliostat.ray.paths import node_dir

# Every container has an address of its own, so the ports can be the ones that people know.
PORTS: Mapping[str, int] = {
    "gcs": 6379,
    "dashboard": 8265,
    "client": 10001,
    "autoscaler_metrics": 44217,
    "dashboard_metrics": 44227,
    "agent": 52365,
    "agent_grpc": 52366,
    "runtime_env": 52367,
    "metrics": 8080,
}
PATIENCE = 120.0  # seconds for Ray's own start
SHM = 2 * 2**30  # where the file does not say: what Docker itself gives is far too little
STORE_PART = 0.7  # of the shared memory; the rest is for data loaders and their like
TEMP = "/tmp/ray"  # noqa: S108  (inside the container, which has no other users)
PROGRAM = "/etc/heliostat/program.py"


def service(resource: Resource, *, labels: Mapping[str, str], names: Names) -> dict[str, Any]:
    """What stands below `services:` for this node."""
    body, key = resource.body, resource.key
    node = node_of(body["node"])
    made: dict[str, Any] = {
        "container_name": names.container(key),
        "hostname": key,
        "image": body["image"],
        "pull_policy": body["pull"],
        "user": "0:0",
        "entrypoint": [interpreter(node), "-I", "-S", PROGRAM],
        "command": [],
        "configs": [
            {"source": "program", "target": PROGRAM},
            {"source": key, "target": entry.CONFIG},
        ],
        "networks": {"cluster": {"aliases": [key]}},
        "volumes": [
            {"type": "volume", "source": HOME, "target": entry.SHARED},
            *(_mount(source, target, body["folder"]) for source, target in sorted(body["volumes"].items())),
        ],
        "shm_size": shm(node),
        # Nobody but `helio up` brings a node back: a person who kills one wants to see what happens then.
        "restart": "no",
        "stop_grace_period": "15s",
        "healthcheck": {
            "test": ["CMD-SHELL", f'grep -q \'"phase": "up"\' {node_dir(entry.HOME, key)}/state.json'],
            "interval": "5s",
            "timeout": "5s",
            "retries": 3,
            "start_period": "120s",
        },
        "labels": dict(labels),
    }
    if node.memory is not None:
        made["mem_limit"] = node.memory
    return made | devices(node, tuple(body["devices"]))


class Names:
    """How the cluster's things are called on the engine, where many clusters live."""

    def __init__(self, project: str, volumes: Mapping[str, str] | None = None) -> None:
        self.project = project
        self._volumes = dict(volumes or {})  # those that were there before us, under their own names

    @property
    def network(self) -> str:
        return self.project

    def container(self, key: str) -> str:
        return f"{self.project}-{key}"

    def volume(self, key: str) -> str:
        return self._volumes.get(key) or self.own_volume(key)

    def own_volume(self, key: str) -> str:
        return f"{self.project}_{key}"


def interpreter(node: Node) -> str:
    """The Python that the node uses, found in the container unless the file names a path."""
    return node.python if node.python and "/" in node.python else "python3"


def shm(node: Node) -> int:
    return node.shm or SHM


def devices(node: Node, dealt: tuple[str, ...]) -> dict[str, Any]:
    """The GPUs of one container, by number or UUID; inside it they are numbered from 0."""
    if node.gpus is None or not dealt:
        return {}
    if vendor_of(node.gpus) == "amd":
        return {
            "devices": ["/dev/kfd", *(render_node(one) for one in dealt)],
            "security_opt": ["seccomp=unconfined"],
            "environment": visible(node, dealt),
        }
    wish = {"driver": "nvidia", "device_ids": list(dealt), "capabilities": ["gpu"]}
    return {"deploy": {"resources": {"reservations": {"devices": [wish]}}}}


def visible(node: Node, dealt: tuple[str, ...]) -> dict[str, str]:
    """AMD's variables. Ray refuses to work with ROCR's alone, and deals by HIP's."""
    if node.gpus is None or not dealt or vendor_of(node.gpus) != "amd":
        return {}
    inside = ",".join(str(number) for number in range(len(dealt)))
    return {"HIP_VISIBLE_DEVICES": inside, "ROCR_VISIBLE_DEVICES": inside}


def config_text(resource: Resource) -> str:
    """What the node program is told, with words in braces that only the container knows."""
    body, key = resource.body, resource.key
    node = node_of(body["node"])
    gpus = replace(node.gpus, devices=()) if node.gpus else Gpus(count=0)
    whole = replace(
        node,
        gpus=gpus,
        memory=int(node.memory * 0.9) if node.memory else None,
        shm=int(shm(node) * STORE_PART),
        env={**visible(node, tuple(body["devices"])), **body["env"]},
        start_args=(
            *(() if node.cpus is not None else ("--num-cpus={helio-cpus}",)),
            # Only where something beside it must reach it; still inside the cluster's own network.
            *(("--dashboard-host=0.0.0.0",) if body.get("shown") else ()),
            *node.start_args,
        ),
    )
    site = Site(
        home=entry.HOME,
        temp=TEMP,
        python="{helio-python}",
        ip="{helio-ip}",
        loopback=False,
        gcs="" if key == HEAD else f"{HEAD}:{PORTS['gcs']}",
        ports=PORTS,
    )
    setup = setup_of(body["setup"])
    patience = PATIENCE + (setup.patience if body["prepares"] else 0)
    config = node_config(
        key, whole, site, head=key == HEAD, auth=body["auth"], patience=patience, setup=setup
    )
    return json.dumps(
        {"nodes": max(1, body["count"]), "node": config, "store": body["store"]}, sort_keys=True
    )


def setup_of(commands: list[str]) -> Setup:
    """The commands, once in each container."""
    words = tuple(commands)
    return Setup(commands=words, cwd=entry.HOME, id=f"{digest(words)}-{{helio-container}}")


def program_text() -> str:
    """The entry's own text, with all that it lays down."""
    from heliostat.grounds.compose.texts import text_of

    bundle = {"digest": program.digest(), "files": program.files()}
    return f"{text_of('entry')}\n\nmain({json.dumps(bundle)})\n"


def node_of(data: Mapping[str, Any]) -> Node:
    """A node from the plain data of a resource's body."""
    gpus = data["gpus"]
    return Node(**{**data, "gpus": Gpus(**gpus) if gpus else None})


def _mount(source: str, target: str, folder: str) -> dict[str, Any]:
    """`/data/x: /mnt:ro` and `food11: /mnt`."""
    path, _, mode = target.partition(":")
    made: dict[str, Any] = {"type": "volume", "source": source, "target": path}
    if is_path(source):
        at = os.path.normpath(os.path.join(folder or ".", os.path.expanduser(source)))
        made |= {"type": "bind", "source": at, "bind": {"create_host_path": False}}
    return made | ({"read_only": True} if mode == "ro" else {})


__all__ = ["VOLUME", "Names", "config_text", "program_text", "service"]
