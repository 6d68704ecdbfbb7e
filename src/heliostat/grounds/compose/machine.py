"""What the engine's machine has: GPUs and open ports; asked of that machine, here or far away."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from heliostat.grounds.compose.deal import FIRST_RENDER
from heliostat.shells.docker_cli import Docker
from heliostat.shells.docker_images import there

QUERY = ("nvidia-smi", "--query-gpu=index,uuid,name", "--format=csv,noheader")
# A container with the engine's socket, a driver, Windows' subsystem for Linux, a Jetson.
_HINTS = ("/.dockerenv", "/proc/driver/nvidia", "/dev/dxg", "/dev/nvmap")
PATIENCE = 20.0  # seconds; a driver that wakes up takes some
_BESIDE = "/helio-dev"  # where a one-shot container sees the machine's devices, read only


@dataclass(frozen=True, slots=True)
class Device:
    number: str
    names: tuple[str, ...]  # all that a file may call it
    text: str


@dataclass(frozen=True, slots=True)
class Gpus:
    """The devices of one vendor; `known` says whether anybody could look."""

    known: bool
    devices: tuple[Device, ...] = ()

    def find(self, name: str) -> Device | None:
        return next((one for one in self.devices if name in one.names), None)


async def local(docker: Docker) -> bool:
    """Whether the engine is on this machine."""
    host = "" if docker.context else os.environ.get("DOCKER_HOST", "")
    if not host:
        result = await docker.run("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
        host = result.out.decode(errors="replace").strip()
    return urlsplit(host).scheme in ("unix", "npipe", "")


async def nvidia(docker: Docker, image: str) -> Gpus:
    """By NVIDIA's own program: here, or in a container that the engine gives all GPUs to."""
    here = await local(docker)
    if here and shutil.which(QUERY[0]):
        said = await _said(QUERY)
    elif here and not _may_have():
        return Gpus(known=True)  # no driver, hence no GPU that could be handed out
    elif await there(docker, image):
        once = (
            "run",
            "--rm",
            "--gpus",
            "all",
            "--network",
            "none",
            "--entrypoint",
            QUERY[0],
            image,
            *QUERY[1:],
        )
        said = await _said(docker.words(*once))
    else:
        return Gpus(known=False)
    return Gpus(known=said is not None, devices=tuple(cards(said or "")))


def _may_have() -> bool:
    """Whether there may be a driver that is only not seen: in a container, or without its program on PATH."""
    return any(Path(path).exists() for path in _HINTS)


def cards(text: str) -> list[Device]:
    """What the program said.

    >>> [(one.number, one.text) for one in cards("0, GPU-8f1c, Tesla T4\\n1, GPU-77aa, Tesla T4\\n")]
    [('0', 'Tesla T4'), ('1', 'Tesla T4')]
    """
    found = []
    for line in text.splitlines():
        number, _, rest = line.partition(",")
        uuid, _, name = rest.partition(",")
        if number.strip().isdigit() and uuid.strip():
            names = (number.strip(), uuid.strip())
            found.append(Device(number.strip(), names, name.strip()))
    return found


async def amd(docker: Docker, image: str) -> Gpus:
    """By the files that the kernel's driver makes."""
    if await local(docker):
        return Gpus(known=True, devices=tuple(render_nodes(_list("/dev"), _list("/dev/dri"))))
    if not await there(docker, image):
        return Gpus(known=False)
    look = f"ls {_BESIDE}; echo; ls {_BESIDE}/dri 2>/dev/null; true"
    once = (
        "run",
        "--rm",
        "--network",
        "none",
        "-v",
        f"/dev:{_BESIDE}:ro",
        "--entrypoint",
        "sh",
        image,
        "-c",
        look,
    )
    said = await _said(docker.words(*once))
    above, _, below = (said or "").partition("\n\n")
    return Gpus(known=said is not None, devices=tuple(render_nodes(above.split(), below.split())))


def render_nodes(dev: Sequence[str], dri: Sequence[str]) -> list[Device]:
    """Each is one GPU, where the driver for computing is there at all.

    >>> [one.number for one in render_nodes(["kfd", "dri"], ["card0", "renderD129", "renderD128"])]
    ['0', '1']
    """
    if "kfd" not in dev:
        return []
    numbers = sorted(int(found[1]) for name in dri if (found := re.fullmatch(r"renderD(\d+)", name)))
    return [
        Device(str(one - FIRST_RENDER), (str(one - FIRST_RENDER), f"/dev/dri/renderD{one}"), f"renderD{one}")
        for one in numbers
    ]


async def taken(docker: Docker, ours: str) -> dict[int, str]:
    """Ports that other containers of the engine publish, and whose they are."""
    form = '{{.Names}}\t{{.Label "com.docker.compose.project"}}\t{{.Ports}}'
    text = await docker.ask("cannot list what is there", "ps", "--format", form)
    found: dict[int, str] = {}
    for line in text.splitlines():
        name, project, ports = line.split("\t")
        if project != ours:
            whose = f"the container {name}" + (f" of the project {project}" if project else "")
            found |= {int(port): whose for port in re.findall(r":(\d+)->", ports)}
    return found


def _list(folder: str) -> list[str]:
    try:
        return [path.name for path in Path(folder).iterdir()]
    except OSError:
        return []


async def _said(words: Sequence[str]) -> str | None:
    """What a program says; nothing when it fails."""
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except OSError:
        return None
    try:
        async with asyncio.timeout(PATIENCE):
            out, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return None
    return out.decode(errors="replace") if process.returncode == 0 else None
