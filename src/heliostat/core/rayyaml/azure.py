"""Ray's provider azure: `where: azure`."""

from __future__ import annotations

from collections.abc import Sequence

from heliostat.core.decode.log import Path
from heliostat.core.decode.tree import Scalar
from heliostat.core.draft import Draft
from heliostat.core.rayyaml.gcp import unknown
from heliostat.core.rayyaml.reader import Reader

_IMAGE = ("imagePublisher", "imageOffer", "imageSku", "imageVersion")
_SITE = (
    ("subscription_id", ("azure", "subscription")),
    ("resource_group", ("azure", "resource_group")),
    ("location", ("azure", "location")),
    ("subnet_id", ("azure", "network", "subnet")),
    ("msi_name", ("azure", "identity")),
    ("msi_identity_id", ("azure", "identity")),
)
_LOST = {
    "msi_resource_group": "`azure.identity` is looked for in `azure.resource_group`; name it by its whole id",
    "subnet_mask": "heliostat chooses the range of a network of its own; `azure.network` names yours",
    "unique_id": "heliostat makes its names unique itself",
}
_NO_ZONE = ("auto", "none")


def provider(keys: Reader, draft: Draft, nodes: Sequence[Path]) -> None:
    for theirs, ours in _SITE:
        if at := keys.take(theirs, "text"):
            draft.put(ours, at.value, at.mark, at.key)
    for theirs, why in _LOST.items():
        if at := keys.take(theirs, "text"):
            draft.lost(at.mark, at.key, why)
    if at := keys.take("msi_identity_principal_id", "text"):
        draft.ours(at.mark, at.key, "found by `azure.identity`")
    if (at := keys.take("use_external_head_ip", "flag")) and at.value:
        draft.lost(
            at.mark, at.key, "public addresses are for all nodes or for none: `azure.network.public_ip`"
        )
    if tags := keys.take("tags", "table"):
        texts = {name.text: part.text for name, part in tags.value if isinstance(part, Scalar)}
        draft.put(("tags",), texts, tags.mark, tags.key)
    zone = keys.take("availability_zone", "text")
    if zone and zone.value not in _NO_ZONE:
        for path in nodes:
            draft.put((*path, "zones"), _zones(zone.value), zone.mark, zone.key)


def node(keys: Reader, path: Path, draft: Draft) -> None:
    """One machine; everything of it stands under `azure_arm_parameters`."""
    if arm := keys.reader("azure_arm_parameters"):
        if size := arm.take("vmSize", "text"):
            draft.put((*path, "machine"), size.value, size.mark, size.key)
        _image(arm, path, draft)
        priority = arm.take("priority", "text")
        if priority and priority.value.lower() in ("spot", "low"):
            draft.put((*path, "spot"), True, priority.mark, priority.key)
        if billing := arm.reader("billingProfile"):
            price = billing.take("maxPrice", "text")
            if price and price.value != "-1":
                draft.lost(
                    price.mark, price.key, "spot machines cost at most the usual price; `budget` is the limit"
                )
            unknown(billing, draft)
        policy = arm.take("evictionPolicy", "text")
        if policy and policy.value.lower() != "delete":
            draft.lost(policy.mark, policy.key, "a machine that Azure takes back is removed")
        zone = arm.take("availability_zone", "text")
        if zone and zone.value in _NO_ZONE:
            _no_zone(path, draft)
        elif zone:
            draft.put((*path, "zones"), _zones(zone.value), zone.mark, zone.key)
        unknown(arm, draft)


def _no_zone(path: Path, draft: Draft) -> None:
    if draft.leaf((*path, "zones")):
        branch = draft.tree
        for part in path:
            branch = branch[part]
        del branch["zones"]


def _image(arm: Reader, path: Path, draft: Draft) -> None:
    parts = [arm.take(name, "text") for name in _IMAGE]
    given = [part for part in parts if part]
    if whole := arm.take("imageId", "text"):
        draft.put((*path, "vm_image"), whole.value, whole.mark, whole.key)
    elif given:
        words = [part.value if part else "latest" for part in parts]
        draft.put((*path, "vm_image"), ":".join(words), given[0].mark, given[0].key)


def _zones(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]
