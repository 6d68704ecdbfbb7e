"""One command over a line to a node: its script goes first on standard input, marks tell its own output.

A line is whatever runs one fixed shell line over there: `ssh`, `docker exec`, `kubectl exec`.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO, Protocol

from heliostat.core.errors import HelioError
from heliostat.shells.feed import feed
from heliostat.shells.ssh import words
from heliostat.shells.ssh.marks import Marked

CHUNK = 1 << 18
LAST_WORD = 3.0  # seconds for a command that was just given to say who it is, before it is killed

Take = Callable[[str, bytes], None]


class Line(Protocol):
    """A way to run a shell line on one node."""

    @property
    def alive(self) -> bool: ...

    def command(self, line: str) -> list[str]:
        """The program here that has a shell there run this line."""
        ...

    def untaken(self, code: int, said: str) -> HelioError:
        """Why no command could begin there, although the line stands."""
        ...

    def trouble(self) -> HelioError:
        """Why a command was lost on its way."""
        ...


class Talk:
    """One command on its way: its streams, its number on the host, its end."""

    def __init__(self, line: Line, mark: str, text: bytes, take: Take) -> None:
        self._line, self._text, self._take = line, text, take
        self._marks = {"stdout": Marked(mark), "stderr": Marked(mark)}
        self._mark = mark.encode()
        self._begun = asyncio.Event()

    async def play(
        self,
        stdin: bytes,
        writes: Callable[[IO[bytes]], None] | None,
        reads: Callable[[IO[bytes]], None] | None,
    ) -> int:
        argv = self._line.command(words.remote(len(self._text)))
        into, out = (os.pipe() if writes else None), (os.pipe() if reads else None)
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=into[0] if into else asyncio.subprocess.PIPE,
            stdout=out[1] if out else asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        jobs: list[asyncio.Future[None]] = []
        if into and writes:
            os.close(into[0])
            jobs.append(thread(partial(self._write, into[1], writes)))
        else:
            jobs.append(asyncio.ensure_future(feed(process, self._text + stdin)))
        if out and reads:
            os.close(out[1])
            jobs.append(thread(partial(self._read, out[0], reads)))
        else:
            jobs.append(asyncio.ensure_future(self._listen("stdout", process.stdout)))
        jobs.append(asyncio.ensure_future(self._listen("stderr", process.stderr)))
        try:
            await asyncio.gather(*jobs)
            code = await process.wait()
        except BaseException:
            await asyncio.shield(self._kill(process, jobs))
            raise
        return self._verdict(code)

    def _verdict(self, code: int) -> int:
        found = self._marks["stderr"].code
        if found is not None:
            return words.result_code(found)
        if not self._begun.is_set() and self._line.alive:
            raise self._line.untaken(code, self._marks["stderr"].unmarked.decode(errors="replace").strip())
        raise self._line.trouble()

    async def _listen(self, stream: str, reader: asyncio.StreamReader | None) -> None:
        marked = self._marks[stream]
        while reader and (data := await reader.read(CHUNK)):
            if own := marked.feed(data):
                self._take(stream, own)
            if stream == "stderr" and marked.word:
                self._begun.set()
        if rest := marked.rest():
            self._take(stream, rest)

    def _write(self, fd: int, writes: Callable[[IO[bytes]], None]) -> None:
        """In a thread: the script, then whatever it is."""
        with suppress(BrokenPipeError), os.fdopen(fd, "wb", CHUNK) as stream:
            stream.write(self._text)
            writes(stream)

    def _read(self, fd: int, reads: Callable[[IO[bytes]], None]) -> None:
        """In a thread: everything behind the first mark."""
        with os.fdopen(fd, "rb", CHUNK) as stream:
            for line in stream:
                if line.rstrip().endswith(self._mark):
                    reads(stream)
                    while stream.read(CHUNK):  # tar pads its end
                        pass
                    return

    async def _kill(self, process: asyncio.subprocess.Process, jobs: list[asyncio.Future[None]]) -> None:
        """End the command on the host with all its children, then our end of it."""
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORD):
                await self._known(process)
        number = self._marks["stderr"].word
        if number and number.isdigit() and self._marks["stderr"].code is None and self._line.alive:
            await kill_there(self._line, int(number))
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    async def _known(self, process: asyncio.subprocess.Process) -> None:
        """Until it has said its number, or ended."""
        marked = self._marks["stderr"]
        while marked.word is None and process.returncode is None and process.stderr:
            data = await process.stderr.read(CHUNK)
            if not data:
                return
            marked.feed(data)


async def kill_there(line: Line, number: int) -> None:
    """Kill a command's whole process group on its node, by a command of its own."""
    killer = await asyncio.create_subprocess_exec(
        *line.command(f"exec kill -9 -- -{number}"), stdin=-3, stdout=-3, stderr=-3, start_new_session=True
    )
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_WORD):
            await killer.wait()
    if killer.returncode is None:
        killer.kill()


def thread(work: Callable[[], None]) -> asyncio.Future[None]:
    """A thread of its own for blocking work: transfers must not wait for one another."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    def whole() -> None:
        error: BaseException | None = None
        try:
            work()
        except (HelioError, OSError, EOFError, ValueError) as trouble:
            error = trouble
        with suppress(RuntimeError):  # the loop is gone: nobody waits any more
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=whole, name="helio-copy", daemon=True).start()
    return future
