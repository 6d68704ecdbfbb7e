"""From a head's Ref to its Ray API: the token through the shell, the ports through tunnels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from urllib.parse import urlsplit

from heliostat.core.errors import Denied, Unavailable
from heliostat.core.resource import Ref
from heliostat.engine.ports import Ground, RayApi, Result, Shell
from heliostat.ray.client import RestApi
from heliostat.ray.http import Http

NOT_YET = 99  # the head makes its token while it starts
READ = f'[ -e "$1" ] || exit {NOT_YET}; exec cat "$1"'


@asynccontextmanager
async def connect(ground: Ground, head: Ref) -> AsyncIterator[RayApi]:
    """Implements ports.Connect."""
    async with AsyncExitStack() as stack:
        tunnels = Tunnels(ground, head)
        stack.push_async_callback(tunnels.close)
        token = await tunnels.token()
        dashboard = tunnels.server("Ray's dashboard", head.facts["dashboard"], token)
        agents: dict[str, Http] = {}

        def agent(url: str) -> Http:
            address = urlsplit(url).netloc
            if address not in agents:
                agents[address] = tunnels.server(f"the agent at {address}", address, token)
            return agents[address]

        yield RestApi(dashboard, agent, tunnels.renew, tunnels.python)
        for server in (dashboard, *agents.values()):
            server.drop()


class Tunnels:
    """A shell on the head and the ports forwarded through it; agents are reached from the head as well."""

    def __init__(self, ground: Ground, head: Ref) -> None:
        self._ground = ground
        self._head = head
        self._stack = AsyncExitStack()
        self._shell: Shell | None = None
        self._ends: dict[tuple[str, int], tuple[str, int]] = {}
        self._lock = asyncio.Lock()

    def server(self, name: str, address: str, token: str | None) -> Http:
        host, _, port = address.rpartition(":")

        async def route() -> tuple[str, int]:
            return await self.forwarded(host.strip("[]"), int(port))

        return Http(name, route, token)

    async def token(self) -> str | None:
        """The cluster's token, read where it is kept; none on a cluster without authentication."""
        path = self._head.facts.get("token_path")
        if not path:
            return None
        async with self._lock:
            result = await (await self._opened()).run(["sh", "-c", READ, "sh", path])
        if result.code == NOT_YET:
            raise Unavailable("the head has no token yet", why=f"there is no {path}", fix="`helio up` again")
        if result.code:
            raise Denied(
                "cannot read the cluster's token on its head",
                why=result.err.decode(errors="replace").strip() or f"{path}: exit code {result.code}",
                fix="it can be read by the account that made the cluster",
            )
        return result.out.decode().strip()

    async def python(self, words: Sequence[str]) -> Result:
        """Run the head's Python there, as one who knows the cluster."""
        facts = self._head.facts
        env = {"RAY_ADDRESS": facts["gcs"]}
        if path := facts.get("token_path"):
            env |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": path}
        async with self._lock:
            shell = await self._opened()
        return await shell.run([facts["python"], *words], env=env)

    async def forwarded(self, host: str, port: int) -> tuple[str, int]:
        async with self._lock:
            if (host, port) not in self._ends:
                shell = await self._opened()
                self._ends[host, port] = await self._stack.enter_async_context(shell.forward(host, port))
            return self._ends[host, port]

    async def _opened(self) -> Shell:
        if self._shell is None:
            self._shell = await self._stack.enter_async_context(self._ground.shell(self._head))
        return self._shell

    async def renew(self) -> None:
        """Begin anew after the way to the head was lost, as when a laptop slept."""
        async with self._lock:
            await self._leave()

    async def close(self) -> None:
        await self._leave()

    async def _leave(self) -> None:
        stack, self._stack = self._stack, AsyncExitStack()
        self._shell = None
        self._ends.clear()
        with suppress(OSError, Unavailable):  # it was broken already: that is why we are here
            await stack.aclose()
