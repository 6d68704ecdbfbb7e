"""HTTP/1.1 to Ray's own servers: asyncio streams, h11 for the protocol, and all errors translated here.

Why not httpx: importing it costs more than the whole start of `helio` (docs/adr/0010).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import h11

from heliostat.core.errors import Denied, HelioError, Throttled, TimedOut, Unavailable, UsageError

Route = Callable[[], Awaitable[tuple[str, int]]]  # where to connect to, asked again for each connection

BLOCK = 1 << 16
IDLE_CONNECTIONS = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    def json(self) -> Any:
        """The body, decoded."""
        import json

        try:
            return json.loads(self.body)
        except ValueError:
            raise Unavailable(
                "the answer of Ray's dashboard is no JSON", why=self.body[:200].decode(errors="replace")
            ) from None

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")


@dataclass(slots=True)
class _Connection:
    """One connection: a socket and h11's word on what may come next."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    state: h11.Connection = field(default_factory=lambda: h11.Connection(h11.CLIENT))

    async def send(self, request: h11.Request, body: bytes) -> None:
        data = self.state.send(request) or b""
        if body:
            data += self.state.send(h11.Data(data=body)) or b""
        data += self.state.send(h11.EndOfMessage()) or b""
        self.writer.write(data)
        await self.writer.drain()

    async def next(self) -> h11.Event | type[h11.PAUSED]:
        while (event := self.state.next_event()) is h11.NEED_DATA:
            self.state.receive_data(await self.reader.read(BLOCK))
        return event  # type: ignore[return-value]  # h11 types the sentinel as part of the union

    def reusable(self) -> bool:
        if self.state.our_state is not h11.DONE or self.state.their_state is not h11.DONE:
            return False
        self.state.start_next_cycle()
        return True

    def close(self) -> None:
        self.writer.close()


class Response:
    """An answer whose body is read as it comes."""

    def __init__(self, name: str, connection: _Connection, head: h11.Response) -> None:
        self._name = name
        self._connection = connection
        self.status = head.status_code
        self.headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in head.headers}

    async def chunks(self, quiet: float = 30.0) -> AsyncIterator[bytes]:
        """The body, piece by piece; `quiet` is how long no byte may come."""
        while True:
            with translated(self._name, quiet):
                async with asyncio.timeout(quiet):
                    event = await self._connection.next()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return


class Http:
    """One server, by keep-alive connections. `name` is what errors call it."""

    def __init__(self, name: str, route: Route, token: str | None = None) -> None:
        self.name = name
        self._route = route
        self._token = token
        self._idle: list[_Connection] = []

    async def ask(
        self, method: str, target: str, *, body: bytes = b"", deadline: float = 10.0, once: bool = False
    ) -> Answer:
        """Send a request and read the whole answer; denials and server errors are raised.

        A kept connection that the server has closed meanwhile is replaced and the request sent again, unless
        `once` says that sending it twice is not the same as sending it once.
        """
        kept = bool(self._idle) and not once
        try:
            answer = await self._ask(method, target, body, deadline, fresh=once)
        except TimedOut:
            raise
        except Unavailable:
            if not kept:
                raise
            self.drop()
            answer = await self._ask(method, target, body, deadline, fresh=True)
        check(self.name, answer)
        return answer

    async def _ask(self, method: str, target: str, body: bytes, deadline: float, *, fresh: bool) -> Answer:
        with translated(self.name, deadline):
            async with (
                asyncio.timeout(deadline),
                self._send(method, target, body, {}, deadline, fresh=fresh) as response,
            ):
                whole = b"".join([chunk async for chunk in response.chunks(deadline)])
        return Answer(response.status, response.headers, whole)

    def get(
        self, target: str, headers: Mapping[str, str], *, deadline: float = 10.0
    ) -> AbstractAsyncContextManager[Response]:
        """GET with the body left to the caller; `deadline` is for the head of the answer."""
        return self._send("GET", target, b"", headers, deadline)

    @asynccontextmanager
    async def _send(
        self,
        method: str,
        target: str,
        body: bytes,
        headers: Mapping[str, str],
        deadline: float,
        *,
        fresh: bool = False,
    ) -> AsyncIterator[Response]:
        connection: _Connection | None = None
        keep = False
        try:
            with translated(self.name, deadline):
                async with asyncio.timeout(deadline):
                    connection = self._idle.pop() if self._idle and not fresh else await self._connect()
                    await connection.send(self._request(method, target, body, headers), body)
                    while not isinstance(head := await connection.next(), h11.Response):
                        pass  # 1xx
            yield Response(self.name, connection, head)
            keep = len(self._idle) < IDLE_CONNECTIONS and connection.reusable()
        finally:
            if connection and keep:
                self._idle.append(connection)
            elif connection:
                connection.close()

    async def _connect(self) -> _Connection:
        host, port = await self._route()
        return _Connection(*await asyncio.open_connection(host, port, limit=BLOCK))

    def _request(self, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> h11.Request:
        # Not the tunnel's address: the server on its other side knows nothing of it.
        lines = {"Host": "localhost", "Accept": "*/*", **headers}
        if self._token:
            lines["Authorization"] = f"Bearer {self._token}"
        if body or method in ("POST", "PUT"):
            lines |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        return h11.Request(method=method, target=target, headers=list(lines.items()))

    def drop(self) -> None:
        """Forget the kept connections: what they led to may be gone."""
        while self._idle:
            with suppress(OSError):
                self._idle.pop().close()


class translated:  # noqa: N801  # reads as a clause: `with translated(...)`
    """Turn what sockets and h11 raise into our errors."""

    def __init__(self, name: str, deadline: float) -> None:
        self.name = name
        self.deadline = deadline

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, TimeoutError):
            raise TimedOut(
                f"{self.name} did not answer within {self.deadline:g} s",
                why="the machine is overloaded, asleep or out of reach",
                fix="`helio status` says what is alive; `helio doctor` looks further",
            ) from error
        if isinstance(error, OSError | h11.RemoteProtocolError):
            raise Unavailable(
                f"cannot reach {self.name}",
                why=str(error) or type(error).__name__,
                fix="`helio status` says what is alive; `helio up` repairs what is missing",
            ) from error


def check(name: str, answer: Answer) -> None:
    """Raise what a refusal or a failure of the server means; 404 and 416 are answers."""
    if answer.status < 400 or answer.status in (404, 416):
        return
    raise _refusal(name, answer)


def _refusal(name: str, answer: Answer) -> HelioError:
    words = last_line(answer.text)
    if answer.status in (401, 403):
        return Denied(
            f"{name} refuses our token",
            why=words or f"HTTP {answer.status}",
            fix="the cluster may be somebody else's, or its token was changed: `helio restart` sets it anew",
        )
    if answer.status == 413:
        return UsageError(
            f"{name} refuses a request of that size", why=words, fix="put large things in the work folder"
        )
    if answer.status == 429:
        return Throttled(f"{name} is asked too often", why=words, fix="try again in a moment")
    if answer.status < 500:
        return UsageError(f"{name} refuses the request", why=words)
    return Unavailable(
        f"{name} failed with HTTP {answer.status}", why=words, fix="`helio doctor` looks further"
    )


def last_line(text: str) -> str:
    """The line of a traceback that says what happened.

    >>> last_line("Traceback …\\n  File x\\nValueError: no such thing\\n.\\n")
    'ValueError: no such thing'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip(" .")]
    return lines[-1][:500] if lines else ""
