"""Deal this machine's GPUs to the nodes that share it, so that no device is promised twice."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from heliostat.core.errors import NoCapacity
from heliostat.core.names import nodes_of
from heliostat.core.resource import HEAD
from heliostat.core.spec import Gpus, Node, Spec

Turn = Mapping[str, Any]  # what one node must know of the others: plain data, for a resource's body


def turns(spec: Spec) -> dict[str, Turn]:
    """For each node how many devices are dealt before its own, and which ones the file names for somebody.

    >>> from heliostat.core.spec import Count, Group
    >>> group = Group(name="gpu", count=Count(low=2, high=2), node=Node(gpus=Gpus(count=2)))
    >>> dealt = turns(Spec(cluster="c", workers=(group,)))
    >>> [dealt[name]["before"] for name in ("gpu-1", "gpu-2", "head")]
    [0, 2, 4]
    """
    named = sorted({one for _, node, _ in nodes_of(spec) if node.gpus for one in node.gpus.devices})
    found: dict[str, Turn] = {}
    before = 0
    for name, node, _ in nodes_of(spec):
        found[name] = {"before": before, "named": named}
        if node.gpus and not node.gpus.devices:
            before += int(node.gpus.count)
    if spec.head.gpus is None:  # it takes what nobody asked for
        found[HEAD] = {"before": before, "named": named}
    return found


def dealt(node: Node, name: str, turn: Turn) -> Node:
    """The node with the devices that are its own."""
    asked = node.gpus
    if asked is not None and (asked.devices or not asked.count):
        return node
    if asked is None and name != HEAD:
        return replace(node, gpus=Gpus(count=0))
    vendor = asked.vendor if asked else None
    here = devices(vendor)
    free = [one for one in here if one not in turn["named"]][turn["before"] :]
    if asked is None:
        return replace(node, gpus=Gpus(count=len(free), devices=tuple(free)))
    count = int(asked.count)
    if len(free) < count:
        why = f"this machine has {len(here)}" + (f", {turn['before']} of them for others" if here else "")
        fix = "ask for fewer, or name them with `devices` if heliostat does not see them"
        raise NoCapacity(f"{name} wants {count} GPU{'s' if count > 1 else ''}", why=why, fix=fix)
    return replace(node, gpus=replace(asked, devices=tuple(free[:count])))


def devices(vendor: str | None) -> list[str]:
    """The GPUs that this user's programs may see here."""
    amd = vendor == "amd"
    given = os.environ.get("HIP_VISIBLE_DEVICES" if amd else "CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [one.strip() for one in given.split(",") if one.strip() not in ("", "-1", "NoDevFiles")]
    folder, form = ("/dev/dri", r"renderD\d+") if amd else ("/dev", r"nvidia\d+")
    try:
        found = sum(bool(re.fullmatch(form, name)) for name in os.listdir(folder))
    except OSError:
        return []
    return [str(number) for number in range(found)]
