"""The hosts of a file, and one question to each of them at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from heliostat.core.errors import HelioError, MissingPart
from heliostat.core.owner import Owner
from heliostat.core.spec import SshSite
from heliostat.engine.home import state_dir
from heliostat.engine.ports import Shell
from heliostat.ray import agent
from heliostat.shells.ssh.link import Pool, Told
from heliostat.shells.ssh.shell import SshShell
from heliostat.shells.ssh.trouble import OtherHostKey
from heliostat.shells.ssh.words import Way

Answers = Mapping[str, "list[dict[str, Any]] | HelioError | None"]


def base_order(owner: Owner, host: str) -> dict[str, Any]:
    """What every order names: whose things, on which host."""
    one = {"id": owner.id} if owner.cluster else {}
    return {"principal": owner.principal, "cluster": owner.cluster, "host": host, **one}


def final(error: HelioError) -> HelioError:
    """Asking again at once would not help: what could be tried was tried."""
    error.retry = False
    return error


class Hosts:
    """How each host is reached. A simulation of a thousand puts another `shell` and `ask` in."""

    def __init__(self, site: SshSite, cluster: str, told: Told) -> None:
        self.site = site
        self.pythons: dict[str, str] = {}  # what has answered there
        self.troubles: dict[str, HelioError] = {}  # hosts whose `host_setup` failed: no node starts there
        self._beginning: asyncio.Future[None] | None = None  # kept, or nobody would
        self._pool = Pool(state_dir() / "hosts" / cluster, told)

    def way(self, host: str) -> Way:
        site = self.site
        key = os.path.expanduser(site.key) if site.key else None
        config = os.environ.get("HELIO_SSH_CONFIG")
        return Way(host=host, user=site.user, key=key, jump=site.jump, config=config)

    async def user(self, host: str) -> str:
        """Who logs in there, as OpenSSH itself sees it."""
        return (await self._pool.settle(self.way(host))).user

    async def begin(self, host: str) -> None:
        """Begin to log in: whoever asks that host next need not wait for all of it. Trouble is theirs."""

        async def log_in() -> None:
            with suppress(HelioError):
                await self._pool.link(self.way(host))

        self._beginning = asyncio.ensure_future(log_in())
        await asyncio.sleep(0)  # `ssh` starts now

    @asynccontextmanager
    async def shell(self, host: str, *, home: str = "", python: str = "") -> AsyncIterator[Shell]:
        shell = SshShell(self._pool, self.way(host), home=home, python=python)
        await shell.open()
        yield shell

    async def ask(
        self, host: str, orders: Sequence[Mapping[str, Any]], *, pythons: Sequence[str] = ()
    ) -> list[dict[str, Any]] | None:
        """One round trip to the host's agent, which stays there for the next."""
        shell = SshShell(self._pool, self.way(host))
        standing = await shell.standing(agent.command(pythons), agent.opening())
        answers = await agent.ask(standing, host, orders)
        for answer in answers or ():
            if answer.get("python"):
                self.pythons[host] = answer["python"]
        return answers

    def leave(self, host: str) -> None:
        """Nothing of the cluster stays there, nor does a connection for the next command."""
        self._pool.leave(host)

    def close(self) -> None:
        self._pool.close()


def no_python(host: str) -> HelioError:
    return MissingPart(
        f"there is no Python on {host}",
        why="looked for python3, 3.8 or newer",
        fix="install python3 there, or give python: the path of one",
    )


async def ask_all(
    hosts: Hosts, orders: Mapping[str, Sequence[Mapping[str, Any]]], *, pythons: Sequence[str] = ()
) -> Answers:
    """All at once; a host that cannot answer has its error. A changed host key ends everything."""

    async def one(host: str) -> list[dict[str, Any]] | HelioError | None:
        try:
            return await hosts.ask(host, orders[host], pythons=pythons)
        except OtherHostKey:
            raise
        except HelioError as error:
            return error

    found = await together(one(host) for host in orders)
    return dict(zip(orders, found, strict=True))


async def together(deeds: Iterable[Any]) -> list[Any]:
    """`gather`, but the first error ends the others before it goes on."""
    tasks = [asyncio.ensure_future(deed) for deed in deeds]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
