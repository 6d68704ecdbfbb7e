"""The keys of a node: the head, and every worker of a group."""

from __future__ import annotations

from heliostat.core.decode import forms
from heliostat.core.decode.kinds import Flag, Number, Text, limit, money, size
from heliostat.core.decode.shapes import Field, ListOf, MapOf, Record
from heliostat.core.decode.workers import AT_LEAST, CountKind, GpusKind, GroupKind, Workers
from heliostat.core.spec import Node

_COMMANDS = ListOf(Text("a command"), "a list of commands")

NODE_FIELDS = (
    Field(
        "machine",
        Text("a machine type"),
        "The machine type, in the cloud's own words.",
        "chosen from `cpus`, `memory` and `gpus`",
        "n2-standard-8",
    ),
    Field(
        "cpus",
        Number(),
        "How many CPUs Ray may use on the node; 0 keeps tasks away from it.",
        "all of the machine",
        "8",
    ),
    Field(
        "memory",
        size(1),
        "How much memory Ray may give to tasks on the node.",
        "what the machine has",
        "32 GB",
    ),
    Field(
        "shm",
        size(1),
        "How much of the memory holds shared objects (/dev/shm).",
        "30 % of the memory",
        "12 GB",
    ),
    Field("disk", size(1), "The size of the node's disk.", "by place, see below", "100 GB"),
    Field(
        "gpus",
        GpusKind(),
        "GPUs of each node: a number, a model, or count, model, vendor and devices.",
        "those that the machine implies",
        "T4",
    ),
    Field(
        "spot",
        Flag(),
        "Spare capacity: much cheaper, and the cloud may take it back at any time.",
        "false",
        "true",
    ),
    Field(
        "zones",
        ListOf(Text("a zone")),
        "Where the node may stand, in order of preference.",
        "the zones of the place",
        "[us-west1-a, us-west1-b]",
        also="zone",
    ),
    Field(
        "vm_image",
        Text("a machine image"),
        "The image that the machine's own disk starts from.",
        "a recent Ubuntu",
        "ubuntu-2404-lts",
    ),
    Field(
        "price",
        money(),
        "What one such node costs an hour, where that is not known.",
        "the place's own list",
        "0.38 USD",
    ),
    Field(
        "image",
        forms.image,
        "The container image in which this node works.",
        "the cluster's `image`",
        "my/gpu:1",
    ),
    Field(
        "python",
        forms.python,
        "The Python of this node: a version, or a path to an interpreter there.",
        "the cluster's `python`",
        "3.11",
    ),
    Field(
        "setup",
        _COMMANDS,
        "Commands that make this node ready, in its Python or container.",
        "the cluster's `setup`",
        '["uv pip install torch"]',
    ),
    Field(
        "host_setup",
        _COMMANDS,
        "Commands on the host itself, before any container.",
        "the cluster's `host_setup`",
        '["sudo modprobe fuse"]',
    ),
    Field(
        "env",
        MapOf(forms.variable, forms.any_text),
        "Variables of this node, beside the cluster's.",
        example="{ OMP_NUM_THREADS: 1 }",
    ),
    Field(
        "volumes",
        MapOf(forms.path, forms.mount),
        "Volumes of this node, beside the cluster's.",
        example="{ food11: /mnt }",
    ),
    Field(
        "resources",
        MapOf(Text("a resource's name"), Number()),
        "Ray's custom resources: tasks can ask for them by name.",
        example="{ fast_disk: 1 }",
    ),
    Field(
        "labels",
        MapOf(Text("a label's name"), forms.any_text),
        "Ray's labels: tasks can ask for nodes by them.",
        example="{ team: vision }",
    ),
    Field(
        "start_args",
        ListOf(forms.start_arg, "a list of flags"),
        "Extra flags for `ray start`.",
        example='["--object-manager-port=8076"]',
    ),
)

# What Ray, Kubernetes and the clouds call these keys.
_KNOWN = {
    "gpu": "gpus",
    "num_gpus": "gpus",
    "cpu": "cpus",
    "num_cpus": "cpus",
    "cores": "cpus",
    "instance_type": "machine",
    "machine_type": "machine",
    "machinetype": "machine",
    "vm_size": "machine",
    "vmsize": "machine",
    "preemptible": "spot",
    "mem": "memory",
    "ram": "memory",
    "shm_size": "shm",
    "object_store_memory": "shm",
    "disk_size": "disk",
    "replicas": "count",
    "min": "at_least",
    "number": "count",
    "min_workers": "count",
    "max_workers": "count",
    "idle_timeout": "idle",
    "idle_timeout_minutes": "idle",
    "environment": "env",
    "setup_commands": "setup",
    "container": "image",
    "docker_image": "image",
    "ray_start_params": "start_args",
}

NODE = Record(Node, NODE_FIELDS, known=_KNOWN)

GROUP_FIELDS = (
    Field(
        "count",
        CountKind(),
        "How many: 10 is all or fail, 2..10 starts with 2 and grows, per-gpu is one for each GPU.",
        "by place, see below",
        "2..10",
    ),
    AT_LEAST,
    Field(
        "idle",
        limit(),
        "When a group may grow, a node that was idle for this long goes again.",
        "5 min where `count` is a range",
        "5 min",
    ),
)

GROUP = GroupKind(GROUP_FIELDS, NODE)
WORKERS = Workers(GROUP, forms.group_name)
