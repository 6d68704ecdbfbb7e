"""The Compose ground: Ray nodes as containers of one Docker engine."""

from __future__ import annotations

import asyncio
import base64
import getpass
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from heliostat.core.checked import Checked
from heliostat.core.errors import HelioError
from heliostat.core.owner import Owner
from heliostat.core.resource import NODE, SERVICE, Outcome, Ref, Resource
from heliostat.core.spec import Spec
from heliostat.grounds.compose.want import NETWORK, VOLUME, want
from heliostat.shells.docker_cli import Docker, translate

if TYPE_CHECKING:
    from heliostat.engine.ports import Emit, Shell

_GONE = re.compile(r"[Nn]o such|not found|is already in progress")


class ComposeGround:
    """Implements Ground, Identity, Kinds, Tells, Services and Foresees."""

    def __init__(self) -> None:
        self._docker = Docker()
        self._spec: Spec | None = None
        self._emit: Emit = lambda _event: None

    @property
    def kinds(self) -> tuple[str, ...]:
        return (NODE, SERVICE, VOLUME, NETWORK)

    def hear(self, emit: Emit) -> None:
        """The Tells power."""
        self._emit = emit

    async def principal(self, spec: Spec) -> str:
        """The account on the engine's machine, as far as anybody can tell: an engine knows no users."""
        self._docker = Docker(spec.compose.context)
        self._spec = spec
        host = urlsplit(os.environ.get("DOCKER_HOST", ""))
        if host.scheme == "ssh" and host.username and not spec.compose.context:
            return f"docker:{host.username}"
        return f"docker:{getpass.getuser()}"

    def want(self, spec: Spec) -> tuple[Resource, ...]:
        return want(spec)

    async def find(self, owner: Owner) -> tuple[Ref, ...]:
        from heliostat.grounds.compose.find import listing

        return await listing(self._docker, owner)

    async def create(self, owner: Owner, wanted: Sequence[Resource]) -> AsyncIterator[Outcome]:
        from heliostat.grounds.compose.create import Making

        async with aclosing(Making(self._docker, owner, self._emit, self._spec).all(wanted)) as outcomes:
            async for outcome in outcomes:
                yield outcome

    async def delete(self, refs: Sequence[Ref]) -> AsyncIterator[Outcome]:
        """Containers first, all at once; then what they stood on."""
        remove = ("rm", "-fv")
        for kind, words in (
            (NODE, remove),
            (SERVICE, remove),
            (VOLUME, ("volume", "rm")),
            (NETWORK, ("network", "rm")),
        ):
            deeds = [self._remove(ref, words) for ref in refs if ref.kind == kind]
            for outcome in await asyncio.gather(*deeds):
                yield outcome

    async def _remove(self, ref: Ref, words: Sequence[str]) -> Outcome:
        try:
            result = await self._docker.run(*words, ref.id)
            said = result.err.decode(errors="replace")
            if result.code and not _GONE.search(said):
                raise translate(f"cannot remove {ref.key}", said)
        except HelioError as error:
            return Outcome(name=ref.name, error=error)
        return Outcome(name=ref.name, ref=ref)

    async def log(self, service: Ref) -> bytes:
        """The Services power."""
        result = await self._docker.run("logs", "--tail", "2000", service.id)
        return result.out + result.err

    @asynccontextmanager
    async def page(self, service: Ref, head: Ref) -> AsyncIterator[str]:
        """Each has one of its own, but for the store: a node makes one of what it holds."""
        from heliostat.grounds.compose.services import STORAGE
        from heliostat.grounds.compose.stored import browsed

        if service.key != STORAGE:
            yield service.facts["address"]
            return
        async with browsed(self._docker, head, service.facts["address"]) as address:
            yield address

    async def login(self, service: Ref) -> str | None:
        """A password or token is read where it was made; Prometheus asks for none."""
        from heliostat.grounds.compose.notebook import NOTEBOOK, TOKEN
        from heliostat.grounds.compose.services import GRAFANA, PASSWORD

        if service.key == NOTEBOOK:
            made = await self._docker.ask(
                "cannot read the notebook's token", "exec", service.id, "cat", TOKEN
            )
            return f"token {made.strip()}"
        if service.key != GRAFANA:
            return None
        made = await self._docker.ask("cannot read Grafana's password", "exec", service.id, "cat", PASSWORD)
        pair = f"admin:{made.strip()}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"

    async def foresee(self, owner: Owner, spec: Spec, *, everything: bool = False) -> Sequence[Checked]:
        """The Foresees power."""
        from heliostat.grounds.compose.foresee import foresee

        return await foresee(self._docker, spec, owner.id, everything=everything)

    def shell(self, node: Ref) -> AbstractAsyncContextManager[Shell]:
        from heliostat.shells.docker import DockerShell

        return nullcontext(DockerShell(self._docker, node.id, name=node.key, home=node.facts.get("home", "")))
