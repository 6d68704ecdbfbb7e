"""Bring back what a run made."""

from __future__ import annotations

import asyncio
import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heliostat.core.event import Level, Note
from heliostat.core.resource import Ref
from heliostat.core.tree import content
from heliostat.engine.ports import Site
from heliostat.engine.sync.call import order
from heliostat.engine.sync.digests import SECRET, read
from heliostat.engine.sync.receive import PARTS, Receiver, parts_of
from heliostat.engine.sync.scan import scan
from heliostat.engine.sync.stores import distinct
from heliostat.engine.sync.work import reporter, run_dir

# Marks the run as fetched, too: its folder need not be kept for ever.
EMPTY = '[ -d "$1" ] && [ -z "$(ls -A "$1/outputs" 2>/dev/null)" ] && : >"$1/fetched"'

Roots = Sequence[tuple[str, str, str]]  # a folder there, a pattern in it, where that goes below `into`


async def fetch(
    site: Site, nodes: Sequence[Ref], run: str, patterns: Sequence[str], into: Path
) -> tuple[str, ...]:
    """Bring these parts of the run's work folder, and all of its outputs folder, into `into`."""
    taken: frozenset[str] = frozenset()
    missing = set(range(len(patterns)))
    for ref in distinct(nodes):
        at = run_dir(ref, run)
        if not patterns and await _nothing(site, ref, at):
            continue
        # What lies on every disk as it was sent is no result of the other nodes.
        ask = {"ended": run, "fresh": run if taken else ""}
        roots = [*((f"{at}/work", pattern, "") for pattern in patterns), (f"{at}/outputs", "", "")]
        came = await receive(site, ref, roots, into, taken=taken, more=ask)
        missing &= set((came.end or {}).get("missing", ()))
        taken |= frozenset(came.names)
        if came.outside:
            text = f"left on {ref.key}, links that lead elsewhere: {', '.join(came.outside[:8])}"
            site.emit(Note(text=text, level=Level.WARN))
    for number in sorted(missing):
        text = f"there is no {patterns[number]} in the work folder of {run}"
        site.emit(Note(text=text, level=Level.WARN))
    return tuple(sorted(taken))


async def _nothing(site: Site, ref: Ref, at: str) -> bool:
    """Whether the run left no outputs there, as most do: asked by the shell, which is there at once."""
    async with site.ground.shell(ref) as shell:
        return (await shell.run(["sh", "-c", EMPTY, "sh", at])).code == 0


async def receive(
    site: Site,
    ref: Ref,
    roots: Roots,
    into: Path,
    *,
    taken: frozenset[str] = frozenset(),
    single: Path | None = None,
    more: dict[str, Any] | None = None,
) -> Receiver:
    """One stream from one node: what is here already does not travel, what was cut goes on."""
    have = await asyncio.to_thread(_have, into, single)
    receiver = Receiver(into, ref.key, taken, reporter(site.emit, f"files from {ref.key}"))
    receiver.single = single
    body = await asyncio.to_thread(zlib.compress, json.dumps(have).encode(), 1)
    async with site.ground.shell(ref) as shell:
        try:
            ask = {"roots": list(roots), **(more or {})}
            await order(shell, ref, "give", ask, body, on_output=receiver.feed)
        finally:
            await asyncio.to_thread(receiver.close)
    if receiver.end is None:
        raise receiver.cut()
    return receiver


def _have(into: Path, single: Path | None) -> dict[str, dict[str, Any]]:
    """What stands here, by path, as the node needs it to leave that out."""
    have: dict[str, dict[str, Any]] = {}
    if single is None and into.is_dir():
        for path, value in scan(into, git=False).tree.items():
            found = content(value)
            if found is not None and not path.startswith(PARTS.encode()):
                name = path.decode("utf-8", "surrogateescape")
                have[name] = {"size": found[1], "digest": found[0].decode()}
    elif single is not None and single.is_file():
        found = content(read(os.fsencode(single))[0].removeprefix(SECRET))
        if found is not None:
            have[""] = {"size": found[1], "digest": found[0].decode()}
    for name, part in parts_of(single.parent if single else into).items():
        have.setdefault(name, {})["part"] = part
    return have
