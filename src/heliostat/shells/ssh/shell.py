"""Implements the Shell port over a connection: run, push, pull, forward, attach."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import IO

from heliostat.core.errors import Denied, HelioError, Unavailable, UsageError
from heliostat.engine.ports import Result
from heliostat.shells.ssh import trees, words
from heliostat.shells.ssh.link import USER, Link, Pool
from heliostat.shells.ssh.words import Way
from heliostat.shells.talk import Take, Talk

TRIES = 5  # at finding a local port that nobody takes meanwhile


class SshShell:
    """One host. Commands run as whoever logs in, each in a process group of its own."""

    def __init__(
        self,
        pool: Pool,
        way: Way,
        *,
        home: str = "",
        python: str = "",
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._pool = pool
        self._way = way
        self._home = home
        self._path = os.path.dirname(python)
        self._env = dict(env or {})
        self._link: Link | None = None

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_output: Take | None = None,
    ) -> Result:
        kept: dict[str, list[bytes]] = {"stdout": [], "stderr": []}

        def keep(stream: str, data: bytes) -> None:
            kept[stream].append(data)

        cwd = cwd or self._home
        code = await self._play(words.command(command), stdin=stdin, env=env, cwd=cwd, take=on_output or keep)
        return Result(code, b"".join(kept["stdout"]), b"".join(kept["stderr"]))

    async def push(self, local: str, remote: str) -> None:
        source = Path(local)
        trees.must_exist(source)
        name = "" if source.is_dir() else source.name
        command = f"exec sh -c {words.quote(trees.UNPACK)} sh {words.place(remote)} {words.quote(name)}"
        said = bytearray()
        code = await self._play(
            command, writes=lambda stream: trees.write(source, stream), take=lambda _, data: said.extend(data)
        )
        if code:
            raise _not_copied(f"{local} to {self._way.host}:{remote}", said)

    async def pull(self, remote: str, local: str) -> None:
        command = f"exec sh -c {words.quote(trees.PACK)} sh {words.place(remote)}"
        said = bytearray()

        def take(stream: str, data: bytes) -> None:
            if stream == "stderr":
                said.extend(data)

        code = await self._play(command, reads=lambda stream: trees.read(stream, Path(local)), take=take)
        if code == 3:
            raise UsageError(
                f"{remote} is not on {self._way.host}",
                why=said.decode(errors="replace").strip(),
                fix="check the path",
            )
        if code > 1:  # 1: a file changed while it was read
            raise _not_copied(f"{self._way.host}:{remote}", said)

    def forward(self, host: str, port: int) -> AbstractAsyncContextManager[tuple[str, int]]:
        return self._forward(host, port)

    @asynccontextmanager
    async def _forward(self, host: str, port: int) -> AsyncIterator[tuple[str, int]]:
        link = await self._pool.link(self._way)
        for _ in range(TRIES):
            near = free_port()
            leads = f"127.0.0.1:{near}:{host if ':' not in host else f'[{host}]'}:{port}"
            code, said = await _control(link, "forward", leads)
            if code == 0:
                break
            if not link.alive:
                raise link.trouble()
        else:
            raise Unavailable(f"no port here could be led to {host}:{port}", why=said.strip())
        try:
            yield "127.0.0.1", near
        finally:
            if link.alive:
                await _control(link, "cancel", leads)

    def attach(self, command: Sequence[str] = ()) -> tuple[tuple[str, ...], Mapping[str, str]]:
        if self._link is None:
            raise Unavailable(f"{self._way.host} was not logged in to", why="the shell is closed")
        argv = ["ssh", *USER, "-o", "LogLevel=ERROR", "-t", "-S", self._link.path, "--", self._way.host]
        path = f'PATH={words.quote(self._path)}:"$PATH"; export PATH; ' if self._path else ""
        cwd = f"cd {words.place(self._home)} 2>/dev/null; " if self._home else ""
        then = words.command(command) if command else 'exec "${SHELL:-/bin/sh}" -l'
        return (*argv, f"exec sh -c {words.quote(path + cwd + then)}"), {}

    async def open(self) -> None:
        """Log in, so that errors come now and `attach` needs no waiting."""
        self._link = await self._pool.link(self._way)

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
        """Run a script's command there; `writes` and `reads` have stdin and stdout to themselves."""
        mark = f"helio-{secrets.token_hex(8)}"
        given = {**self._env, **(env or {})}
        text = words.script(mark, command, env=given, path=self._path, cwd=cwd)
        async with self._pool.session(self._way) as link:
            talk = Talk(link, mark, text, take)
            return await talk.play(stdin, writes, reads)


async def _control(link: Link, what: str, leads: str) -> tuple[int, str]:
    """Tell the connection itself something."""
    process = await asyncio.create_subprocess_exec(
        *link.words("-O", what, "-L", leads, "--", "host"), stdin=-3, stdout=-3, stderr=-1
    )
    _, err = await process.communicate()
    return process.returncode or 0, err.decode(errors="replace")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _not_copied(what: str, said: bytearray) -> HelioError:
    text = said.decode(errors="replace").strip()
    if "Permission denied" in text:
        return Denied(f"cannot copy {what}", why=text, fix="choose a place that you may write to")
    return Unavailable(f"cannot copy {what}", why=text or "it broke off", fix="try again")
