"""A door on loopback to the dashboard, that adds the token and lets only this person in.

Every request needs a cookie, which the first use of a one-time address sets. The page lives under a random
path: a cookie of 127.0.0.1 is sent to every port there, also to those of other users, so it is bound to that
path. Pages that must lie at the root of their server get a random name below `localhost` instead.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from heliostat.core.errors import Conflict, HelioError, Unavailable
from heliostat.core.resource import Ref
from heliostat.engine.ports import Ground
from heliostat.ray.connect import Tunnels

Route = Callable[[], Awaitable[tuple[str, int]]]
COOKIE = "helio-door"
HEAD_LIMIT = 64 * 1024
PATIENCE = 10.0  # seconds for a browser to say what it wants
HERE = ("127.0.0.1", "localhost")
# Ours to set; the connection's own lines concern only its two ends.
DROPPED = frozenset({"authorization", "x-ray-authorization", "host", "connection", "keep-alive", "cookie"})


@asynccontextmanager
async def dashboard(ground: Ground, head: Ref, port: int = 0) -> AsyncIterator[Doorway]:
    """A door to the dashboard of the cluster with this head, open as long as the context."""
    tunnels = Tunnels(ground, head)
    host, _, there = head.facts["dashboard"].rpartition(":")
    try:
        token = await tunnels.token()

        async def route() -> tuple[str, int]:
            return await tunnels.forwarded(host.strip("[]"), int(there))

        async with Doorway(route, tunnels.renew, token).listening(port) as door:
            yield door
    finally:
        await tunnels.close()


@asynccontextmanager
async def page(
    ground: Ground, head: Ref, address: str, login: str | None, port: int = 0
) -> AsyncIterator[Doorway]:
    """A door to a page beside Ray, host:port as the head sees it; `login` is what signs in there."""
    tunnels = Tunnels(ground, head)
    host, _, there = address.rpartition(":")

    async def route() -> tuple[str, int]:
        return await tunnels.forwarded(host.strip("[]"), int(there))

    try:
        async with Doorway(route, tunnels.renew, login=login, at_root=True).listening(port) as door:
            yield door
    finally:
        await tunnels.close()


class Doorway:
    """One listening socket on 127.0.0.1, one cookie."""

    def __init__(
        self,
        route: Route,
        renew: Callable[[], Awaitable[None]],
        token: str | None = None,
        *,
        login: str | None = None,
        at_root: bool = False,
    ) -> None:
        self._route = route
        self._renew = renew
        self._login = f"Bearer {token}" if token is not None else login
        self._room = "" if at_root else f"/{secrets.token_urlsafe(12)}"
        self._hosts = (f"helio-{secrets.token_hex(8)}.localhost",) if at_root else HERE
        self._cookie = secrets.token_urlsafe(32)
        self._keys: set[str] = set()
        self.port = 0

    @asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[Doorway]:
        try:
            server = await asyncio.start_server(self._visit, "127.0.0.1", port, limit=HEAD_LIMIT)
        except OSError as error:
            raise Conflict(
                f"port {port} of this machine is taken",
                why=str(error.strerror),
                fix="choose another: --port N",
            ) from error
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    def address(self) -> str:
        """An address that lets one browser in, once."""
        key = secrets.token_urlsafe(24)
        self._keys.add(key)
        return f"http://{self._hosts[0]}:{self.port}{self._room}/?key={key}"

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of a browser, or what it was upgraded to."""
        try:
            async with asyncio.timeout(PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
            request = Request(head)
            if (answer := self._refuse(request)) is not None:
                writer.write(answer)
            else:
                await self._pass(request, reader, writer)
        except (ValueError, asyncio.LimitOverrunError):
            writer.write(response("400 Bad Request", "This is no request that a browser makes."))
        except (asyncio.IncompleteReadError, TimeoutError, OSError):
            pass  # the browser went away
        finally:
            with suppress(OSError):
                await writer.drain()
                writer.close()

    def _refuse(self, request: Request) -> bytes | None:
        """The answer to everybody who is not let in, and to the key that lets in."""
        room = f"{self._room}/"
        if request.host not in self._hosts or not request.path.startswith(room):
            return response("404 Not Found", "There is nothing here.")
        known = secrets.compare_digest(request.cookie.encode(), self._cookie.encode())
        key = request.key if request.path == room else ""
        if key and (known or key in self._keys):
            self._keys.discard(key)
            cookie = f"{COOKIE}={self._cookie}; Path={room}; HttpOnly; SameSite=Lax"
            return response("303 See Other", "", [f"Location: {room}", f"Set-Cookie: {cookie}"])
        # A page of another port of this machine is the same site to a browser: it may link here, no more.
        foreign = request.fetch_site in ("cross-site", "same-site") and request.fetch_mode != "navigate"
        if not known or foreign:
            return response(
                "403 Forbidden",
                "This address was used already, or is not yours. `helio open` gives a new one.",
            )
        return None

    async def _pass(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            try:
                far_reader, far_writer = await asyncio.open_connection(*await self._route())
            except OSError:
                await self._renew()  # as when a laptop slept: the tunnel is made again, once
                far_reader, far_writer = await asyncio.open_connection(*await self._route())
        except (OSError, HelioError) as error:
            told = error if isinstance(error, HelioError) else Unavailable("cannot reach the dashboard")
            writer.write(response("502 Bad Gateway", told.what))
            return
        far_writer.write(request.onward(self._room, self._login))
        ways = [
            asyncio.create_task(copy(reader, far_writer)),
            asyncio.create_task(copy(far_reader, writer)),
        ]
        try:  # either end that closes ends both: a closed tab must not keep a log streaming
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            far_writer.close()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Bytes as they come, until either end closes."""
    with suppress(OSError):
        while data := await reader.read(64 * 1024):
            writer.write(data)
            await writer.drain()


class Request:
    """The head of a request: what is needed to judge it, and to send it on."""

    def __init__(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        self.method, self.target, self.version = first.split(" ")
        pairs = [line.split(":", 1) for line in lines]
        self.lines = [(name.lower(), value.strip()) for name, value in pairs]
        self.path = urlsplit(self.target).path
        self.key = parse_qs(urlsplit(self.target).query).get("key", [""])[0]

    def get(self, name: str) -> str:
        return next((value for known, value in self.lines if known == name), "")

    @property
    def host(self) -> str:
        return self.get("host").rpartition(":")[0] or self.get("host")

    @property
    def fetch_site(self) -> str:
        return self.get("sec-fetch-site")

    @property
    def fetch_mode(self) -> str:
        return self.get("sec-fetch-mode")

    @property
    def cookie(self) -> str:
        jar = SimpleCookie()
        with suppress(CookieError):
            jar.load(self.get("cookie"))
        return jar[COOKIE].value if COOKIE in jar else ""

    def onward(self, room: str, login: str | None) -> bytes:
        """The same request for the far end: without the random path, signed in."""
        upgrade = "upgrade" in self.get("connection").lower()
        lines = [(name, value) for name, value in self.lines if name not in DROPPED]
        # One request a connection: what follows on it needs no look, because the far end closes it.
        # A page at the root compares its own name with where a form came from.
        host = "localhost" if room else self.get("host")
        lines += [("host", host), ("connection", "Upgrade" if upgrade else "close")]
        if login is not None:
            lines.append(("authorization", login))
        text = [f"{self.method} {self.target.removeprefix(room)} HTTP/1.1"]
        return "\r\n".join([*text, *(f"{name}: {value}" for name, value in lines), "", ""]).encode("latin-1")


def response(status: str, text: str, lines: Iterable[str] = ()) -> bytes:
    """A short answer of our own, that no cache and no other page gets to see."""
    body = f"{text}\n".encode()
    head = [
        f"HTTP/1.1 {status}", "Connection: close", "Cache-Control: no-store", "Referrer-Policy: no-referrer",
        "Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(body)}", *lines, "", "",
    ]  # fmt: skip
    return "\r\n".join(head).encode() + body
