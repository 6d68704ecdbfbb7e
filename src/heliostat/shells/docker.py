"""Reach a node that is a container: commands by `docker exec`, wherever its engine is."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import IO

from heliostat.core.errors import HelioError, Unavailable
from heliostat.shells.docker_cli import Docker, translate
from heliostat.shells.played import Played
from heliostat.shells.ssh import words
from heliostat.shells.talk import CHUNK, Take, Talk

# Runs in the container with its Python: one connection, both ways, each way ending by itself. It connects
# only when it is told to, so that it can be started before it is needed. Where nobody listens yet it waits a
# moment: starting another one costs the engine more.
RELAY = """
import os, socket, sys, threading, time
if not os.read(0, 1):
    sys.exit()
last = time.monotonic() + 1.5
while True:
    try:
        far = socket.create_connection((sys.argv[1], int(sys.argv[2])))
        break
    except ConnectionRefusedError:
        if time.monotonic() > last:
            raise
        time.sleep(0.05)
def up():
    while data := os.read(0, 65536):
        far.sendall(data)
    far.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while data := far.recv(65536):
    while data:
        data = data[os.write(1, data):]
"""


class _Line:
    """A line to one container."""

    def __init__(self, docker: Docker, container: str, name: str) -> None:
        self._docker = docker
        self._container = container
        self._name = name
        self.alive = True  # nothing is kept open: each command stands for itself

    def command(self, line: str) -> list[str]:
        return self._docker.words("exec", "-i", self._container, "sh", "-c", line)

    def untaken(self, code: int, said: str) -> HelioError:
        if "No such container" in said or "is not running" in said:
            return Unavailable(
                f"{self._name} cannot be reached", why=said, fix="`helio status` says how it is"
            )
        return translate(f"{self._name} did not take a command", said or f"docker exec ended with {code}")

    def trouble(self) -> HelioError:
        return Unavailable(
            f"the way to {self._name} was lost",
            why="its container ended, or the engine went away",
            fix="`helio status` says how it is",
        )


class DockerShell(Played):
    """One container; commands run as its user."""

    def __init__(
        self, docker: Docker, container: str, *, name: str, home: str = "", python: str = "python3"
    ) -> None:
        super().__init__(name, home)
        self._docker = docker
        self._container = container
        self._line = _Line(docker, container, name)
        self._python = python

    def forward(self, host: str, port: int) -> AbstractAsyncContextManager[tuple[str, int]]:
        return self._forward(host, port)

    @asynccontextmanager
    async def _forward(self, host: str, port: int) -> AsyncIterator[tuple[str, int]]:
        argv = self._docker.words("exec", "-i", self._container, self._python, "-I", "-S", "-c", RELAY)
        async with _Relays([*argv, host, str(port)]).listening() as near:
            yield "127.0.0.1", near

    def attach(self, command: Sequence[str] = ()) -> tuple[tuple[str, ...], Mapping[str, str]]:
        terminal = sys.stdin is not None and sys.stdin.isatty()
        place = ("-w", self._home) if self._home else ()
        head = self._docker.words("exec", "-it" if terminal else "-i", *place, self._container)
        login = ("sh", "-c", "command -v bash >/dev/null && exec bash -l; exec sh -l")
        return (*head, *(command or login)), {}

    async def _play(
        self,
        command: str,
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str = "",
        take: Take,
        writes: Callable[[IO[bytes]], None] | None = None,
        reads: Callable[[IO[bytes]], None] | None = None,
    ) -> int:
        mark = f"helio-{secrets.token_hex(8)}"
        text = words.script(mark, command, env=env, cwd=cwd)
        return await Talk(self._line, mark, text, take).play(stdin, writes, reads)


class _Relays:
    """A port here; behind each connection a relay in the container, the next one always ready."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = list(argv)
        self._spare: asyncio.Future[asyncio.subprocess.Process] | None = None
        self._visits: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._spare = asyncio.ensure_future(self._start())
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for visit in self._visits:
                visit.cancel()
            await asyncio.gather(*self._visits, return_exceptions=True)
            if self._spare is not None:
                await _end(await self._spare)

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._visit(reader, writer))
        self._visits.add(task)
        task.add_done_callback(self._visits.discard)

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        spare, self._spare = self._spare, asyncio.ensure_future(self._start())
        started = spare or asyncio.ensure_future(self._start())
        try:
            await _both_ways(reader, writer, await asyncio.shield(started))
        finally:
            await _end(await started)  # a start that is under way cannot be taken back
            with suppress(OSError):
                writer.close()


async def _both_ways(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, process: asyncio.subprocess.Process
) -> None:
    """Until the far end has said all: its end is the end, ours is passed on."""
    into, out = process.stdin, process.stdout
    if into is None or out is None:
        return

    async def there() -> None:
        with suppress(OSError):
            into.write(b"\n")
            while data := await reader.read(CHUNK):
                into.write(data)
                await into.drain()
            into.close()

    going = asyncio.create_task(there())
    try:
        with suppress(OSError):
            while data := await out.read(CHUNK):
                writer.write(data)
                await writer.drain()
    finally:
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)


async def _end(process: asyncio.subprocess.Process) -> None:
    """The relay in the container ends by itself when its input does."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            # Process.kill() would look for its end first, and asyncio complains when it misses that.
            os.kill(process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        await process.wait()
