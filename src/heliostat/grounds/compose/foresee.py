"""Whether a file can come true on this engine, as far as that can be known before anything is made."""

from __future__ import annotations

from collections.abc import Iterator

from heliostat.core.checked import Checked, Mark
from heliostat.core.errors import Conflict, NoCapacity
from heliostat.core.names import nodes_of
from heliostat.core.spec import Spec
from heliostat.grounds.compose import machine
from heliostat.grounds.compose.deal import deal, vendor_of
from heliostat.grounds.compose.expose import port_of
from heliostat.grounds.compose.want import image_of
from heliostat.shells.docker_cli import Docker

_NAMES = {"nvidia": "NVIDIA", "amd": "AMD"}
_LOOK = {"nvidia": machine.nvidia, "amd": machine.amd}


async def foresee(docker: Docker, spec: Spec, project: str, *, everything: bool = False) -> list[Checked]:
    """GPUs that are asked for (with `everything`, all that there are), and ports that are to be published."""
    found: list[Checked] = []
    asked = {name: node.gpus for name, node, _ in nodes_of(spec) if node.gpus and node.gpus.count}
    dealt = deal(spec)
    for vendor, look in _LOOK.items():
        names = [name for name, gpus in asked.items() if vendor_of(gpus) == vendor]
        if names or everything:
            gpus = await look(docker, image_of(spec, spec.head))
            found += _devices(vendor, gpus, {name: dealt[name] for name in names})
    if spec.expose:
        others = await machine.taken(docker, project)
        found += _ports(spec, others)
    return found


def _devices(vendor: str, gpus: machine.Gpus, dealt: dict[str, tuple[str, ...]]) -> Iterator[Checked]:
    """How many there are, and whose each is."""
    what = f"{_NAMES[vendor]} GPUs"
    if not gpus.known:
        text = "nobody could look: the engine is elsewhere, and the file's image is not there to look with"
        yield Checked(what, Mark.WARN, text, "`docker pull` the image there, or run helio on that machine")
        return
    count = len(gpus.devices)
    yield Checked(
        what, Mark.OK, f"{count} on the engine's machine" if count else "none on the engine's machine"
    )
    lacking: dict[str, list[str]] = {}
    for name, devices in dealt.items():
        for one in devices:
            device = gpus.find(one)
            if device is None:
                lacking.setdefault(name, []).append(one)
            else:
                yield Checked(name, Mark.OK, f"{_NAMES[vendor]} GPU {one}: {device.text}")
    for name, missing in lacking.items():
        text = f"no {_NAMES[vendor]} GPU {', '.join(missing)} for it"
        here = ", ".join(f"{one.number} ({one.text})" for one in gpus.devices)
        why = (
            f"the engine's machine has {here}"
            if here
            else f"the engine's machine has no {_NAMES[vendor]} GPU"
        )
        fix = "ask for fewer, or name those that are there with `devices`"
        yield Checked(name, Mark.BAD, text, fix, NoCapacity(f"{name}: {text}", why=why, fix=fix))


def _ports(spec: Spec, others: dict[int, str]) -> Iterator[Checked]:
    """Ports of the engine's machine that `expose` asks for."""
    for service in sorted(spec.expose):
        port = port_of(service)
        if whose := others.get(port):
            text = f"port {port}, for the {service}, is taken by {whose}"
            fix = f"stop that one, or leave `expose.{service}` out: `helio open {service}` needs no port"
            yield Checked(
                "ports", Mark.BAD, text, fix, Conflict(text, why="it publishes it already", fix=fix)
            )
        else:
            yield Checked("ports", Mark.OK, f"{port}, for the {service}, is free of other containers")
