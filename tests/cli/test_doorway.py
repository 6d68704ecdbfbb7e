"""The door to the dashboard: who gets in, and what gets through. The other side is a small web server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, CookieJar, WSMsgType, web
from yarl import URL

from heliostat.ray.doorway import Doorway

TOKEN = "the-token"


def far_side() -> web.Application:
    """Like Ray's dashboard: everything needs the token."""

    async def page(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.Response(status=401)
        return web.json_response(
            {
                "path": request.path_qs,
                "cookie": request.headers.get("Cookie", ""),
                "body": await request.text(),
            }
        )

    async def stream(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for _ in range(3):
            await answer.write(b"line\n")
        return answer

    async def socket(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        async for message in ws:
            await ws.send_str(f"echo {message.data}")
        return ws

    app = web.Application()
    app.add_routes([web.get("/stream", stream), web.get("/ws", socket), web.route("*", "/{rest:.*}", page)])
    return app


@asynccontextmanager
async def a_door(*, at_root: bool = False) -> AsyncIterator[Doorway]:
    runner = web.AppRunner(far_side())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    there = runner.addresses[0]

    async def route() -> tuple[str, int]:
        return str(there[0]), int(there[1])

    async def renew() -> None:
        """The way is never lost here."""

    try:
        async with Doorway(route, renew, TOKEN, at_root=at_root).listening(0) as door:
            yield door
    finally:
        await runner.cleanup()


@asynccontextmanager
async def a_browser() -> AsyncIterator[ClientSession]:
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
        yield browser


def test_the_address_lets_one_browser_in_and_adds_the_token() -> None:
    async def story() -> None:
        async with a_door() as door, a_browser() as mine, a_browser() as other:
            address = door.address()
            async with mine.get(address) as page:
                assert page.status == 200
                assert (await page.json())["path"] == "/"
                assert page.url.query_string == "", "the key leaves the address bar"
            async with mine.get(page.url / "api/x", params={"a": "b"}) as page:
                assert await page.json() == {"path": "/api/x?a=b", "cookie": "", "body": ""}
            async with mine.post(
                page.url.origin() / page.url.parts[1] / "api/y", data=b"z" * 100_000
            ) as page:
                assert len((await page.json())["body"]) == 100_000
            async with other.get(address) as page:
                assert page.status == 403, "the address worked once"
            async with mine.get(address) as page:
                assert page.status == 200, "a reload is no stranger"

    asyncio.run(story())


async def raw(door: Doorway, path: str, host: str, cookie: str = "") -> bytes:
    """One request as a browser sends it that takes every name below localhost for this machine."""
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", *([f"Cookie: {cookie}"] if cookie else []), "", ""]
    writer.write("\r\n".join(lines).encode())
    answer = await reader.read()
    writer.close()
    return answer


def test_a_page_at_the_root_has_a_name_of_its_own() -> None:
    async def story() -> None:
        async with a_door(at_root=True) as door:
            address = URL(door.address())
            assert (address.path, address.host or "") == ("/", door._hosts[0])
            assert (address.host or "").endswith(".localhost")
            host = f"{address.host}:{address.port}"
            for other in ("127.0.0.1", "localhost", "helio-guess.localhost"):
                assert (await raw(door, address.path_qs, other)).split()[1] == b"404"
            let_in = (await raw(door, address.path_qs, host)).decode()
            assert let_in.split()[1] == "303"
            assert "Path=/;" in let_in
            cookie = f"helio-door={door._cookie}"
            assert (await raw(door, "/api/x?a=b", host)).split()[1] == b"403"
            assert b'"path": "/api/x?a=b"' in await raw(door, "/api/x?a=b", host, cookie)

    asyncio.run(story())


def test_streams_and_web_sockets_pass() -> None:
    async def story() -> None:
        async with a_door() as door, a_browser() as mine:
            async with mine.get(door.address()) as page:
                home = page.url
            async with mine.get(home / "stream") as page:
                assert await page.text() == "line\n" * 3
            async with mine.ws_connect(home / "ws") as ws:
                await ws.send_str("hello")
                answer = await ws.receive()
                assert (answer.type, answer.data) == (WSMsgType.TEXT, "echo hello")

    asyncio.run(story())


def room(door: Doorway) -> str:
    return URL(door.address()).path


@pytest.mark.parametrize(
    "request_head",
    [
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        "GET {room} HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        "GET {room} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: helio-door=guess\r\n",
        "GET {room}?key=guess HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        "GET {room}?key={key} HTTP/1.1\r\nHost: evil.example:80\r\n",
        "GET {room}api/x HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie}\r\nSec-Fetch-Site: same-site\r\n",
        "nonsense\r\n",
        "GET {room} HTTP/1.1\r\nno colon\r\n",
    ],
)
def test_nobody_else_gets_in(request_head: str) -> None:
    async def story() -> bytes:
        async with a_door() as door:
            key = URL(door.address()).query["key"]
            cookie = f"helio-door={door._cookie}"
            reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
            writer.write((request_head.format(room=room(door), key=key, cookie=cookie) + "\r\n").encode())
            answer = await reader.read()
            writer.close()
            return answer

    answer = asyncio.run(story())
    assert answer.split()[1] in (b"400", b"403", b"404")
    assert b"Set-Cookie" not in answer
    assert TOKEN.encode() not in answer


def test_a_dashboard_that_is_gone_is_told_in_the_browser() -> None:
    async def story() -> None:
        renewed = 0

        async def route() -> tuple[str, int]:
            return "127.0.0.1", 1

        async def renew() -> None:
            nonlocal renewed
            renewed += 1

        async with Doorway(route, renew, TOKEN).listening(0) as door, a_browser() as mine:
            async with mine.get(door.address()) as page:
                assert page.status == 502
                assert "cannot reach" in await page.text()
            assert renewed == 1

    asyncio.run(story())
