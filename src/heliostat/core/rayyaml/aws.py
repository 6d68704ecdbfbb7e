"""Ray's provider aws: `where: ec2`."""

from __future__ import annotations

from heliostat.core.decode.log import Path
from heliostat.core.decode.tree import Items, Scalar
from heliostat.core.draft import Draft
from heliostat.core.rayyaml.gcp import tables, unknown
from heliostat.core.rayyaml.reader import Reader, plain

_LOST = {
    "security_group": "no port is open but SSH; `expose` opens a service",
    "aws_credentials": "your own AWS login is used; none stands in a file",
    "cloudwatch": "`observe: true` is heliostat's Prometheus and Grafana",
}


def provider(keys: Reader, draft: Draft) -> None:
    if region := keys.take("region", "text"):
        draft.put(("ec2", "region"), region.value, region.mark, region.key)
    if zone := keys.take("availability_zone", "text"):
        zones = [part.strip() for part in zone.value.split(",")]
        draft.put(("ec2", "zones"), zones, zone.mark, zone.key)
    for name, why in _LOST.items():
        if at := keys.take(name, "any"):
            draft.lost(at.mark, at.key, why)
    if pair := keys.take("key_pair", "any"):
        draft.ours(pair.mark, pair.key, "heliostat makes a key of its own")


def node(keys: Reader, path: Path, draft: Draft) -> None:
    """One machine."""
    for theirs, ours in (("InstanceType", "machine"), ("ImageId", "vm_image")):
        if at := keys.take(theirs, "text"):
            draft.put((*path, ours), at.value, at.mark, at.key)
    if key := keys.take("KeyName", "text"):
        draft.ours(key.mark, key.key, "heliostat makes a key of its own")
    _disk(keys, path, draft)
    _market(keys, path, draft)
    if placement := keys.reader("Placement"):
        if zone := placement.take("AvailabilityZone", "text"):
            draft.put((*path, "zones"), [zone.value], zone.mark, zone.key)
        unknown(placement, draft)
    _subnet(keys, draft)


def _disk(keys: Reader, path: Path, draft: Draft) -> None:
    found = keys.take("BlockDeviceMappings", "any")
    for number, table in enumerate(tables(found.value) if found else ()):
        if number and found:
            draft.lost(found.mark, found.key, "a node has one disk, the one that it starts from")
            return
        device = Reader(table, found.path if found else (), draft.log)
        device.take("DeviceName", "text")
        if ebs := device.reader("Ebs"):
            if size := ebs.take("VolumeSize", "whole"):
                draft.put((*path, "disk"), f"{size.value} GiB", size.mark, size.key)
            ebs.take("DeleteOnTermination", "flag")
            unknown(ebs, draft)
        unknown(device, draft)


def _market(keys: Reader, path: Path, draft: Draft) -> None:
    market = keys.reader("InstanceMarketOptions")
    if market is None:
        return
    kind = market.take("MarketType", "text")
    if kind and kind.value == "spot":
        draft.put((*path, "spot"), True, kind.mark, kind.key)
    unknown(market, draft)


def _subnet(keys: Reader, draft: Draft) -> None:
    one, several = keys.take("SubnetId", "text"), keys.take("SubnetIds", "any")
    if one:
        draft.put(("ec2", "network", "subnet"), one.value, one.mark, one.key)
    elif several and isinstance(several.value, Items) and several.value.items:
        names = [name for name in several.value.items if isinstance(name, Scalar)]
        draft.put(("ec2", "network", "subnet"), names[0].text, several.mark, several.key)
        if len(plain(several.value)) > 1:
            draft.near(
                several.mark, several.key, f"only the first, {names[0].text}: a cluster has one subnet"
            )
