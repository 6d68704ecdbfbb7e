"""Is the head's API up, does it know our token, and does it refuse everybody else? The proof for `doctor`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from heliostat.core.errors import Denied, HelioError
from heliostat.core.resource import Ref
from heliostat.engine.ports import Ground
from heliostat.ray.connect import Tunnels

GUARDED = ("/api/version", "/api/jobs/", "/api/v0/nodes", "/nodes?view=summary")
AGENT_GUARDED = ("/logs/", "/api/job_agent/jobs/x/logs")
WRONG = "0" * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What was seen, in order of importance."""

    up: bool
    version: str = ""
    session: str = ""  # Ray's name of this life of the head
    admitted: bool = False  # our token is accepted
    guarded: tuple[str, ...] = ()  # what refused a request without the token, and one with a wrong one
    open: tuple[str, ...] = ()  # what did not: each is a hole
    why: str = ""

    @property
    def safe(self) -> bool:
        return self.up and self.admitted and bool(self.guarded) and not self.open


async def examine(ground: Ground, head: Ref) -> Health:
    """Ask the head's dashboard and every node's agent, with our token, with none, and with a wrong one."""
    async with _tunnels(ground, head) as tunnels:
        address = head.facts["dashboard"]
        token = await tunnels.token()
        ours = tunnels.server("Ray's dashboard", address, token)
        try:
            version = (await ours.ask("GET", "/api/version")).json()
            summary = (await ours.ask("GET", "/nodes?view=summary")).json()
        except Denied as error:
            return Health(up=True, why=str(error))
        except HelioError as error:
            return Health(up=False, why=str(error))
        places = [(address, path) for path in GUARDED]
        places += [(agent, path) for agent in agents(summary) for path in AGENT_GUARDED]
        refused = await asyncio.gather(*(_refused(tunnels, *place) for place in places))
    names = [f"{place}{path}" for place, path in places]
    return Health(
        up=True,
        version=version["ray_version"],
        session=version.get("session_name", ""),
        admitted=True,
        guarded=tuple(name for name, no in zip(names, refused, strict=True) if no),
        open=tuple(name for name, no in zip(names, refused, strict=True) if not no),
    )


def agents(summary: dict[str, object]) -> tuple[str, ...]:
    """host:port of every living node's agent, from the dashboard's summary."""
    data = summary.get("data")
    rows = data.get("summary", []) if isinstance(data, dict) else []
    found = []
    for row in rows:
        raylet = row.get("raylet") or {}
        if raylet.get("state") == "ALIVE" and raylet.get("dashboardAgentListenPort"):
            found.append(f"{raylet['nodeManagerAddress']}:{raylet['dashboardAgentListenPort']}")
    return tuple(found)


async def _refused(tunnels: Tunnels, address: str, path: str) -> bool:
    """Whether it turns away who has no token, and who has a wrong one."""
    for token in (None, WRONG):
        try:
            await tunnels.server(address, address, token).ask("GET", path, once=True)
        except Denied:
            continue
        return False
    return True


@asynccontextmanager
async def _tunnels(ground: Ground, head: Ref) -> AsyncIterator[Tunnels]:
    tunnels = Tunnels(ground, head)
    try:
        yield tunnels
    finally:
        await tunnels.close()
