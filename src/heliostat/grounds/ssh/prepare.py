"""Run scripts on a host before there is anything of ours, and tell of their steps."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from heliostat.core.errors import HelioError, MissingPart, TimedOut, Unavailable, UsageError
from heliostat.core.event import Step
from heliostat.engine.ports import Emit
from heliostat.grounds.ssh.hosts import Hosts
from heliostat.ray import bootstrap, bundle, host_setup

PATIENCE = 3600.0  # seconds for all that is downloaded or set up by one script


@dataclass(frozen=True, slots=True)
class Played:
    """What a script left: its exit code, its lines, and what it said of its failure."""

    code: int
    lines: list[str]
    errors: str

    @property
    def steps(self) -> list[str]:
        return [one.removeprefix(bootstrap.STEP) for one in self.lines if one.startswith(bootstrap.STEP)]


async def play(
    hosts: Hosts, host: str, name: str, text: str, env: Mapping[str, str], emit: Emit, *, cwd: str = "/"
) -> Played:
    """Run it; each of its steps is told as it begins. Script and environment travel by the channel."""
    said, errors = bytearray(), bytearray()

    def hear(stream: str, data: bytes) -> None:
        if stream == "stderr":
            errors.extend(data)
            return
        done = said.count(b"\n")
        said.extend(data)
        for line in said.decode(errors="replace").splitlines(keepends=True)[done:]:
            if line.startswith(bootstrap.STEP) and line.endswith("\n"):
                emit(Step(subject=name, state="preparing", detail=line.removeprefix(bootstrap.STEP).strip()))

    try:
        async with asyncio.timeout(PATIENCE), hosts.shell(host) as shell:
            result = await shell.run(["sh", "-s"], stdin=text.encode(), env=env, on_output=hear, cwd=cwd)
    except TimeoutError:
        raise TimedOut(
            f"{host} was not ready within {PATIENCE:.0f} s", why=said.decode(errors="replace").strip()
        ) from None
    lines = said.decode(errors="replace").splitlines()
    return Played(result.code, lines, errors.decode(errors="replace").strip())


async def prepare(
    hosts: Hosts, host: str, name: str, wanted: bootstrap.Wanted, env: Mapping[str, str], emit: Emit
) -> tuple[str, dict[str, str]]:
    """A Python with that Ray on that host, and what programs there must know; quick where it is there."""
    wanted = await _bundled(hosts, host, name, wanted, emit)
    done = await play(hosts, host, name, bootstrap.script(wanted), env, emit)
    if done.code == 0:
        python = done.lines[-1].removeprefix(bootstrap.PYTHON)
        return python, bundle.links(python, wanted.bundle)
    raise _failed(host, done, wanted)


async def _bundled(
    hosts: Hosts, host: str, name: str, wanted: bootstrap.Wanted, emit: Emit
) -> bootstrap.Wanted:
    """Bring a bundle that fits, where there is one here and the host does not have it."""
    offered = bundle.fitting(wanted.ray, wanted.python)
    if not offered:
        return wanted
    async with hosts.shell(host) as shell:
        about = await shell.run(["sh", "-c", _ABOUT], cwd="~")
        machine, *there = about.out.decode(errors="replace").split()
        fits = next((one for one in offered if one.machine == machine), None)
        if fits is None:
            return wanted
        wanted = replace(wanted, python=wanted.python or fits.python, bundle=fits.there)
        if fits.there not in there:
            emit(Step(subject=name, state="preparing", detail=f"sending {fits.name}"))
            coming = f".{secrets.token_hex(8)}"
            await shell.push(str(fits.folder), f"{bundle.FOLDER}/{coming}")
            moved = await shell.run(["sh", "-c", _MOVE, "sh", coming, fits.there], cwd=bundle.FOLDER)
            if moved.code:
                why = moved.err.decode(errors="replace").strip()
                raise Unavailable(f"{host} cannot keep the bundle", why=why, fix="run this again")
    return wanted


_ABOUT = "uname -m; ls .cache/heliostat/bundles 2>/dev/null"
_MOVE = 'mv -T -- "$1" "$2" 2>/dev/null || { rm -rf -- "$1"; test -d "$2"; }  # of two, the first'


def _failed(host: str, done: Played, wanted: bootstrap.Wanted) -> HelioError:
    if done.code == bootstrap.NOTHING_FITS:
        return MissingPart(
            f"{host} has no Python for Ray {wanted.ray}",
            why=done.steps[-1] if done.steps else "nothing fits",
            fix="install uv there (no root is needed), or give python: the path of an environment with Ray",
        )
    doing = done.steps[-1] if done.steps else "the preparation"
    return Unavailable(
        f"{host}: {doing} failed with exit code {done.code}",
        why=done.errors,
        fix=f"see {host}:~/.cache/heliostat/python/{wanted.digest}.log; `helio up` tries it again. "
        "Hosts without internet get Ray from here after `helio bundle`",
    )


async def set_up(
    hosts: Hosts, host: str, cluster_id: str, commands: Sequence[str], env: Mapping[str, str], emit: Emit
) -> None:
    """The file's `host_setup`; quick where it was done already."""
    text = host_setup.script(commands, cluster_id, host)
    done = await play(hosts, host, host, text, env, emit, cwd="~")
    if done.code:
        command = done.steps[-1] if done.steps else commands[0]
        log = host_setup.log_of(cluster_id, commands)
        raise UsageError(
            f"{host}: `{command}` of host_setup ended with exit code {done.code}",
            why=done.errors,
            fix=f"all that it said is in {host}:{log}; `helio up` tries it again there",
        )
