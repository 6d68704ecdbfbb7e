"""Make directories and start nodes on hosts, all hosts at once."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from heliostat.core.errors import HelioError, Unavailable, UsageError
from heliostat.core.owner import Owner
from heliostat.core.resource import HEAD, NODE, Digests, Outcome, Ref, Resource
from heliostat.core.spec import Gpus, Node
from heliostat.engine.outcomes import as_they_come
from heliostat.engine.ports import Emit
from heliostat.grounds.ssh.hosts import Hosts, base_order, final, no_python
from heliostat.grounds.ssh.prepare import prepare, set_up
from heliostat.grounds.ssh.refs import SILENT, refs
from heliostat.grounds.ssh.want import digest
from heliostat.ray import bootstrap, program
from heliostat.ray.agent import verdict
from heliostat.ray.label import Label, label_of
from heliostat.ray.node_config import Setup, Site, node_config

UNPREPARED = "unprepared"  # a fact: why no node can be there
PATIENCE = 120.0  # seconds for Ray's own start on a node


class Making:
    """One `create`. The token is made here once, and travels on standard input to every host."""

    def __init__(self, owner: Owner, hosts: Hosts, known: Iterable[Ref], emit: Emit) -> None:
        self._emit = emit
        self._owner = owner
        self._hosts = hosts
        self._gcs: asyncio.Future[str] | None = None
        known = tuple(known)
        self._heads = [ref.facts["gcs"] for ref in known if ref.key == HEAD and "gcs" in ref.facts]
        self._known = {ref.name: ref for ref in known}

    async def directories(self, wanted: Sequence[Resource], token: str) -> AsyncGenerator[Outcome, None]:
        async for outcome in as_they_come([attempt(one.name, self._directory(one, token)) for one in wanted]):
            yield outcome

    async def _directory(self, wanted: Resource, token: str) -> Ref:
        host, auth = wanted.body["host"], wanted.body["auth"]
        facts = {"host": host, **{f"tag-{key}": value for key, value in wanted.body["tags"].items()}}
        if not await self._set_up(wanted):
            facts[UNPREPARED] = "host_setup failed"
            wanted = replace(wanted, digests=Digests(live=UNPREPARED))  # so that the next `up` tries it again
        make = {
            **base_order(self._owner, host),
            "do": "make",
            "label": label_of(self._owner, wanted, facts).text(),
            "token": token if auth == "token" else "",
            "hosts": list(wanted.body["hosts"]),
        }
        return await self._done(host, wanted.name, make)

    async def _set_up(self, wanted: Resource) -> bool:
        """Run the file's `host_setup`. On a new host that fails, its node alone is lost."""
        host, commands = wanted.body["host"], wanted.body["host_setup"]
        self._hosts.troubles.pop(host, None)
        if not commands:
            return True
        try:
            await set_up(self._hosts, host, self._owner.id, commands, wanted.body["env"], self._emit)
        except UsageError as error:
            known = self._known.get(wanted.name)
            if known is not None and SILENT not in known.facts and UNPREPARED not in known.facts:
                raise  # it carries a node already, which nobody would tell of
            self._hosts.troubles[host] = error
            return False
        return True

    async def nodes(self, wanted: Sequence[Resource]) -> AsyncGenerator[Outcome, None]:
        """Workers are prepared while the head is; they start as soon as it holds its port."""
        self._gcs = asyncio.get_running_loop().create_future()
        if not any(one.key == HEAD for one in wanted):
            self._gcs.set_result(self._heads[0] if self._heads else "")  # an empty one: see _head
        async for outcome in as_they_come([attempt(one.name, self._node(one)) for one in wanted]):
            yield outcome

    async def _node(self, wanted: Resource) -> Ref:
        head = wanted.key == HEAD
        try:
            async with self._hosts.shell(wanted.body["host"]):  # what is wrong there is told first
                if trouble := self._hosts.troubles.get(wanted.body["host"]):
                    raise trouble
            ref = await self._start(wanted)
            if head and self._gcs and not self._gcs.done():
                self._gcs.set_result(ref.facts["gcs"])
        except HelioError as error:
            if head and self._gcs and not self._gcs.done():
                self._gcs.set_exception(
                    Unavailable("there is no head to join", why=f"the head: {error.what}")
                )
                self._gcs.exception()  # it may be that nobody waits for it
            raise
        return ref

    async def _head(self) -> str:
        """Where workers join; each has an error of its own when that is nowhere."""
        try:
            found = await asyncio.shield(self._gcs) if self._gcs else ""
        except Unavailable as error:
            raise Unavailable(error.what, why=error.why, fix=error.fix) from error
        if not found:
            raise Unavailable("there is no head to join", why="it is not there, or holds no ports yet")
        return found

    async def _python(self, wanted: Resource) -> tuple[str, dict[str, str]]:
        """The node's interpreter: the one of the file, or one made for its Ray, once for each host."""
        body, host = wanted.body, wanted.body["host"]
        if body["python"] and "/" in body["python"]:
            return str(body["python"]), {}
        needs = bootstrap.Wanted(ray=body["ray"], python=body["python"] or "")
        return await prepare(self._hosts, host, wanted.key, needs, body["downloads"], self._emit)

    async def _start(self, wanted: Resource) -> Ref:
        body, host = wanted.body, wanted.body["host"]
        python, wheels = await self._python(wanted)
        gcs = "" if wanted.key == HEAD else await self._head()
        config = config_of(wanted, python, gcs, wheels)
        facts = {
            "host": host,
            "home": "{home}",
            "auth": body["auth"],
            "python": python,
            "program": "{home}/program/" + program.digest(),
            "group": body["group"],
            "log": config["dir"] + "/boot.log",
        }
        converge = {
            **base_order(self._owner, host),
            "do": "converge",
            "key": wanted.key,
            "again": wanted.again,
            "label": {**label_data(label_of(self._owner, wanted, facts))},
            "config": config,
            "program": {"digest": program.digest(), "files": program.files()},
        }
        return await self._done(host, wanted.name, converge, pythons=(python,))

    async def _done(self, host: str, name: str, order: Mapping[str, Any], pythons: Sequence[str] = ()) -> Ref:
        """Have it done, and return what is listed there then: one round trip."""
        look = {**base_order(self._owner, host), "do": "list"}
        answers = await self._hosts.ask(host, [order, look], pythons=pythons)
        if answers is None:
            raise self._hosts.troubles.get(host) or no_python(host)
        verdict(answers[0], host, f"cannot prepare {name.partition('/')[2]}")
        for ref in refs(self._owner, host, verdict(answers[1], host, "cannot look")):
            if ref.name == name and (ref.name != f"{NODE}/{HEAD}" or "gcs" in ref.facts):
                return ref
        raise Unavailable(f"{name} vanished while it was made", why=f"{host} does not list it")


def label_data(label: Label) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(label)


def config_of(wanted: Resource, python: str, gcs: str, wheels: Mapping[str, str]) -> dict[str, Any]:
    """What the node program is told; words in braces are known on the host alone."""
    body = wanted.body
    peers = tuple(dict.fromkeys([*body["peers"], *([gcs.rpartition(":")[0]] if gcs else [])]))
    site = Site(home="{home}", temp="{temp}", python=python, ip="{ip}", loopback=False, gcs=gcs, peers=peers)
    commands = tuple(body["setup"])
    setup = Setup(commands=commands, cwd="{home}", id=digest([commands, python]))
    patience = PATIENCE + (setup.patience if body["prepares"] else 0)
    node = node_of(body["node"])
    # What jobs and daemons leave in temporary places goes with the cluster.
    node = replace(node, env={"TMPDIR": "{temp}/t", **wheels, **node.env})
    return node_config(
        wanted.key,
        node,
        site,
        head=wanted.key == HEAD,
        auth=body["auth"],
        patience=patience,
        setup=setup,
    )


def node_of(data: Mapping[str, Any]) -> Node:
    """A node from the plain data of a resource's body."""
    gpus = data["gpus"]
    return Node(**{**data, "gpus": Gpus(**gpus) if gpus else None})


def new_token() -> str:
    return secrets.token_hex(32)


async def attempt(name: str, work: Coroutine[None, None, Ref]) -> Outcome:
    try:
        return Outcome(name=name, ref=await work)
    except HelioError as error:
        return Outcome(name=name, error=final(error))
