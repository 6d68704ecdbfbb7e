"""A small HTTP server for tests that can be cut, slow, down and wrong on purpose."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import h11

BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Faults:
    """What goes wrong. Set what you need; nothing does by default."""

    cut_after: int | None = None  # each body is cut off after so many bytes, the connection with it
    cuts: int = 0  # how many have been made
    most_cuts: int | None = None
    statuses: deque[int] = field(default_factory=deque)  # the next answers are these failures
    lose_answers: int = 0  # so many requests are done, but their answers are never sent
    delay: float = 0.0  # seconds before each answer

    def cut(self, size: int) -> int | None:
        """How much of a body of that size may be sent; None: all of it."""
        limit = self.cut_after
        if limit is None or size <= limit or (self.most_cuts is not None and self.cuts >= self.most_cuts):
            return None
        self.cuts += 1
        return limit


class Server:
    """Serves one handler on a port of loopback that it keeps over restarts."""

    def __init__(self, handler: Callable[[Request], Awaitable[Reply]]) -> None:
        self.faults = Faults()
        self.port = 0
        self.requests: list[str] = []  # what was asked, in order
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """As if it was killed: nothing listens, and every connection breaks."""
        if self._server:
            self._server.close()
            self.cut()
            self._server = None
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    def cut(self) -> None:
        """Break every connection now."""
        for writer in self._open.values():
            writer.transport.abort()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._open[task] = writer
        task.add_done_callback(self._open.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state = h11.Connection(h11.SERVER)
        try:
            while request := await _read(state, reader):
                if not await self._answer(state, request, writer):
                    return
                state.start_next_cycle()
        except (OSError, h11.ProtocolError):
            pass  # the client left, or a test cut the connection
        finally:
            with suppress(OSError):
                writer.close()

    async def _answer(self, state: h11.Connection, request: Request, writer: asyncio.StreamWriter) -> bool:
        self.requests.append(f"{request.method} {request.path}")
        faults = self.faults
        if faults.delay:
            await asyncio.sleep(faults.delay)
        reply = Reply(faults.statuses.popleft()) if faults.statuses else await self._handler(request)
        if faults.lose_answers:
            faults.lose_answers -= 1
            writer.transport.abort()
            return False
        limit = faults.cut(len(reply.body))
        headers = {"Content-Length": str(len(reply.body)), **reply.headers}
        writer.write(state.send(h11.Response(status_code=reply.status, headers=list(headers.items()))) or b"")
        for at in range(0, len(reply.body) if limit is None else limit, BLOCK):
            end = at + BLOCK if limit is None else min(at + BLOCK, limit)
            writer.write(state.send(h11.Data(data=reply.body[at:end])) or b"")
            await writer.drain()
        if limit is not None:
            writer.close()  # what was sent arrives, then nothing
            return False
        writer.write(state.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        return True


async def _read(state: h11.Connection, reader: asyncio.StreamReader) -> Request | None:
    """The next request, or None when the client has gone."""
    head: h11.Request | None = None
    body = b""
    while True:
        event = state.next_event()
        if event is h11.NEED_DATA:
            state.receive_data(await reader.read(BLOCK))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage) and head:
            path, _, query = head.target.decode().partition("?")
            headers = {name.decode().lower(): value.decode() for name, value in head.headers}
            return Request(head.method.decode(), path, query, headers, body)
        else:
            return None
