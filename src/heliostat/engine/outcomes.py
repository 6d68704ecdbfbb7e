"""What every ground that does many things at once says of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence

from heliostat.core.resource import Outcome


async def as_they_come(deeds: Sequence[Coroutine[None, None, Outcome]]) -> AsyncGenerator[Outcome, None]:
    """The outcomes of deeds that are done at once; whoever stops listening ends them."""
    tasks = [asyncio.ensure_future(deed) for deed in deeds]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
