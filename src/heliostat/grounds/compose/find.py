"""List what exists, by the labels on it: containers, volumes and networks of the engine."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from heliostat.core.owner import Owner
from heliostat.core.resource import HEAD, NODE, SERVICE, Ref, State
from heliostat.grounds.compose.marks import EXTERNAL, filters, read
from heliostat.grounds.compose.service import PORTS
from heliostat.ray.paths import token_path
from heliostat.shells.docker_cli import Docker

_STATES = {
    "running": State.READY,
    "restarting": State.PENDING,
    "created": State.PENDING,
    "removing": State.LEAVING,
}
_BROKEN = re.compile(r" \S+: broken: (.+)", re.DOTALL)
SETTING_UP = "doing"


async def listing(docker: Docker, owner: Owner) -> tuple[Ref, ...]:
    """Everything of this owner on this engine, now."""
    kinds = (_containers, _volumes, _networks)
    found = await asyncio.gather(*(kind(docker, owner) for kind in kinds))
    return tuple(ref for refs in found for ref in refs)


async def _ids(docker: Docker, what: str, owner: Owner, *words: str) -> list[str]:
    return (await docker.ask("cannot list what is there", what, "ls", "-q", *words, *filters(owner))).split()


async def _networks(docker: Docker, owner: Owner) -> list[Ref]:
    seen = await docker.inspect("network", await _ids(docker, "network", owner, "--no-trunc"))
    refs = [read(one["Labels"], id=one["Id"], removal=f"docker network rm {one['Name']}") for one in seen]
    return [ref for ref in refs if ref]


async def _volumes(docker: Docker, owner: Owner) -> list[Ref]:
    seen = await docker.inspect("volume", await _ids(docker, "volume", owner))
    refs = [read(one["Labels"], id=one["Name"], removal=f"docker volume rm {one['Name']}") for one in seen]
    # One that only stands for a volume of somebody else's holds nothing that could be lost.
    return [replace(ref, data=ref.data and EXTERNAL not in ref.facts) for ref in refs if ref]


async def _containers(docker: Docker, owner: Owner) -> list[Ref]:
    seen = await docker.inspect("container", await _ids(docker, "container", owner, "-a", "--no-trunc"))
    return [ref for ref in await asyncio.gather(*(_container(docker, one) for one in seen)) if ref]


async def _container(docker: Docker, seen: Mapping[str, Any]) -> Ref | None:
    name = str(seen["Name"]).lstrip("/")
    state = _STATES.get(seen["State"]["Status"], State.BROKEN)
    health = (seen["State"].get("Health") or {}).get("Status", "")
    facts = {"container": name, "image": str(seen["Config"]["Image"])}
    ref = read(
        seen["Config"]["Labels"],
        id=seen["Id"],
        state=state,
        removal=f"docker rm -fv {name}",
        facts=facts,
    )
    if ref is None:
        return None
    more: dict[str, str] = {}
    if ref.kind == SERVICE and state is State.READY:
        ref = replace(ref, state=State.PENDING if health == "starting" else state)
        more["health"] = health
    if state is State.BROKEN:
        more["why"] = await why_ended(docker, seen)
    elif ref.kind == NODE and ref.key == HEAD:
        more |= _head(ref, seen)
    if ref.kind == NODE and state is State.READY and ref.facts.get("prepares"):
        more |= await _phase(docker, ref)
    return replace(ref, facts={**ref.facts, **more})


def _head(ref: Ref, seen: Mapping[str, Any]) -> dict[str, str]:
    """How the head is reached by the others, and where its dashboard listens."""
    networks: Sequence[Mapping[str, Any]] = list(seen["NetworkSettings"]["Networks"].values())
    address = next((one["IPAddress"] for one in networks if one.get("IPAddress")), "")
    told = {"dashboard": f"127.0.0.1:{PORTS['dashboard']}"}
    if address:
        told["gcs"] = f"{address}:{PORTS['gcs']}"
    if ref.facts.get("auth") == "token":
        told["token_path"] = token_path(ref.facts["home"])
    return told


async def _phase(docker: Docker, ref: Ref) -> dict[str, str]:
    """Whether it is still setting itself up, which has a time limit of its own."""
    path = f"{ref.facts['home']}/nodes/{ref.key}/state.json"
    result = await docker.run("exec", ref.id, "grep", "-q", '"phase": "setup"', path, patience=30)
    return {SETTING_UP: "setting up"} if result.code == 0 else {}


async def why_ended(docker: Docker, seen: Mapping[str, Any]) -> str:
    """The best reason known for a container that does not run."""
    state = seen["State"]
    if state.get("OOMKilled"):
        return "it needed more memory than it was given, and was ended by the system"
    result = await docker.run("logs", "--tail", "40", seen["Id"], patience=30)
    lines = (result.err or result.out).decode(errors="replace").strip()
    told = _BROKEN.search(lines)
    if told:
        return told[1].strip()
    if state.get("Error"):
        return str(state["Error"])
    last = "\n".join(lines.splitlines()[-3:]) if state.get("ExitCode") not in (0, 137) else ""
    return f"its container ended with {state.get('ExitCode')}" + (f":\n{last}" if last else "")
