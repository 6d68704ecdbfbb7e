"""Have nodes bring one another what one of them got from here."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Protocol

from heliostat.core.errors import HelioError
from heliostat.core.resource import Ref
from heliostat.engine.ports import Shell
from heliostat.engine.sync.call import order
from heliostat.engine.sync.stores import Meets


class Reaching(Protocol):
    """How nodes are reached: a ground, or what a ground itself knows of them while it makes them."""

    def shell(self, node: Ref) -> AbstractAsyncContextManager[Shell]: ...


async def spread(ground: Reaching, source: Ref, others: Sequence[Ref], session: str) -> None:
    """Everything of this session that `source` has, to the others; what does not arrive is sent from here."""
    at = ground.meeting(source) if isinstance(ground, Meets) else ""
    if not at or not others:
        return
    ask = {"session": session, "secret": secrets.token_hex(32), "ip": at}
    said = bytearray()
    told: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def hear(stream: str, data: bytes) -> None:
        if stream == "stdout":
            said.extend(data)
        if b"\n" in said and not told.done():
            told.set_result(json.loads(said).get("port", 0))

    async def offer() -> None:
        try:
            async with ground.shell(source) as shell:
                await order(shell, source, "offer", {**ask, "count": len(others)}, on_output=hear)
        finally:
            if not told.done():
                told.set_result(0)

    async def fetch(ref: Ref, port: int) -> None:
        async with ground.shell(ref) as shell:
            await order(shell, ref, "fetch", {**ask, "port": port})

    offering = asyncio.ensure_future(offer())
    came: list[object] = []
    try:
        if port := await told:
            came = await asyncio.gather(*(fetch(ref, port) for ref in others), return_exceptions=True)
    finally:
        if not came or any(came):
            offering.cancel()  # it would wait for those that did not come
        with suppress(HelioError, asyncio.CancelledError):
            await offering
