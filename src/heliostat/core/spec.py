"""The cluster file, decoded: frozen records, units already resolved (bytes, seconds, USD)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from heliostat.core.remark import Remark

GROUNDS = ("local", "ssh", "compose", "kubernetes", "gce", "azure", "ec2")
ONE_GROUP = "worker"  # the name of a group that was given none: worker-1, worker-2 …


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many nodes: `10`, `2..10` (wait for 2, scale to 10) or {count: 10, at_least: 6}."""

    low: int
    high: int
    at_least: int | None = None  # a partial start is accepted from here

    @property
    def enough(self) -> int:
        """How many must be alive before `up` may say so."""
        return self.low if self.at_least is None else self.at_least


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    count: float = 1
    model: str | None = None
    vendor: str | None = None  # nvidia | amd
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What one node is. Any key may differ per group; None means: take the cluster's or the ground's."""

    machine: str | None = None
    cpus: float | None = None
    memory: int | None = None
    shm: int | None = None
    disk: int | None = None
    gpus: Gpus | None = None
    spot: bool = False
    zones: tuple[str, ...] = ()
    vm_image: str | None = None
    price: float | None = None  # USD an hour
    image: str | None = None
    python: str | None = None
    setup: tuple[str, ...] | None = None
    host_setup: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    volumes: Mapping[str, str] = field(default_factory=dict, hash=False)
    resources: Mapping[str, float] = field(default_factory=dict, hash=False)
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    start_args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Workers of one kind. Their names are `<name>-1` … `<name>-N`."""

    name: str
    count: Count | None  # None: per-gpu, one worker for each device of the hosts
    node: Node = Node()
    idle: float | None = None  # seconds per node, for groups that scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Docker:
    pull: str = "missing"  # missing | always | never
    run: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    user: str
    password: str = field(repr=False)  # a literal is refused; `secret:NAME` names where it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Observe:
    prometheus: bool = False
    grafana: bool = False
    retention: float = 7 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Notebook:
    dockerfile: str | None = None
    image: str | None = None
    work: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSite:
    hosts: tuple[str, ...] = ()
    user: str | None = None
    head: str | None = None
    key: str | None = None
    jump: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposeSite:
    context: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSite:
    namespace: str | None = None
    context: str | None = None
    mode: str = "auto"  # auto | plain | kuberay
    requests: Mapping[str, str] = field(default_factory=dict, hash=False)
    template: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    vnet: str | None = None
    vpc: str | None = None
    subnet: str | None = None
    public_ip: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GceSite:
    project: str | None = None
    zones: tuple[str, ...] = ()
    service_account: str | None = None
    network: Network = Network()


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureSite:
    subscription: str | None = None
    resource_group: str | None = None
    location: str | None = None
    network: Network = Network()
    identity: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ec2Site:
    region: str | None = None
    zones: tuple[str, ...] = ()
    network: Network = Network()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A whole cluster, every default filled in."""

    cluster: str
    where: str = "local"
    ray: str | None = None  # None: the release that this heliostat was verified with
    python: str | None = None
    image: str | None = None
    dockerfile: str | None = None
    docker: Docker = Docker()
    registry: Mapping[str, Login] = field(default_factory=dict, hash=False)
    head: Node = Node()
    workers: tuple[Group, ...] = ()
    work: str = "."  # relative to `folder`
    files: Mapping[str, str] = field(default_factory=dict, hash=False)
    outputs: tuple[str, ...] = ()
    volumes: Mapping[str, str] = field(default_factory=dict, hash=False)
    setup: tuple[str, ...] = ()
    host_setup: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    secrets: tuple[str, ...] = ()
    secrets_from: str | None = None
    storage: str | None = None
    observe: Observe = Observe()
    notebook: Notebook | None = None
    expose: Mapping[str, str] = field(default_factory=dict, hash=False)
    idle: float | None = None
    lifetime: float | None = None
    budget: float | None = None
    auth: str = "token"  # token | network-only
    tls: bool = False
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    proxy: str | None = None
    mirrors: Mapping[str, str] = field(default_factory=dict, hash=False)
    ssh: SshSite = SshSite()
    compose: ComposeSite = ComposeSite()
    kubernetes: KubernetesSite = KubernetesSite()
    gce: GceSite = GceSite()
    azure: AzureSite = AzureSite()
    ec2: Ec2Site = Ec2Site()
    folder: str = ""  # absolute: where the file stands; relative paths in it start here
    source: str = ""  # the file's path; empty for the default local cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value came from, for `helio plan`."""

    path: str  # workers.cpu.count
    value: str
    source: str  # file, flag, environment, default …
    place: str = ""  # helio.yaml:3:1, --set, HELIO_… , "2 workers are a real cluster on one machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    spec: Spec
    origins: tuple[Origin, ...] = ()
    notes: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()  # on the keys of somebody else's file
