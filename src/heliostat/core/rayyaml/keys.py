"""The keys of Ray's cluster YAML, and what each becomes: our own table.

A test compares it with the schema in Ray's wheel, so that a key which Ray adds is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Key:
    """One key: what Ray wants there, and what heliostat makes of it."""

    wants: str  # text, flag, whole, number, list, commands, table, any
    becomes: str  # in words, for docs/ray-yaml.md
    inside: Mapping[str, Key] = field(default_factory=dict)  # when Ray knows all keys of a table


DOCKER = {
    "image": Key("text", "`image`"),
    "head_image": Key("text", "`head.image`"),
    "worker_image": Key("text", "`image` of every group"),
    "container_name": Key("text", "named: heliostat names its containers itself"),
    "pull_before_run": Key("flag", "`docker.pull`: `always`, or `missing` for false"),
    "run_options": Key("list", "`-v` → `volumes`, `-e` → `env`, `--shm-size` → `shm`, others → `docker.run`"),
    "head_run_options": Key("list", "the same for the head; what is not one of these keys is named"),
    "worker_run_options": Key("list", "the same for every group"),
    "disable_automatic_runtime_detection": Key("flag", "named: containers get the GPUs that `gpus` says"),
    "disable_shm_size_detection": Key("flag", "named: `shm` is the size of /dev/shm"),
    "use_podman": Key("flag", "named: the engine that the host has is used"),
}
NODE_DOCKER = {
    "worker_image": Key("text", "`image` of the group"),
    "pull_before_run": Key("flag", "named where it differs from the cluster's"),
    "worker_run_options": Key("list", "as in `docker`, for the group"),
}
NODE_TYPE = {
    "node_config": Key("table", "by provider, see below"),
    "min_workers": Key("whole", "lower end of `count`"),
    "max_workers": Key("whole", "upper end of `count`"),
    "idle_timeout_s": Key("number", "`idle` of the group"),
    "priority": Key("whole", "named: Ray chooses the group that fits"),
    "resources": Key("table", "`cpus`, `gpus`, `memory`, `shm`; every other one in `resources`"),
    "labels": Key("table", "`labels`"),
    "initialization_commands": Key("commands", "`host_setup` of the group"),
    "worker_setup_commands": Key("commands", "`setup` of the group, instead of the cluster's"),
    "docker": Key("table", "`image` and options of the group", NODE_DOCKER),
}
AUTH = {
    "ssh_user": Key("text", "`ssh.user`; on clouds heliostat makes a login of its own"),
    "ssh_private_key": Key("text", "`ssh.key`; on clouds heliostat makes a key of its own"),
    "ssh_public_key": Key("text", "not needed: heliostat makes a key of its own"),
    "ssh_proxy_command": Key("text", "`ssh.jump`, when it is `ssh -W %h:%p HOST`; else named"),
    "ssh_proxy_use_node_id": Key("flag", "named"),
}
_ANY_PROVIDER = {
    "type": Key("text", "`where`: local → ssh, gcp → gce, azure → azure, aws → ec2"),
    "module": Key("text", "refused: a provider of your own cannot be used"),
    "disable_node_updaters": Key("flag", "named"),
    "disable_launch_config_check": Key("flag", "named"),
    "foreground_node_launch": Key("flag", "named"),
}
_REUSE = Key("flag", "named when true: `down` removes nodes, it never parks them")
_PRIVATE = Key("flag", "`network.public_ip`")
_POD_RIGHTS = Key("table", "named: rights of pods, for `where: kubernetes`")
PROVIDERS: Mapping[str, Mapping[str, Key]] = {
    "local": {
        "head_ip": Key("text", "`ssh.head`, and first of `ssh.hosts`"),
        "worker_ips": Key("list", "`ssh.hosts`"),
        "external_head_ip": Key("text", "named: put the address into ~/.ssh/config"),
        "coordinator_address": Key("text", "refused: name the hosts"),
    },
    "gcp": {
        "project_id": Key("text", "`gce.project`"),
        "availability_zone": Key("text", "`gce.zones`"),
        "region": Key("text", "implied by the zones"),
        "gcp_credentials": Key(
            "table",
            "named: your own gcloud login is used",
            {"type": Key("text", ""), "credentials": Key("text", "")},
        ),
        "cache_stopped_nodes": _REUSE,
        "use_internal_ips": _PRIVATE,
    },
    "azure": {
        "location": Key("text", "`azure.location`"),
        "resource_group": Key("text", "`azure.resource_group`"),
        "subscription_id": Key("text", "`azure.subscription`"),
        "tags": Key("table", "`tags`"),
        "msi_identity_id": Key("text", "`azure.identity`"),
        "msi_identity_principal_id": Key("text", "not needed: found by the identity"),
        "msi_name": Key("text", "`azure.identity`"),
        "msi_resource_group": Key("text", "named"),
        "subnet_id": Key("text", "`azure.network.subnet`"),
        "subnet_mask": Key("text", "named: heliostat chooses the range of a network of its own"),
        "unique_id": Key("text", "named: heliostat makes its names unique itself"),
        "availability_zone": Key("text", "`zones` of every node"),
        "cache_stopped_nodes": _REUSE,
        "use_internal_ips": _PRIVATE,
        "use_external_head_ip": Key("flag", "named: public addresses are for all nodes or for none"),
    },
    "aws": {
        "region": Key("text", "`ec2.region`"),
        "availability_zone": Key("text", "`ec2.zones`"),
        "security_group": Key(
            "table",
            "named: no port is open but SSH; `expose` opens a service",
            {"GroupName": Key("text", ""), "IpPermissions": Key("list", "")},
        ),
        "key_pair": Key("table", "not needed: heliostat makes a key of its own"),
        "aws_credentials": Key("table", "named: your own AWS login is used"),
        "cloudwatch": Key("table", "named: `observe: true` is heliostat's"),
        "cache_stopped_nodes": _REUSE,
        "use_internal_ips": _PRIVATE,
    },
    # What Ray's schema still has, and its launcher no longer does.
    "kubernetes": {
        "namespace": Key("text", ""),
        "autoscaler_service_account": _POD_RIGHTS,
        "autoscaler_role": _POD_RIGHTS,
        "autoscaler_role_binding": _POD_RIGHTS,
    },
}
TOP = {
    "cluster_name": Key("text", "`cluster`"),
    "provider": Key("table", "`where`, and the section of that place"),
    "auth": Key("table", "`ssh`", AUTH),
    "docker": Key("table", "`image` and `docker`", DOCKER),
    "available_node_types": Key("table", "`head`, and a group of `workers` for each other type"),
    "head_node_type": Key("text", "says which type is the `head`"),
    "max_workers": Key("whole", "the most of each `count`"),
    "idle_timeout_minutes": Key("number", "`idle` of each group that may grow, never the cluster's"),
    "upscaling_speed": Key("number", "named when it is not 1.0: Ray's autoscaler keeps its own pace"),
    "file_mounts": Key("table", "`files`"),
    "cluster_synced_files": Key("list", "named: `files` brings them from here"),
    "file_mounts_sync_continuously": Key("flag", "named when true: `helio push`"),
    "rsync_exclude": Key("list", "named: lines for .helioignore"),
    "rsync_filter": Key("list", ".gitignore is honoured without being told; others are named"),
    "metadata": Key("table", "named: Ray does not read it either"),
    "initialization_commands": Key("commands", "`host_setup`"),
    "setup_commands": Key("commands", "`setup`; a pinned Ray is the key `ray`"),
    "head_setup_commands": Key("commands", "`head.setup`, after `setup`"),
    "worker_setup_commands": Key("commands", "`setup` of every group, after `setup`"),
    "head_start_ray_commands": Key(
        "commands", "flags of `ray start` → keys of `head`; others → `start_args`"
    ),
    "worker_start_ray_commands": Key("commands", "the same for every group"),
    "no_restart": Key("any", "named: `up` restarts Ray only where it must, and asks"),
    # The format before Ray 2.0, which its launcher still translates.
    "min_workers": Key("whole", "lower end of `count` (old format, and provider local)"),
    "head_node": Key("table", "`head` (old format)"),
    "worker_nodes": Key("table", "`workers` (old format)"),
}
# Gone from Ray's launcher: it refuses them, and so do we, but saying why.
GONE = {
    "initial_workers": "gone from Ray since 2.0; write min_workers",
    "default_worker_node_type": "gone from Ray since 2.0",
    "worker_default_node_type": "gone from Ray since 2.0",
    "autoscaling_mode": "gone from Ray since 2.0; write upscaling_speed",
    "target_utilization_fraction": "gone from Ray since 2.0; write upscaling_speed",
}


def provider_keys(kind: str) -> dict[str, Key]:
    """Every key that `provider` may have there."""
    return {**_ANY_PROVIDER, **PROVIDERS.get(kind, {})}


def elsewhere(key: str) -> list[str]:
    """The other providers that know this key."""
    return [kind for kind, keys in PROVIDERS.items() if key in keys]
