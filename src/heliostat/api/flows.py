"""What the methods of a cluster do with a site, beyond what the engine has ready."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from heliostat.core.event import Level, Note
from heliostat.core.executed import Executed
from heliostat.core.job import Needs
from heliostat.core.run import OnInterrupt, RunEnd
from heliostat.engine.look import listing
from heliostat.engine.losses import running_jobs
from heliostat.engine.patience import PATIENCE
from heliostat.engine.ports import Site


@dataclass(frozen=True, slots=True)
class Asked:
    """A run as somebody called for it."""

    command: str | os.PathLike[str] | Sequence[str]
    args: Sequence[object]
    needs: Needs | None
    env: Mapping[str, str] | None
    requirements: str | os.PathLike[str] | None
    runtime_env: Mapping[str, Any] | None
    name: str | None
    work: str | os.PathLike[str] | None
    cwd: str | os.PathLike[str] | None


async def enter(site: Site) -> bool:
    """Bring it up; whether there was nothing of it before."""
    from heliostat.engine.lifecycle import up

    before = await listing(site, patience=PATIENCE.answer)
    await up(site)
    return not before


async def leave(site: Site, ours: frozenset[str]) -> None:
    """Remove it, unless somebody else's jobs still run there."""
    from heliostat.engine.lifecycle import down

    refs = await listing(site, patience=PATIENCE.answer)
    others = [job.id for job in await running_jobs(site, refs) or () if job.id not in ours]
    if others:
        text = (
            f"{site.spec.cluster} stays up: {', '.join(others)} still runs there, and was not submitted here"
        )
        site.emit(Note(text=text, level=Level.WARN))
        return
    await down(site)


async def run(site: Site, asked: Asked, *, detach: bool, on_interrupt: OnInterrupt) -> RunEnd:
    """A file with its arguments, or a command."""
    from heliostat.engine.run import run as engine_run
    from heliostat.engine.target import run_ask

    file = isinstance(asked.command, str | os.PathLike)
    first = [os.fspath(asked.command)] if isinstance(asked.command, str | os.PathLike) else asked.command
    ask = run_ask(
        site.spec,
        [*first, *map(str, asked.args)],
        file=file,
        here=Path.cwd(),
        work=_path(asked.work),
        cwd=_path(asked.cwd),
        needs=asked.needs or Needs(),
        env=dict(asked.env or {}),
        requirements=_path(asked.requirements),
        runtime_env=dict(asked.runtime_env or {}),
        name=asked.name,
        detach=detach,
        on_interrupt=on_interrupt,
    )
    return await engine_run(site, ask)


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


async def execute(
    site: Site, words: Sequence[str], names: Sequence[str] | None, *, stdin: bytes, keep: bool
) -> tuple[Executed, ...]:
    """A command on nodes, where Ray's own commands find the cluster."""
    from heliostat.engine.execute import execute as engine_execute
    from heliostat.ray.surroundings import surroundings

    env_of = partial(surroundings, site.spec)
    return await engine_execute(site, words, names, env_of=env_of, stdin=stdin, keep=keep)


async def push(site: Site, local: Path, remote: str, names: Sequence[str] | None) -> None:
    from heliostat.engine.nodes import pick
    from heliostat.engine.sync.copy import push as copy

    await copy(site, await pick(site, names), local, remote)


async def pull(site: Site, remote: str, into: Path, names: Sequence[str] | None) -> None:
    from heliostat.engine.nodes import pick
    from heliostat.engine.sync.copy import pull as copy

    await copy(site, await pick(site, names), remote, into)
