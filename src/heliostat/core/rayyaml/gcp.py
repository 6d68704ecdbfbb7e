"""Ray's provider gcp: `where: gce`."""

from __future__ import annotations

from heliostat.core.decode.log import Path
from heliostat.core.decode.tree import Items, Scalar, Table, Tree
from heliostat.core.draft import Draft
from heliostat.core.rayyaml.reader import At, Reader, plain

_NO_KEY = "heliostat's machines on gce have no such key"
_TPU = ("acceleratorType", "acceleratorConfig", "runtimeVersion")
_SAME = {
    "onHostMaintenance": ("TERMINATE",),
    "automaticRestart": ("false", "False"),
    "instanceTerminationAction": ("DELETE",),
}


def provider(keys: Reader, draft: Draft) -> None:
    project, zone = keys.take("project_id", "text"), keys.take("availability_zone", "text")
    region = keys.take("region", "text")
    if project:
        draft.put(("gce", "project"), project.value, project.mark, project.key)
    if zone:
        zones = [part.strip() for part in zone.value.split(",")]
        draft.put(("gce", "zones"), zones, zone.mark, zone.key)
        if region and not all(part.startswith(region.value) for part in zones):
            draft.log.add(region.there, f"`{region.key}` is {region.value}, but the zone is {zone.value}")
    elif region:
        draft.lost(region.mark, region.key, "`gce.zones` names zones; write availability_zone")
    if credentials := keys.take("gcp_credentials", "any"):
        draft.lost(credentials.mark, credentials.key, "your own gcloud login is used; none stands in a file")


def node(keys: Reader, path: Path, draft: Draft) -> None:
    """One machine."""
    if machine := keys.take("machineType", "text"):
        draft.put((*path, "machine"), machine.value.rpartition("/")[2], machine.mark, machine.key)
    for name in _TPU:
        if tpu := keys.take(name, "any"):
            draft.log.add(tpu.mark, f"`{tpu.key}` asks for a TPU; heliostat has no place with TPUs")
    if disks := keys.take("disks", "any"):
        _disks(disks, path, draft)
    if scheduling := keys.take("scheduling", "any"):
        for table in tables(scheduling.value):
            _scheduling(Reader(table, scheduling.path, draft.log), path, draft)
    if gpus := keys.take("guestAccelerators", "any"):
        _gpus(gpus, path, draft)
    if interfaces := keys.take("networkInterfaces", "any"):
        _network(interfaces, draft)
    if accounts := keys.take("serviceAccounts", "any"):
        _account(accounts, draft)


def tables(tree: Tree) -> list[Table]:
    """A mapping, or the mappings of a list."""
    parts = tree.items if isinstance(tree, Items) else (tree,)
    return [part for part in parts if isinstance(part, Table)]


def _disks(at: At, path: Path, draft: Draft) -> None:
    for table in tables(at.value):
        disk = Reader(table, at.path, draft.log)
        boot = disk.take("boot", "flag")
        if boot is not None and not boot.value:
            draft.lost(boot.mark, at.key, "a node has one disk, the one that it starts from")
            continue
        disk.take("autoDelete", "flag")
        disk.take("type", "text")
        if start := disk.reader("initializeParams"):
            if size := start.take("diskSizeGb", "whole"):
                draft.put((*path, "disk"), f"{size.value} GB", size.mark, size.key)
            if image := start.take("sourceImage", "text"):
                draft.put((*path, "vm_image"), image.value, image.mark, image.key)
            unknown(start, draft)
        unknown(disk, draft)


def _scheduling(keys: Reader, path: Path, draft: Draft) -> None:
    spot = keys.take("preemptible", "flag")
    model = keys.take("provisioningModel", "text")
    if spot and spot.value:
        draft.put((*path, "spot"), True, spot.mark, spot.key)
    elif model and model.value == "SPOT":
        draft.put((*path, "spot"), True, model.mark, model.key)
    for name, usual in _SAME.items():
        if (at := keys.take(name, "text")) and at.value not in usual:
            draft.lost(at.mark, at.key, _NO_KEY)
    unknown(keys, draft)


def _gpus(at: At, path: Path, draft: Draft) -> None:
    for table in tables(at.value):
        keys = Reader(table, at.path, draft.log)
        model, count = keys.take("acceleratorType", "text"), keys.take("acceleratorCount", "whole")
        number = str(count.value) if count else "1"
        gpus = {"count": number, **({"model": gpu_model(model.value)} if model else {})}
        draft.put((*path, "gpus"), gpus, at.mark, at.key)
        unknown(keys, draft)


def gpu_model(text: str) -> str:
    """The short name of a GPU.

    >>> gpu_model("projects/p/zones/z/acceleratorTypes/nvidia-tesla-t4"), gpu_model("nvidia-l4")
    ('T4', 'L4')
    """
    return text.rpartition("/")[2].removeprefix("nvidia-").removeprefix("tesla-").upper()


def _network(at: At, draft: Draft) -> None:
    for table in tables(at.value)[:1]:
        keys = Reader(table, at.path, draft.log)
        for theirs, ours in (("network", "vpc"), ("subnetwork", "subnet")):
            if name := keys.take(theirs, "text"):
                draft.put(("gce", "network", ours), name.value.rpartition("/")[2], name.mark, name.key)
        public = keys.take("accessConfigs", "any")
        draft.put(("gce", "network", "public_ip"), public is not None, at.mark, at.key)
        keys.take("kind", "text")
        if (alias := keys.take("aliasIpRanges", "any")) and plain(alias.value):
            draft.lost(alias.mark, alias.key, _NO_KEY)
        unknown(keys, draft)
    if len(tables(at.value)) > 1:
        draft.lost(at.mark, at.key, "a node has one network interface")


def _account(at: At, draft: Draft) -> None:
    for table in tables(at.value):
        keys = Reader(table, at.path, draft.log)
        if email := keys.take("email", "text"):
            draft.put(("gce", "service_account"), email.value, email.mark, email.key)
        scopes = keys.take("scopes", "any")
        if scopes and any(not str(scope).endswith("cloud-platform") for scope in plain(scopes.value)):
            draft.lost(scopes.mark, scopes.key, "the rights of `gce.service_account` are its roles")
        unknown(keys, draft)


def unknown(keys: Reader, draft: Draft) -> None:
    """Name what is left of a machine's description."""
    for at in keys.rest():
        draft.lost(at.mark, at.key, f"{_shown(at.value)}: heliostat's machines have no such key")


def _shown(tree: Tree) -> str:
    return tree.text if isinstance(tree, Scalar) else str(tree)
