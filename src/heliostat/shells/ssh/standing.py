"""A command on a host that stays: it gets a line, answers with a line, and ends when we let go of it.

One login then carries any number of questions at the price of their bytes: no process is started for each,
neither here nor there.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from heliostat.engine.ports import Result
from heliostat.shells.ssh import words
from heliostat.shells.ssh.marks import Marked
from heliostat.shells.talk import CHUNK, LAST_WORD, Line, kill_there

PACE = 0.01  # seconds between two looks at what it said of itself, before it is killed


class Standing:
    """One such command on one line. Questions are put one after the other."""

    def __init__(self, line: Line, mark: str, command: str, opening: bytes, errors: str) -> None:
        """`opening` is what it reads before the first question, `errors` a file for its complaints."""
        text = words.script(mark, command, cwd="/")
        self._line, self._mark, self._name, self._errors = line, mark.encode(), mark, errors
        with open(errors, "wb") as file:
            self._process = subprocess.Popen(
                line.command(words.remote(len(text))),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                start_new_session=True,  # Ctrl-C is not for it
            )
        assert self._process.stdin is not None  # noqa: S101 - it was started with pipes
        assert self._process.stdout is not None  # noqa: S101
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._out, self._in = bytearray(text + opening), bytearray()
        self._begun = False  # its mark came: what follows is its own
        self._turn = asyncio.Lock()
        self._answer: asyncio.Future[bytes | None] | None = None
        self.over = False

    async def ask(self, question: bytes) -> bytes | Result:
        """The answer, without its end of line; what it left, where it ended instead."""
        async with self._turn:
            loop = asyncio.get_running_loop()
            self._answer = loop.create_future()
            self._out += question + b"\n"
            loop.add_reader(self._from, self._hear)
            loop.add_writer(self._to, self._say)
            try:
                answer = await self._answer
            except asyncio.CancelledError:
                self._hang_up(loop)
                await asyncio.shield(self._kill())
                raise
            self._hang_up(loop)
            if answer is not None:
                return answer
            self.over = True
            return await self._left()

    def _hang_up(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self._from)
        loop.remove_writer(self._to)

    def _say(self) -> None:
        try:
            del self._out[: os.write(self._to, self._out[:CHUNK])]
        except BlockingIOError:
            return
        except OSError:  # it has ended; the other pipe tells
            self._out.clear()
        if not self._out:
            asyncio.get_running_loop().remove_writer(self._to)

    def _hear(self) -> None:
        try:
            data = os.read(self._from, CHUNK)
        except BlockingIOError:
            return
        self._in += data
        while self._answer and not self._answer.done() and (end := self._in.find(b"\n")) >= 0:
            line = bytes(self._in[:end])
            del self._in[: end + 1]
            if self._begun:
                self._answer.set_result(line)
            self._begun = self._begun or line.rstrip().endswith(self._mark)
        if not data and self._answer and not self._answer.done():
            self._answer.set_result(None)

    async def _left(self) -> Result:
        """Its exit code and what it said instead of an answer, or the error that the way to it had."""
        code = await asyncio.to_thread(self._process.wait)
        marked, own = self._said()
        if marked.code is not None:
            return Result(words.result_code(marked.code), bytes(self._in), own)
        if not self._begun and self._line.alive:
            raise self._line.untaken(code, marked.unmarked.decode(errors="replace").strip())
        raise self._line.trouble()

    def _said(self) -> tuple[Marked, bytes]:
        marked = Marked(self._name)
        own = marked.feed(Path(self._errors).read_bytes())
        return marked, own + marked.rest()

    async def _kill(self) -> None:
        """End it there with all its children, in the middle of what it does."""
        self.over = True
        deadline = time.monotonic() + LAST_WORD
        while (number := self._said()[0].word) is None and self._process.poll() is None:
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(PACE)
        if number and number.isdigit() and self._line.alive:
            await kill_there(self._line, int(number))
        self.close()

    def close(self) -> None:
        """Let go of it: it reads the end of its input."""
        self.over = True
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close() if pipe else None
        with suppress(ProcessLookupError):
            self._process.kill()  # `ssh` here; the host sees the same as by its end
        self._process.wait()
