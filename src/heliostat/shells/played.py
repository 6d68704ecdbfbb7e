"""The part of a Shell that is the same wherever commands are played over a line: run, push, pull."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from heliostat.core.errors import Denied, HelioError, Unavailable, UsageError
from heliostat.engine.ports import Result
from heliostat.shells.ssh import trees, words
from heliostat.shells.talk import Take


class Played(ABC):
    """One node behind a line. Commands run as whoever logs in there, each in a process group of its own."""

    def __init__(self, name: str, home: str) -> None:
        self._name = name  # as a person calls it
        self._home = home

    @abstractmethod
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
            raise _not_copied(f"{local} to {self._name}:{remote}", said)

    async def pull(self, remote: str, local: str) -> None:
        command = f"exec sh -c {words.quote(trees.PACK)} sh {words.place(remote)}"
        said = bytearray()

        def take(stream: str, data: bytes) -> None:
            if stream == "stderr":
                said.extend(data)

        code = await self._play(command, reads=lambda stream: trees.read(stream, Path(local)), take=take)
        if code == 3:
            raise UsageError(f"{remote} is not on {self._name}", why=_text(said), fix="check the path")
        if code > 1:  # 1: a file changed while it was read
            raise _not_copied(f"{self._name}:{remote}", said)


def _not_copied(what: str, said: bytearray) -> HelioError:
    text = _text(said)
    if "Permission denied" in text:
        return Denied(f"cannot copy {what}", why=text, fix="choose a place that you may write to")
    return Unavailable(f"cannot copy {what}", why=text or "it broke off", fix="try again")


def _text(said: bytearray) -> str:
    return said.decode(errors="replace").strip()
