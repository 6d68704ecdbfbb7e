"""Reach a node that is this machine."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

from heliostat.core.errors import UsageError
from heliostat.engine.ports import Result
from heliostat.shells.feed import feed

CHUNK = 65_536
INHERITED = ("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TZ", "TERM", "TMPDIR", "LD_LIBRARY_PATH")


class LocalShell:
    """Commands run as this user, each in a process group of its own; paths are this machine's."""

    def __init__(self, *, env: Mapping[str, str] | None = None, home: str = "", python: str = "") -> None:
        self._env = dict(env or {})
        self._home = home
        self._python = python

    def _environ(self, extra: Mapping[str, str] | None) -> dict[str, str]:
        """A node's environment, not that of whoever types: the node's Python first on PATH."""
        env = {key: os.environ[key] for key in os.environ if key in INHERITED or key.startswith("LC_")}
        if self._python:
            env["PATH"] = os.path.dirname(self._python) + os.pathsep + env.get("PATH", os.defpath)
        return {**env, **self._env, **(extra or {})}

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_output: Callable[[str, bytes], None] | None = None,
    ) -> Result:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environ(env),
                cwd=_path(cwd) if cwd else (self._home or None),
                start_new_session=True,
            )
        except FileNotFoundError as error:
            return Result(127, err=f"{error.filename}: not found\n".encode())
        except (PermissionError, NotADirectoryError) as error:
            return Result(126, err=f"{error.filename}: {error.strerror}\n".encode())
        kept: dict[str, list[bytes]] = {"stdout": [], "stderr": []}

        def take(stream: str, data: bytes) -> None:
            if on_output:
                on_output(stream, data)
            else:
                kept[stream].append(data)

        async def read(stream: str, reader: asyncio.StreamReader | None) -> None:
            while reader and (data := await reader.read(CHUNK)):
                take(stream, data)

        try:
            await asyncio.gather(
                feed(process, stdin), read("stdout", process.stdout), read("stderr", process.stderr)
            )
            code = await process.wait()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            for reader in (process.stdout, process.stderr):  # a full pipe that nobody reads never ends
                while reader and await reader.read(CHUNK):
                    continue
            await process.wait()
            raise
        return Result(code, b"".join(kept["stdout"]), b"".join(kept["stderr"]))

    async def push(self, local: str, remote: str) -> None:
        await asyncio.to_thread(copy, local, _path(remote))

    async def pull(self, remote: str, local: str) -> None:
        await asyncio.to_thread(copy, _path(remote), local)

    def forward(self, host: str, port: int) -> AbstractAsyncContextManager[tuple[str, int]]:
        """The node's loopback is ours."""

        @asynccontextmanager
        async def direct() -> AsyncIterator[tuple[str, int]]:
            yield host, port

        return direct()

    def attach(self, command: Sequence[str] = ()) -> tuple[tuple[str, ...], Mapping[str, str]]:
        env = self._environ(None)
        return tuple(command) or (env.get("SHELL") or "/bin/sh", "-i"), env


def _path(path: str) -> str:
    return os.path.expanduser(path)


def copy(source: str, target: str) -> None:
    """Copy a file, or a folder's contents; under its name a file always stands whole."""
    start = Path(source)
    if start.is_dir():
        for folder, folders, names in os.walk(start):
            into = Path(target, os.path.relpath(folder, start))
            into.mkdir(parents=True, exist_ok=True)
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            for name in (*names, *links):
                copy_file(Path(folder, name), into / name)
    elif start.exists():
        into = Path(target)
        if into.is_dir():
            into = into / start.name
        into.parent.mkdir(parents=True, exist_ok=True)
        copy_file(start, into)
    else:
        raise UsageError(f"{source} does not exist", why="there is nothing to copy", fix="check the path")


def copy_file(source: Path, target: Path) -> None:
    """Copy one file with its mode and times, or a link as a link."""
    import shutil  # most commands copy nothing
    import tempfile

    handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    os.close(handle)
    try:
        if source.is_symlink():
            os.unlink(part)
            os.symlink(os.readlink(source), part)
        else:
            shutil.copy2(source, part)
        os.replace(part, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part)
        raise
