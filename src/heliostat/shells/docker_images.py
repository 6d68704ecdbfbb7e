"""Build and push the image that nodes run, with the engine that the `docker` program reaches."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from heliostat.core.errors import UsageError
from heliostat.core.spec import Spec
from heliostat.shells.docker_cli import Docker, translate

Heard = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an image is built from."""

    text: str  # of the Dockerfile
    context: str  # the folder that it may copy from; empty: none
    name: str


def recipe(spec: Spec, base: str) -> Recipe:
    """The file's Dockerfile, or its image with the commands of `setup` run once and for all."""
    if spec.dockerfile:
        return from_dockerfile(spec, spec.dockerfile)
    if not spec.setup:
        raise UsageError(
            "there is nothing to build",
            why=f"the file has neither `dockerfile` nor `setup`, and {base} is there already",
            fix="`dockerfile: ./Dockerfile` names what to build",
        )
    text = steps(base, spec.setup)
    return Recipe(text, "", named(spec, text))


def from_dockerfile(spec: Spec, dockerfile: str) -> Recipe:
    """A Dockerfile that the file names, with the folder that it stands in."""
    path = Path(spec.folder or ".", os.path.expanduser(dockerfile))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fix = "correct `dockerfile`; it is relative to the file that names it"
        raise UsageError(f"{path} cannot be read", why=str(error), fix=fix) from error
    return Recipe(text, str(path.parent), named(spec, text))


def steps(base: str, setup: Sequence[str]) -> str:
    """A Dockerfile of one step for each command, so that a change builds only what follows it.

    >>> print(steps("lab/ray:1", ["pip install torch"]))
    FROM lab/ray:1
    USER root
    RUN pip install torch
    <BLANKLINE>
    """
    return "\n".join([f"FROM {base}", "USER root", *(f"RUN {command}" for command in setup), ""])


def named(spec: Spec, text: str) -> str:
    """A name of the cluster's own; another Dockerfile, another name."""
    return f"heliostat/{spec.cluster.lower()}:{hashlib.sha256(text.encode()).hexdigest()[:12]}"


async def build(docker: Docker, what: Recipe, heard: Heard, *, name: str = "") -> str:
    """Build it, telling what the engine tells; the image's name."""
    name = name or what.name
    # The Dockerfile comes by standard input where there is nothing to copy from.
    source = ["-f", "-", what.context] if what.context else ["-"]
    await _told(docker, ["build", "-t", name, *source], what.text.encode(), heard, f"cannot build {name}")
    return name


def steps_of(data: bytes) -> tuple[int, int]:
    """At which step of how many a build is, by the last word on it; (0, 0) without one.

    >>> steps_of(b"Step 2/7 : RUN pip install torch"), steps_of(b"#5 [3/4] RUN true"), steps_of(b"ok")
    ((2, 7), (3, 4), (0, 0))
    """
    found = re.findall(rb"(?:^Step |\[(?:[\w-]+ +)?)(\d+)/(\d+)", data, re.MULTILINE)
    return (int(found[-1][0]), int(found[-1][1])) if found else (0, 0)


async def push(docker: Docker, name: str, heard: Heard) -> None:
    await _told(docker, ["push", name], b"", heard, f"cannot push {name}")


async def pull(docker: Docker, name: str, tell: Callable[[int, int], None]) -> None:
    """Fetch it from its registry, telling how many of its layers are here, and of how many."""
    layers = Layers()

    def heard(data: bytes) -> None:
        if layers.hear(data):
            tell(layers.here, layers.all)

    await _told(docker, ["pull", name], b"", heard, f"cannot pull {name}")


class Layers:
    """What `docker pull` says of an image's layers.

    >>> layers = Layers()
    >>> layers.hear(b"a1b2c3d4e5f6: Pulling fs layer%c0a1b2c3d4e5f: Already exists%ca1b2c3d4" % (10, 10))
    True
    >>> (layers.here, layers.all), layers.hear(b"e5f6: Pull complete%c" % 10), layers.here
    ((1, 2), True, 2)
    """

    def __init__(self) -> None:
        self._states: dict[str, bool] = {}
        self._rest = b""

    @property
    def all(self) -> int:
        return len(self._states)

    @property
    def here(self) -> int:
        return sum(self._states.values())

    def hear(self, data: bytes) -> bool:
        """Whether that changed anything."""
        before = (self.here, self.all)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            layer, _, state = line.decode(errors="replace").strip().partition(": ")
            if re.fullmatch(r"[0-9a-f]{12}", layer):
                self._states[layer] = state in ("Pull complete", "Already exists")
        return before != (self.here, self.all)


async def there(docker: Docker, name: str) -> bool:
    """Whether the engine has it."""
    return (await docker.run("image", "inspect", "--format", "{{.Id}}", name)).code == 0


async def _told(docker: Docker, words: Sequence[str], stdin: bytes, heard: Heard, what: str) -> None:
    """Run it with its words passed on as they come: a build may take many minutes."""
    process = await asyncio.create_subprocess_exec(
        *docker.words(*words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**docker.env, "BUILDKIT_PROGRESS": "plain"},
        start_new_session=True,
    )
    said = bytearray()
    try:
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.write(stdin)
                await process.stdin.drain()
            process.stdin.close()
        while process.stdout and (data := await process.stdout.read(1 << 16)):
            said += data
            del said[:-20_000]
            heard(data)
        code = await process.wait()
    except BaseException:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if code:
        raise translate(what, said.decode(errors="replace"))
