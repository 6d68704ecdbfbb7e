"""The SSH ground: one Ray node on each host that is borrowed, all hosts at once."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TYPE_CHECKING

from heliostat.core.errors import HelioError, LeftBehind, Unavailable, UsageError
from heliostat.core.event import Level, Note
from heliostat.core.owner import Owner
from heliostat.core.resource import NODE, Outcome, Ref, Resource
from heliostat.core.spec import Spec
from heliostat.engine.outcomes import as_they_come
from heliostat.grounds.ssh.deal import deal, hosts_of
from heliostat.grounds.ssh.hosts import Hosts, ask_all, base_order, final
from heliostat.grounds.ssh.refs import SILENT, refs, silent
from heliostat.grounds.ssh.want import DIRECTORY, FILES, want
from heliostat.ray.agent import verdict

if TYPE_CHECKING:
    from heliostat.engine.ports import Emit, Shell


LATELY = 3.0  # seconds for which a listing tells a create where the head is, and whose the token is


class SshGround:
    """Implements Ground, Identity, Kinds and Tells."""

    def __init__(self, spec: Spec | None = None) -> None:
        self._spec = spec
        self._hosts: Hosts | None = None
        self._emit: Emit = lambda _event: None
        self._seen: dict[Owner, tuple[float, tuple[Ref, ...]]] = {}
        self._joined: dict[str, tuple[str, ...]] = {}  # a cluster's hosts beyond the file's, as hosts told

    @property
    def kinds(self) -> tuple[str, ...]:
        return (DIRECTORY, FILES, NODE)

    def hear(self, emit: Emit) -> None:
        self._emit = emit

    async def principal(self, spec: Spec) -> str:
        """The account on the hosts: whoever can log in as it can manage its clusters."""
        self._spec = spec
        hosts = hosts_of(spec)
        if not hosts:
            return f"ssh:{spec.ssh.user or ''}"
        user = await self.hosts.user(hosts[0])
        await self.hosts.begin(hosts[0])
        return f"ssh:{user}"

    @property
    def hosts(self) -> Hosts:
        if self._hosts is None:
            spec = self._known()
            self._hosts = Hosts(spec.ssh, spec.cluster, self._tell)
        return self._hosts

    def close(self) -> None:
        """End the connections now, rather than with this process."""
        if self._hosts is not None:
            self._hosts.close()

    def _known(self) -> Spec:
        if self._spec is None:
            raise UsageError(
                "no hosts are known", why="the file names them", fix="name the file: helio -f FILE …"
            )
        return self._spec

    def _tell(self, text: str) -> None:
        self._emit(Note(text=text, level=Level.WARN))

    def want(self, spec: Spec) -> tuple[Resource, ...]:
        return want(spec)

    async def find(self, owner: Owner) -> tuple[Ref, ...]:
        """Ask every host of the file, and then those that the answers name beside them."""
        found: list[Ref] = []
        failed: dict[str, HelioError] = {}
        asked: set[str] = set()
        todo = {*hosts_of(self._known()), *self._joined.get(owner.cluster or "", ())}
        named: set[str] = set()
        while todo:
            asked |= todo
            found += await self._ask(owner, todo, failed, named)
            todo = named - asked
        if owner.cluster:
            self._joined[owner.cluster] = tuple(sorted(named))
        if failed and len(failed) == len(asked):
            raise final(next(iter(failed.values())))
        every = (*found, *self._silent(owner, failed, named))
        if owner.cluster:
            self._seen[owner] = (time.monotonic(), every)
        return every

    async def find_nodes(self, owner: Owner, keys: Sequence[str]) -> tuple[Ref, ...]:
        """Ask only the hosts that the file gives to these nodes; one that is silent has said nothing."""
        dealt = deal(self._known())
        return tuple(await self._ask(owner, {dealt[key] for key in keys if key in dealt}, {}, set()))

    async def _ask(
        self, owner: Owner, hosts: Iterable[str], failed: dict[str, HelioError], named: set[str]
    ) -> list[Ref]:
        """What these hosts have; errors and the hosts that they know of go into the last two."""
        found: list[Ref] = []
        orders = {host: [{**base_order(owner, host), "do": "list"}] for host in sorted(hosts)}
        for host, answers in (await ask_all(self.hosts, orders, pythons=self._pythons())).items():
            if isinstance(answers, HelioError):
                failed[host] = answers
            elif answers is not None:
                answer = verdict(answers[0], host, "cannot look for what is yours")
                found += refs(owner, host, answer)
                named |= set(answer["hosts"])
        return found

    async def _lately(self, owner: Owner) -> tuple[Ref, ...]:
        """What was listed a moment ago: whoever creates has just looked."""
        at, refs = self._seen.get(owner, (float("-inf"), ()))
        return refs if time.monotonic() < at + LATELY else await self.find(owner)

    def _pythons(self) -> tuple[str, ...]:
        spec = self._known()
        paths = [spec.python, spec.head.python, *(group.node.python for group in spec.workers)]
        return tuple(dict.fromkeys(path for path in paths if path and "/" in path))

    def _silent(self, owner: Owner, failed: dict[str, HelioError], named: Iterable[str]) -> Iterable[Ref]:
        """Hosts that do not answer and may carry something: those the file uses, or that the others named."""
        if owner.cluster is None:
            for host, error in failed.items():
                self._tell(f"{host} was not looked at: {error.what}")
            return
        wanted = {one.body["host"]: one for one in want(self._known()) if one.kind == DIRECTORY}
        for host, error in failed.items():
            if host in wanted or host in named:
                yield from silent(owner, host, want(self._known()), error)

    async def create(self, owner: Owner, wanted: Sequence[Resource]) -> AsyncIterator[Outcome]:
        """Directories, files, then all nodes; workers wait for the head's port, not for the head."""
        from heliostat.grounds.ssh import create as making
        from heliostat.grounds.ssh.copies import Copying

        homes, files, nodes = ([one for one in wanted if one.kind == kind] for kind in self.kinds)
        known = await self._lately(owner)
        work = making.Making(owner, self.hosts, known, self._emit)
        if homes:
            token = await self._token(known) or making.new_token()
            async with aclosing(work.directories(homes, token)) as outcomes:
                async for outcome in outcomes:
                    yield outcome
        if files:
            copying = Copying(owner, self.hosts, self._emit)
            deeds = [making.attempt(one.name, copying.make(one)) for one in files]
            async with aclosing(as_they_come(deeds)) as outcomes:
                async for outcome in outcomes:
                    yield outcome
        if nodes:
            async with aclosing(work.nodes(nodes)) as outcomes:
                async for outcome in outcomes:
                    yield outcome

    async def _token(self, known: Sequence[Ref]) -> str:
        """The cluster's own, where a host has it already."""
        for ref in known:
            if ref.kind == DIRECTORY and ref.facts.get("home"):
                async with self.hosts.shell(ref.facts["host"]) as shell:
                    result = await shell.run(["cat", f"{ref.facts['home']}/token"])
                if result.code == 0 and result.out.strip():
                    return result.out.decode().strip()
        return ""

    async def delete(self, refs: Sequence[Ref]) -> AsyncIterator[Outcome]:
        """Nodes, then files, then directories; all hosts at once."""
        self._seen.clear()
        for ref in refs:
            if ref.kind == DIRECTORY:
                self.hosts.leave(ref.facts.get("host", ""))
        for kind, do in ((NODE, "stop"), (FILES, "copy-drop"), (DIRECTORY, "remove")):
            deeds = [self._removal(ref, do) for ref in refs if ref.kind == kind]
            async with aclosing(as_they_come(deeds)) as outcomes:
                async for outcome in outcomes:
                    yield outcome

    async def _removal(self, ref: Ref, do: str) -> Outcome:
        host = ref.facts.get("host", "")
        target = ref.facts.get("target", "")
        order = {**base_order(ref.owner, host), "do": do, "key": ref.key, "target": target}
        try:
            pythons = [ref.facts["python"]] if "python" in ref.facts else self._pythons()
            answers = await self.hosts.ask(host, [order], pythons=pythons)
            if answers is not None:
                verdict(answers[0], host, f"cannot remove {ref.key}")
        except Unavailable as error:
            left = LeftBehind(
                f"{ref.key} may still be there: {error.what}",
                why=error.why,
                fix=f"`helio down` again once {host} answers",
            )
            return Outcome(name=ref.name, error=left if SILENT in ref.facts else final(error))
        except HelioError as error:
            return Outcome(name=ref.name, error=error)
        return Outcome(name=ref.name, ref=ref)

    def meeting(self, node: Ref) -> str:
        """Where Ray's nodes reach the head, other nodes of the cluster do."""
        return node.facts.get("gcs", "").rpartition(":")[0]

    def shell(self, node: Ref) -> AbstractAsyncContextManager[Shell]:
        facts = node.facts
        return self.hosts.shell(facts["host"], home=facts.get("home", ""), python=facts.get("python", ""))
