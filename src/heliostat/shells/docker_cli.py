"""The `docker` program: one call, its answer, and what its complaints mean."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from heliostat.core.errors import (
    Conflict,
    Denied,
    HelioError,
    MissingPart,
    NoCapacity,
    Quota,
    Unavailable,
    UsageError,
)
from heliostat.engine.ports import Result

_GPU = "`helio doctor` shows the GPUs of this machine; ask for fewer, or name them with `devices`"
_FULL = "remove what is not needed there (`docker system df` shows it), then run this again"
_COMPOSE = "install Compose 2.23.1 or newer: Debian's docker-compose-plugin or docker-compose, Docker Desktop"

# Words of Docker, what they mean to somebody who waits for a cluster, and what helps. The first fit counts.
_KNOWN: tuple[tuple[str, type[HelioError], str, str], ...] = (
    (r"permission denied.*(docker\.sock|daemon socket)", Denied, "you may not use this Docker engine",
     "add yourself to the group `docker` there, or use your own rootless engine"),
    (r"Cannot connect to the Docker daemon|error during connect|docker daemon is not running", Unavailable,
     "the Docker engine does not answer", "start it, or name another: `compose: {context: …}`, DOCKER_HOST"),
    (r"context \S+ (not found|does not exist)|context not found", UsageError,
     "there is no such Docker context", "`docker context ls` lists them"),
    (r"is not a docker command|unknown (shorthand )?flag|unknown command: docker compose", MissingPart,
     "Docker Compose is not installed here", _COMPOSE),
    (r"[Aa]dditional property content is not allowed|configs\.\S+ [Aa]dditional property", MissingPart,
     "this Docker Compose is too old", _COMPOSE),
    (r"could not select device driver", MissingPart, "this Docker engine cannot hand out NVIDIA GPUs",
     "install the NVIDIA container toolkit on its machine"),
    (r"nvidia-container-cli: .*(unknown device|device error)|no such device", NoCapacity,
     "there is no such GPU", _GPU),
    (r"gathering device information.*/dev/(kfd|dri)", NoCapacity, "there is no such AMD GPU", _GPU),
    (r"no space left on device", NoCapacity, "the engine's disk is full", _FULL),
    (r"address pools have been fully subnetted", Quota, "the engine has no address range left for a network",
     "`docker network prune` removes those that nobody uses"),
    (r"bind source path does not exist", UsageError, "a folder of `volumes` is not on the engine's machine",
     "make it there, or correct the path"),
    (r"[Mm]inimum memory limit|Range of CPUs", NoCapacity, "the engine refuses that size", "change it"),
    (r"already in use by container|network with name \S+ already exists|port is already allocated", Conflict,
     "something else has that name or port", "run this again"),
    (r"unauthorized|no basic auth credentials|authentication required", Denied,
     "the registry does not let you in", "correct the login that `registry` names, or its secret"),
    (r"pull access denied|manifest (for \S+ )?(unknown|not found)|No such image|repository does not exist",
     UsageError, "the image cannot be had",
     "correct `image`, log in (`docker login`), or build it: `helio image build`"),
    (r"image does not exist locally", UsageError, "there is no such image on this engine",
     "build it first, with the same name: `helio image build --name …`"),
    (r"dial tcp|lookup \S+|TLS handshake|Client\.Timeout|i/o timeout|registry", MissingPart,
     "the image is not here, and its registry cannot be reached", "build or load it: `docker load -i FILE`"),
)  # fmt: skip
_NOISE = re.compile(r"^(\s*(Container|Network|Volume|Image) \S+ +\w+|time=.*level=warning.*|\s*)$")


def translate(what: str, text: str) -> HelioError:
    """The error that this output of `docker` is.

    >>> type(translate("x", "Cannot connect to the Docker daemon at unix:///x")).__name__
    'Unavailable'
    """
    said = last_words(text)
    for pattern, kind, meaning, fix in _KNOWN:
        if re.search(pattern, text, re.DOTALL):
            return kind(f"{what}: {meaning}", why=said, fix=fix)
    return Conflict(what, why=said, fix="what Docker says above is the reason")


def last_words(text: str, lines: int = 3) -> str:
    """The end of what it said, without its progress."""
    kept = [line.strip() for line in text.splitlines() if not _NOISE.match(line)]
    return "\n".join(kept[-lines:]) or "it said nothing"


@dataclass(frozen=True, slots=True)
class Docker:
    """An engine, as DOCKER_HOST, the current context, or a named context leads to it."""

    context: str | None = None
    config: str | None = None  # the folder of the `docker` program's settings, where it is another

    @property
    def env(self) -> dict[str, str]:
        """What a call finds in its environment."""
        return {**os.environ, **({"DOCKER_CONFIG": self.config} if self.config else {})}

    def words(self, *more: str) -> list[str]:
        return ["docker", *(("--context", self.context) if self.context else ()), *more]

    async def run(
        self, *words: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, patience: float = 600.0
    ) -> Result:
        """One call to its end; cancelling ends the program."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self.words(*words),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**self.env, **(env or {})},
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise MissingPart(
                "there is no `docker` here", why="containers are made by it", fix="install the Docker CLI"
            ) from error
        try:
            async with asyncio.timeout(patience):
                out, err = await process.communicate(stdin)
        except BaseException as error:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            if isinstance(error, TimeoutError):
                text = f"`docker {words[0]}` did not end within {patience:.0f} s"
                raise Unavailable(text, why="the engine is busy or hangs") from None
            raise
        return Result(process.returncode or 0, out, err)

    async def ask(self, what: str, *words: str, stdin: bytes = b"") -> str:
        """Its output; anything but success is an error of ours that begins with `what`."""
        result = await self.run(*words, stdin=stdin)
        if result.code:
            raise translate(what, result.err.decode(errors="replace"))
        return result.out.decode(errors="replace")

    async def inspect(self, kind: str, names: Sequence[str]) -> list[dict[str, Any]]:
        """All that is known about these; what has gone meanwhile is left out."""
        if not names:
            return []
        result = await self.run(kind, "inspect", *names)
        text = result.err.decode(errors="replace")
        if result.code and not re.search(r"[Nn]o such|not found", text):
            raise translate(f"cannot look at {kind}s", text)
        found = json.loads(result.out or b"[]")
        return found if isinstance(found, list) else []
