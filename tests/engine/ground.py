"""Nodes that are folders of this machine, reached by the real local shell, perhaps over a bad line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from heliostat.core.event import Event
from heliostat.core.owner import Owner
from heliostat.core.resource import Ref
from heliostat.core.spec import Spec
from heliostat.engine.ports import Result, Shell, Site
from heliostat.shells.local import LocalShell
from heliostat.testing.fake import FakeGround, FakePlace, fake_site


class Wire(LocalShell):
    """Counts the commands and their input; dies after so many bytes in either direction."""

    def __init__(self, home: str, *, up: int | None = None, down: int | None = None) -> None:
        super().__init__(home=home, env={"HOME": f"{home}/account"})
        self.commands = self.sent = 0
        self.up, self.down = up, down

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_output: Callable[[str, bytes], None] | None = None,
    ) -> Result:
        self.commands += 1
        self.sent += len(stdin)
        if self.up is not None and self.sent > self.up:
            room = max(0, len(stdin) - (self.sent - self.up))
            await super().run(command, stdin=stdin[:room], env=env, cwd=cwd)
            return Result(255, err=b"Connection reset by peer")
        got = 0

        def take(stream: str, data: bytes) -> None:
            nonlocal got
            got += len(data)
            if self.down is not None and got > self.down:
                raise ConnectionResetError("Connection reset by peer")
            if on_output is not None:
                on_output(stream, data)

        try:
            return await super().run(
                command, stdin=stdin, env=env, cwd=cwd, on_output=take if on_output else None
            )
        except ConnectionResetError:
            return Result(255, err=b"Connection reset by peer")


class Disks(FakeGround):
    """Every node has its disk, or the one that it is told."""

    def __init__(self, folder: Path) -> None:
        super().__init__(FakePlace())
        self.folder = folder
        self.wires: dict[str, Wire] = {}

    def node(self, name: str, home: str = "") -> Ref:
        at = self.folder / (home or name)
        (at / "account").mkdir(parents=True, exist_ok=True)
        facts = {"home": str(at), "python": sys.executable, "host": home or name}
        return Ref(kind="node", key=name, id=name, owner=Owner("me", "c"), facts=facts)

    def wire(self, ref: Ref, *, up: int | None = None, down: int | None = None) -> Wire:
        wire = self.wires[ref.key] = Wire(ref.facts["home"], up=up, down=down)
        return wire

    def shell(  # type: ignore[override]  # any context manager will do
        self, node: Ref
    ) -> AbstractAsyncContextManager[Shell]:
        return nullcontext(self.wires.get(node.key) or self.wire(node))


def site_of(disks: Disks, events: Callable[[Event], None] = lambda _: None) -> Site:
    return replace(fake_site(Spec(cluster="c")), ground=disks, emit=events)
