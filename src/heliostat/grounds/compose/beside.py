"""One service beside Ray, whichever it is: as a resource, and as a part of a Compose file. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from heliostat.core.resource import SERVICE, Digests, Resource
from heliostat.core.spec import Spec
from heliostat.grounds.compose.service import PROGRAM
from heliostat.grounds.compose.want import CLUSTER, NETWORK, VOLUME, digest
from heliostat.shells.docker_images import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One service: enough to write it down in a Compose file."""

    key: str
    image: str
    port: int
    argv: tuple[str, ...]
    healthy: str  # a shell line that succeeds once it does what it is there for
    text: str
    volume: str = ""  # where its own volume is mounted
    files: Mapping[str, str] = field(default_factory=dict)  # path in the container: content
    env: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, str] = field(default_factory=dict)  # other volumes, and where they are mounted
    user: str = ""
    binds: Mapping[str, str] = field(default_factory=dict)  # folders of the engine's machine
    shares: Mapping[str, str] = field(default_factory=dict)  # other volumes that it may write
    recipe: Recipe | None = None  # of its image, where that is built
    built: bool = False  # its image is one that is built for the nodes
    program: str = ""  # the name of the text that runs in it, put in when it is made
    ports: tuple[int, ...] = ()  # what the engine's machine publishes


def resource_of(one: Beside, spec: Spec) -> Resource:
    """The container; what is put in only when it is made is not in its digest."""
    body = {
        "image": one.image,
        "port": one.port,
        "argv": list(one.argv),
        "volume": one.volume,
        "healthy": one.healthy,
        "files": dict(one.files),
        "env": dict(one.env),
        "reads": dict(one.reads),
        "user": one.user,
        "pull": "never" if one.recipe or one.built else spec.docker.pull,
        "binds": dict(one.binds),
        "shares": dict(one.shares),
        "program": one.program,
        "ports": list(one.ports),
    }
    recipe = {"recipe": asdict(one.recipe)} if one.recipe else {}
    return Resource(
        kind=SERVICE,
        key=one.key,
        needs=(f"{NETWORK}/{CLUSTER}", *(f"{VOLUME}/{key}" for key in volumes_of(one.key, body))),
        digests=Digests(restart=digest(body)),
        text=one.text,
        body={**body, "tags": dict(spec.tags), **recipe},
    )


def volumes_of(key: str, body: Mapping[str, Any]) -> tuple[str, ...]:
    """Every volume that it sees, by the file's names."""
    return (*((key,) if body["volume"] else ()), *body["reads"], *body["shares"])


def mounts(key: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What stands below `volumes:` for it."""
    if body["volume"]:
        yield {"type": "volume", "source": key, "target": body["volume"]}
    for source, target in body["reads"].items():
        yield {"type": "volume", "source": source, "target": target, "read_only": True}
    for source, target in body["shares"].items():
        yield {"type": "volume", "source": source, "target": target}
    for source, target in body["binds"].items():
        yield {"type": "bind", "source": source, "target": target, "bind": {"create_host_path": False}}


def service(resource: Resource, *, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """What stands below `services:` for it."""
    body, key = resource.body, resource.key
    configs = [{"source": config_name(key, path), "target": path} for path in body["files"]]
    if body["program"]:
        configs.append({"source": body["program"], "target": PROGRAM})
    ports = [{"target": port, "published": str(port), "host_ip": "0.0.0.0"} for port in body["ports"]]  # noqa: S104
    return {
        "container_name": name,
        "hostname": key,
        "image": body["image"],
        "pull_policy": body["pull"],
        "entrypoint": list(body["argv"]),
        "command": [],
        **({"environment": dict(body["env"])} if body["env"] else {}),
        **({"user": body["user"]} if body["user"] else {}),
        "configs": configs,
        "networks": {"cluster": {"aliases": [key]}},
        **({"ports": ports} if ports else {}),
        "volumes": list(mounts(key, body)),
        # Unlike a node it does nothing that a person would kill to learn from.
        "restart": "unless-stopped",
        "healthcheck": {
            "test": ["CMD-SHELL", body["healthy"]],
            "interval": "3s",
            "timeout": "5s",
            "retries": 3,
            "start_period": "120s",
        },
        "labels": dict(labels),
    }


def config_name(key: str, path: str) -> str:
    """A file of a service, in the Compose file's own list.

    >>> config_name("prometheus", "/etc/heliostat/prometheus.yml")
    'prometheus-heliostat-prometheus-yml'
    """
    return "-".join([key, *path.replace(".", "-").split("/")[-2:]])
