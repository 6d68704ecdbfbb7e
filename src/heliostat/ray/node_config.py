"""What a node program is told: Ray's own start arguments and environment, as a pure function of the node.

Words in braces (`{gcs}`) are ports, filled in on the node by whoever holds them there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from heliostat.core.spec import Node
from heliostat.ray.paths import node_dir, token_path

HEAD_PORTS = ("gcs", "dashboard", "client", "autoscaler_metrics", "dashboard_metrics")
NODE_PORTS = ("agent", "agent_grpc", "runtime_env", "metrics")

# Of the environment, what belongs to the head's own services and must not reach jobs.
PRIVATE = ("RAY_gcs_storage", "RAY_gcs_storage_path", "AUTOSCALER_METRIC_PORT", "DASHBOARD_METRIC_PORT")

# Seconds instead of half a minute until a dead node is called dead, and no telemetry.
QUICK: Mapping[str, str] = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    # An unreachable GCS would block every Ray command for 13 minutes.
    "RAY_NUM_REDIS_GET_RETRIES": "3",
    # Without it some of Ray's daemons wipe the environment that they are found by.
    "SPT_NOENV": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where on its machine a node lives, and how it is reached there."""

    home: str  # the cluster's directory on that machine
    temp: str  # Ray's own, short: it holds unix sockets
    python: str
    ip: str = "127.0.0.1"
    loopback: bool = True  # nothing may listen beyond loopback
    gcs: str = ""  # host:port of the head, for workers
    ports: Mapping[str, int] = field(
        default_factory=dict, hash=False
    )  # fixed ones; the others are picked there
    peers: tuple[str, ...] = ()  # the cluster's machines: no proxy stands between them


def size_args(node: Node) -> tuple[str, ...]:
    """How much of its machine a node offers to Ray; what is not said, Ray finds out."""
    args: list[str] = []
    if node.cpus is not None:
        args.append(f"--num-cpus={node.cpus:g}")
    if node.gpus is not None:
        args.append(f"--num-gpus={node.gpus.count:g}")
    if node.memory is not None:
        args.append(f"--memory={node.memory}")
    if node.shm is not None:
        args.append(f"--object-store-memory={node.shm}")
    if node.resources:
        args.append(f"--resources={json.dumps(dict(node.resources), sort_keys=True)}")
    return tuple(args)


def start_args(name: str, node: Node, site: Site, *, head: bool) -> tuple[str, ...]:
    """The words after `ray start`."""
    labels = ",".join(f"{key}={value}" for key, value in {**node.labels, "helio-node": name}.items())
    role: Sequence[str] = (f"--address={site.gcs}",)
    if head:
        role = (
            "--head",
            "--port={gcs}",
            "--include-dashboard=true",
            "--dashboard-host=127.0.0.1",
            "--dashboard-port={dashboard}",
            "--ray-client-server-port={client}",
        )
    return (
        *role,
        f"--node-ip-address={site.ip}",
        f"--node-name={name}",
        f"--temp-dir={site.temp}",
        "--dashboard-agent-listen-port={agent}",
        "--dashboard-agent-grpc-port={agent_grpc}",
        "--runtime-env-agent-port={runtime_env}",
        "--metrics-export-port={metrics}",
        f"--labels={labels}",
        # Raylets that share an address would all count from one port, and meet: the system picks.
        *(("--min-worker-port=0", "--max-worker-port=0") if site.loopback else ()),
        *size_args(node),
        *node.start_args,
    )


def environment(node: Node, site: Site, *, head: bool, auth: str) -> dict[str, str]:
    """What Ray's daemons find beside their machine's own; the file's `env` wins, except over the token."""
    env = dict(QUICK)
    if head:
        env |= {
            "RAY_gcs_storage": "rocksdb",
            "RAY_gcs_storage_path": f"{site.home}/gcs",
            "AUTOSCALER_METRIC_PORT": "{autoscaler_metrics}",
            "DASHBOARD_METRIC_PORT": "{dashboard_metrics}",
        }
    if node.gpus is not None and node.gpus.devices:
        devices = ",".join(node.gpus.devices)
        env["HIP_VISIBLE_DEVICES" if node.gpus.vendor == "amd" else "CUDA_VISIBLE_DEVICES"] = devices
    env |= node.env
    # Always both: a token in ~/.ray would switch authentication on for one node and not for another.
    if auth == "token":
        env |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": token_path(site.home)}
    else:
        env["RAY_AUTH_MODE"] = "disabled"
    return env


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What makes a machine ready before Ray starts there."""

    commands: tuple[str, ...] = ()
    cwd: str = ""
    id: str = ""  # run once for each; given by whoever knows what the commands depend on
    patience: float = 3600.0  # seconds for all of them


def node_config(
    name: str,
    node: Node,
    site: Site,
    *,
    head: bool,
    auth: str = "token",
    patience: float = 120,
    setup: Setup | None = None,
) -> dict[str, Any]:
    """All that the node program reads, as data without secrets; `node.env` is the cluster's and its own."""
    env = environment(node, site, head=head, auth=auth)
    names = (*HEAD_PORTS, *NODE_PORTS) if head else NODE_PORTS
    return {
        "name": name,
        "head": head,
        "home": site.home,
        "dir": node_dir(site.home, name),
        "temp": site.temp,
        "python": site.python,
        "ip": site.ip,
        "loopback": site.loopback,
        "gcs": site.gcs,
        "ports": {one: site.ports.get(one, 0) for one in names},
        "args": list(start_args(name, node, site, head=head)),
        "env": env,
        "peers": list(site.peers),
        "private": list(PRIVATE),
        "patience": patience,
        "setup": asdict(setup) if setup and setup.commands else None,
        "durable": env.get("RAY_gcs_storage") == "rocksdb",
    }
