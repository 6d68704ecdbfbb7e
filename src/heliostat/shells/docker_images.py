"""Build and push the image that nodes run, with the engine that the `docker` program reaches."""

from __future__ import annotations

import asyncio
import hashlib
import os
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
        path = Path(spec.folder or ".", os.path.expanduser(spec.dockerfile))
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            fix = "correct `dockerfile`; it is relative to the file that names it"
            raise UsageError(f"{path} cannot be read", why=str(error), fix=fix) from error
        return Recipe(text, str(path.parent), named(spec, text))
    if not spec.setup:
        raise UsageError(
            "there is nothing to build",
            why=f"the file has neither `dockerfile` nor `setup`, and {base} is there already",
            fix="`dockerfile: ./Dockerfile` names what to build",
        )
    text = steps(base, spec.setup)
    return Recipe(text, "", named(spec, text))


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


async def push(docker: Docker, name: str, heard: Heard) -> None:
    await _told(docker, ["push", name], b"", heard, f"cannot push {name}")


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
        env={**os.environ, "BUILDKIT_PROGRESS": "plain"},
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
