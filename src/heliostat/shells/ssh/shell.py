"""Implements the Shell port over a connection: run, push, pull, forward, attach."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import IO

from heliostat.core.errors import Unavailable
from heliostat.shells.played import Played
from heliostat.shells.ssh import words
from heliostat.shells.ssh.link import USER, Link, Pool
from heliostat.shells.ssh.standing import Standing
from heliostat.shells.ssh.words import Way
from heliostat.shells.talk import Take, Talk

TRIES = 5  # at finding a local port that nobody takes meanwhile


class SshShell(Played):
    """One host."""

    def __init__(
        self,
        pool: Pool,
        way: Way,
        *,
        home: str = "",
        python: str = "",
        env: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(way.host, home)
        self._pool = pool
        self._way = way
        self._path = os.path.dirname(python)
        self._env = dict(env or {})
        self._link: Link | None = None

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

    async def standing(self, command: Sequence[str], opening: bytes) -> Standing:
        """The command that stays on this connection; begun with `opening` where there is none yet."""
        link = await self._pool.link(self._way)
        if link.standing is None or link.standing.over:
            mark = f"helio-{secrets.token_hex(8)}"
            if link.standing is not None:
                link.standing.close()
            link.standing = Standing(link, mark, words.command(command), opening, f"{link.errors}.standing")
        return link.standing

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
