"""Standard input of a process, whole."""

from __future__ import annotations

import asyncio
from contextlib import suppress


async def feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    if process.stdin is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
