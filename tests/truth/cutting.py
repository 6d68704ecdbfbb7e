"""The local place with a bad line: HELIO_GROUNDS=local=tests.truth.cutting:CuttingGround in a real `helio`.

Every connection breaks after some bytes, as often as HELIO_CUTS says; how often it did is counted in the file
that HELIO_CUTS_FILE names, one byte for each.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from heliostat.core.resource import Ref
from heliostat.engine.ports import Shell
from heliostat.grounds.local.ground import LocalGround
from heliostat.shells.local import LocalShell

MOST = 2_500  # bytes that a connection may carry towards us before it breaks


class CuttingGround(LocalGround):
    def shell(self, node: Ref) -> AbstractAsyncContextManager[Shell]:
        return nullcontext(CuttingShell(home=node.facts["home"], python=node.facts["python"]))


class CuttingShell(LocalShell):
    @asynccontextmanager
    async def forward(self, host: str, port: int) -> AsyncIterator[tuple[str, int]]:
        line = BadLine(host, port)
        server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[:2]
        finally:
            server.close()


class BadLine:
    """Leads somewhere, for a while."""

    left = int(os.environ.get("HELIO_CUTS", "0"))  # of all lines of this process

    dice = random.Random(7)  # noqa: S311  # to be repeated, not to be secret

    def __init__(self, host: str, port: int) -> None:
        self.target = host, port

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far, to = await asyncio.open_connection(*self.target)
        ways = [
            asyncio.ensure_future(self.carry(reader, to, None)),
            asyncio.ensure_future(self.carry(far, writer, self.dice.randrange(1, MOST))),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for end in (writer, to):
            end.close()

    async def carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None
    ) -> None:
        """Until either end leaves, or so many bytes are through and a cut is due."""
        carried = 0
        while data := await reader.read(1 << 16):
            if limit is not None and carried + len(data) >= limit and BadLine.left > 0:
                BadLine.left -= 1
                with open(os.environ["HELIO_CUTS_FILE"], "ab") as file:
                    file.write(b"x")
                writer.write(data[: limit - carried])  # what was sent arrives, then nothing
                await writer.drain()
                return
            carried += len(data)
            writer.write(data)
            await writer.drain()
