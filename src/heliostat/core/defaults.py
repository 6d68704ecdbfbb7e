"""What every place does when the file says nothing: one table, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from heliostat.core import units
from heliostat.core.decode.log import Log
from heliostat.core.hosts import expand
from heliostat.core.spec import ONE_GROUP, Count, Group, Node, Origin, Spec

VERIFIED_RAY = "2.60.0"  # the release that this heliostat was verified with
SCALE_IDLE = 300.0  # seconds after which an idle node of a growing group goes


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """The defaults of one place; None: nothing is set, or it does not apply there."""

    workers: int | None = 2  # None: every other host
    machine: str | None = None
    disk: int | None = None
    idle: float | None = None
    lifetime: float | None = None
    public_ip: bool | None = None
    pins_ray: bool = True  # False: the Ray that is installed there already


_CLOUD = Defaults(disk=50 * 10**9, idle=1800.0, lifetime=7 * 86400.0, public_ip=True)

BY_GROUND: dict[str, Defaults] = {
    "local": Defaults(pins_ray=False),
    "ssh": Defaults(workers=None),
    "compose": Defaults(),
    "kubernetes": Defaults(),
    "gce": replace(_CLOUD, machine="e2-standard-4"),
    "azure": replace(_CLOUD, machine="Standard_D4s_v5", disk=64 * 10**9),
    "ec2": replace(_CLOUD, machine="m6i.xlarge"),
}

WHY = {
    "workers": "two workers are the smallest cluster in which work really travels",
    "hosts": "every host but the head's carries one worker",
    "machine": "4 CPUs and 16 GB suit most first tries",
    "disk": "room for an image and its layers",
    "idle": "a forgotten cluster must not cost money for long",
    "lifetime": "the last resort should nothing else end it",
    "public_ip": "so that SSH reaches the nodes; no other port is open",
    "ray": "the release that this heliostat was verified with",
    "where": "no place is named",
    "work": "the file's own folder",
    "auth": "only who has the cluster's token may use it",
    "head": "the head runs tasks like any node, unless it has `cpus: 0`",
    "group idle": "as long as Ray's own launcher waits",
}


def fill(spec: Spec, log: Log) -> tuple[Spec, tuple[Origin, ...]]:
    """Put the place's defaults where nothing was given; the origins say which and why."""
    return _Filler(BY_GROUND[spec.where], log).fill(spec)


class _Filler:
    def __init__(self, table: Defaults, log: Log) -> None:
        self.table = table
        self.log = log
        self.used: list[Origin] = []

    def fill(self, spec: Spec) -> tuple[Spec, tuple[Origin, ...]]:
        for key in ("where", "work", "auth"):
            if (key,) not in self.log.given:
                self._note(key, str(getattr(spec, key)), WHY[key])
        if spec.head.cpus is None:
            self._note("head.cpus", "all", WHY["head"])
        spec = replace(
            spec,
            head=self._node(spec.head, "head"),
            workers=tuple(self._workers(spec)),
            idle=self._limit(spec, "idle"),
            lifetime=self._limit(spec, "lifetime"),
            ray=self._ray(spec),
        )
        return self._network(spec), tuple(self.used)

    def _note(self, path: str, value: str, why: str) -> None:
        self.used.append(Origin(path=path, value=value, source="default", place=why))

    def _ray(self, spec: Spec) -> str | None:
        elsewhere = spec.image or spec.dockerfile or "/" in (spec.python or "")
        if spec.ray is None and self.table.pins_ray and not elsewhere:
            self._note("ray", VERIFIED_RAY, WHY["ray"])
            return VERIFIED_RAY
        return spec.ray

    def _limit(self, spec: Spec, key: str) -> float | None:
        said: float | None = getattr(spec, key)
        value: float | None = getattr(self.table, key)
        if (key,) in self.log.given or value is None:
            return said
        self._note(key, units.say_time(value), WHY[key])
        return value

    def _workers(self, spec: Spec) -> Iterator[Group]:
        named = spec.workers or (Group(name=ONE_GROUP, count=Count(low=0, high=0)),)
        for group in named:
            # The one group's keys stand right under `workers`.
            path: tuple[str, ...] = ("workers", group.name)
            path = path if path in self.log.given else ("workers",)
            name = ".".join(path)
            count, idle = group.count, group.idle
            if (*path, "count") not in self.log.given:
                count = self._count(spec, f"{name}.count")
            if count and count.low < count.high and (*path, "idle") not in self.log.given:
                self._note(f"{name}.idle", units.say_time(SCALE_IDLE), WHY["group idle"])
                idle = SCALE_IDLE
            yield replace(group, count=count, idle=idle, node=self._node(group.node, name))

    def _count(self, spec: Spec, path: str) -> Count:
        number, why = self.table.workers, WHY["workers"]
        if number is None:
            number, why = max(count_hosts(spec) - 1, 0), WHY["hosts"]
        self._note(path, str(number), why)
        return Count(low=number, high=number)

    def _node(self, node: Node, path: str) -> Node:
        sized = (node.machine, node.cpus, node.memory, node.gpus)
        if self.table.machine and all(part is None for part in sized):
            self._note(f"{path}.machine", self.table.machine, WHY["machine"])
            node = replace(node, machine=self.table.machine)
        if self.table.disk and node.disk is None:
            self._note(f"{path}.disk", units.say_size(self.table.disk), WHY["disk"])
            node = replace(node, disk=self.table.disk)
        return node

    def _network(self, spec: Spec) -> Spec:
        site: Any = getattr(spec, spec.where, None)
        if self.table.public_ip is None or site.network.public_ip is not None:
            return spec
        self._note(f"{spec.where}.network.public_ip", str(self.table.public_ip).lower(), WHY["public_ip"])
        network = replace(site.network, public_ip=self.table.public_ip)
        changed: dict[str, Any] = {spec.where: replace(site, network=network)}
        return replace(spec, **changed)


def count_hosts(spec: Spec) -> int:
    """How many hosts `ssh.hosts` names; a malformed pattern counts as one, it is told elsewhere."""
    total = 0
    for pattern in spec.ssh.hosts:
        try:
            total += len(expand(pattern))
        except ValueError:
            total += 1
    return total
