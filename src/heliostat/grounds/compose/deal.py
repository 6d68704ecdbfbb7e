"""Which GPU of the engine's machine is whose: each device goes to one node, in the file's order. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from heliostat.core.errors import UsageError
from heliostat.core.names import nodes_of
from heliostat.core.spec import Gpus, Spec

FIRST_RENDER = 128  # /dev/dri/renderD128 is the first GPU of AMD's


def deal(spec: Spec) -> dict[str, tuple[str, ...]]:
    """The devices of each node that has any, by number or UUID.

    >>> from heliostat.core.spec import Count, Group, Node
    >>> two = Group(name="gpu", count=Count(low=2, high=2), node=Node(gpus=Gpus(count=1)))
    >>> deal(Spec(cluster="c", workers=(two,)))
    {'gpu-1': ('0',), 'gpu-2': ('1',)}
    """
    asked = {name: node.gpus for name, node, _ in nodes_of(spec) if node.gpus and node.gpus.count}
    named = _named(asked)
    dealt: dict[str, tuple[str, ...]] = {}
    for vendor in ("nvidia", "amd"):
        next_ = _Numbers({device for device in named if vendor_of(asked[named[device]]) == vendor})
        for name, gpus in asked.items():
            if vendor_of(gpus) == vendor:
                dealt[name] = gpus.devices or next_.take(int(gpus.count))
    return {name: dealt[name] for name in asked}


def vendor_of(gpus: Gpus) -> str:
    """Whose; NVIDIA's where the file does not say."""
    return gpus.vendor or "nvidia"


def render_node(device: str) -> str:
    """The file by which a container gets one GPU of AMD's.

    >>> render_node("1"), render_node("/dev/dri/renderD130")
    ('/dev/dri/renderD129', '/dev/dri/renderD130')
    """
    return f"/dev/dri/renderD{FIRST_RENDER + int(device)}" if device.isdigit() else device


def _named(asked: Mapping[str, Gpus]) -> dict[str, str]:
    """Each device that the file names, and the node that it is for."""
    owners: dict[str, str] = {}
    for name, gpus in asked.items():
        for device in gpus.devices:
            if device in owners:
                raise UsageError(
                    f"GPU {device} is promised to {owners[device]} and to {name}",
                    why="every node of a group would get the same `devices`",
                    fix="leave `devices` out: they are dealt out one after the other",
                )
            owners[device] = name
    return owners


class _Numbers:
    """Free numbers in order."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._at = 0

    def take(self, count: int) -> tuple[str, ...]:
        return tuple(self._next() for _ in range(count))

    def _next(self) -> str:
        while str(self._at) in self._taken:
            self._at += 1
        self._at += 1
        return str(self._at - 1)
