"""The page of what the store holds, made on a node as long as somebody looks at it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from heliostat.core.errors import Unavailable
from heliostat.core.resource import Ref
from heliostat.grounds.compose import entry
from heliostat.grounds.compose.services import BUCKET
from heliostat.grounds.compose.texts import text_of
from heliostat.shells.docker_cli import Docker

PATIENCE = 15.0  # seconds for it to say its port


@asynccontextmanager
async def browsed(docker: Docker, head: Ref, store: str) -> AsyncIterator[str]:
    """Where the head finds the page."""
    said = ", ".join(json.dumps(word) for word in (f"http://{store}", BUCKET, f"{entry.KEYS}/s3.json"))
    program = f"{text_of('browse')}\n\nmain({said})\n"
    process = await asyncio.create_subprocess_exec(
        *docker.words("exec", "-i", head.id, "python3", "-I", "-S", "-c", program),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=docker.env,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            line = await process.stdout.readline() if process.stdout else b""
        if not line:
            why = (await process.stderr.read()).decode(errors="replace") if process.stderr else ""
            raise Unavailable("the store's page did not start on the head", why=why.strip()[-300:])
        yield f"127.0.0.1:{int(line)}"
    except TimeoutError:
        raise Unavailable("the store's page did not start on the head", why="it says no port") from None
    finally:
        if process.stdin is not None:
            process.stdin.close()  # its end is the program's
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await process.wait()
