"""The file's `files` on each host: their contents travel by the engine's sync, only what is not there yet."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heliostat.core.errors import Unavailable, UsageError
from heliostat.core.owner import Owner
from heliostat.core.resource import Ref, Resource
from heliostat.engine.ports import Emit
from heliostat.engine.sync.copy import Source, Ways, push_to, source_of
from heliostat.engine.sync.digests import TRIES, changing
from heliostat.engine.sync.feed import ChangedMeanwhileError
from heliostat.engine.sync.work import tell
from heliostat.grounds.ssh.hosts import Hosts, base_order, no_python
from heliostat.grounds.ssh.refs import refs
from heliostat.ray.agent import verdict
from heliostat.ray.label import label_of


class Copying:
    """One `create`: what is to be copied is looked at once, for all hosts."""

    def __init__(self, owner: Owner, hosts: Hosts, emit: Emit) -> None:
        self._owner = owner
        self._hosts = hosts
        self._emit = emit
        self._sources: dict[str, asyncio.Future[Source]] = {}

    def shell(self, node: Ref) -> Any:
        """What the engine's sync reaches a host by: its Python is the one that our agent runs with."""
        return self._hosts.shell(node.facts["host"], home=node.facts["home"])

    async def make(self, wanted: Resource) -> Ref:
        host, source = wanted.body["host"], wanted.body["source"]
        if not os.path.lexists(source):
            raise UsageError(
                f"files: {source} does not exist",
                why=f"{wanted.body['target']} is to be a copy of it",
                fix="correct the path; it is relative to the file that names it",
            )
        label = asdict(label_of(self._owner, wanted, {"host": host}))
        told = {"target": wanted.body["target"], "folder": os.path.isdir(source), "label": label}
        begun = (await self._order(host, {"do": "copy-begin", **told}))[0]
        facts = {"home": begun["home"], "host": host, "python": self._hosts.pythons.get(host, "python3")}
        there = Ref(kind=wanted.kind, key=host, id=wanted.key, owner=self._owner, facts=facts)
        await self._send(there, source, begun["at"])
        answers = await self._order(host, {"do": "copy-finish", **told}, {"do": "list"})
        for ref in refs(self._owner, host, answers[1]):
            if ref.name == wanted.name:
                return ref
        raise Unavailable(f"{wanted.name} vanished while it was made", why=f"{host} does not list it")

    async def _order(self, host: str, *orders: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        answers = await self._hosts.ask(host, [{**base_order(self._owner, host), **one} for one in orders])
        if answers is None:
            raise no_python(host)
        return [verdict(answer, host, "cannot copy files") for answer in answers]

    async def _send(self, there: Ref, source: str, at: str) -> None:
        """Again when a file changes while it is read: then for all hosts."""
        coming = None
        for _ in range(TRIES):
            coming = self._look(source, coming)
            try:
                await push_to(Ways(self, self._emit, [there]), there, coming, at, delete=True)
            except ChangedMeanwhileError as error:
                changed = error.path
            else:
                return
        raise changing(changed)

    def _look(self, source: str, stale: asyncio.Future[Source] | None) -> asyncio.Future[Source]:
        """The look of now; `stale` is one that was wrong in the end."""
        if self._sources.get(source) is stale:
            self._sources[source] = asyncio.ensure_future(self._looked(source))
        return self._sources[source]

    async def _looked(self, source: str) -> Source:
        found = await asyncio.to_thread(source_of, Path(source))
        tell(self._emit, found.found)
        return found
