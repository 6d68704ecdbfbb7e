"""One maker of a node at a time on this machine, whichever process it is in."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from heliostat.core.owner import Owner
from heliostat.engine import filelock
from heliostat.grounds.local.places import home_of, private_dir, trouble


@asynccontextmanager
async def held(owner: Owner, key: str) -> AsyncIterator[None]:
    """The lock of a node: a file in the cluster's home, let go by the system when its process ends."""
    folder = f"{home_of(owner)}/locks"
    private_dir(folder)
    try:
        # Never inherited: a node program that outlives us must not keep it.
        fd = os.open(f"{folder}/{key}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise trouble(error, f"cannot lock {key}") from error
    try:
        # Whoever holds it has a deadline of its own for each thing that it waits for.
        while not filelock.try_lock(fd):  # noqa: ASYNC110  (it is another process that lets go)
            await asyncio.sleep(0.02)
        yield
    finally:
        os.close(fd)
