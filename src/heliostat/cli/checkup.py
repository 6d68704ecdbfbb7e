"""What `helio doctor` looks at: each check is a small function that returns findings."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from heliostat.cli.render.quantities import many, size
from heliostat.core.checked import Checked as Finding
from heliostat.core.checked import Mark

GB = 10**9
SHM = "/dev/shm"  # noqa: S108 - looked at, never written
FLOOR = (2, 52)  # the first Ray with token authentication


def python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("python", Mark.OK, f"{version} at {sys.executable}")


def ray() -> Iterator[Finding]:
    """Its version by its metadata: importing it would take a second."""
    try:
        version = importlib.metadata.version("ray")
    except importlib.metadata.PackageNotFoundError:
        yield Finding(
            "ray",
            Mark.BAD,
            "not in this Python: clusters on this machine need it, those on other places do not",
            "pip install 'heliostat[local]'",
        )
        return
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < FLOOR:
        yield Finding("ray", Mark.BAD, f"{version} cannot authenticate", "pip install 'ray[default]>=2.52'")
    elif importlib.util.find_spec("aiohttp") is None:
        yield Finding(
            "ray", Mark.BAD, f"{version} without its dashboard and Jobs API", "pip install 'ray[default]'"
        )
    else:
        yield Finding("ray", Mark.OK, version)


def ports() -> Iterator[Finding]:
    """Every daemon listens on a free port of loopback."""
    held: list[socket.socket] = []
    try:
        for _ in range(64):
            held.append(socket.socket())
            held[-1].bind(("127.0.0.1", 0))
        yield Finding("ports", Mark.OK, "free ports on loopback")
    except OSError as error:
        yield Finding(
            "ports", Mark.BAD, f"no {len(held)} free ports: {error.strerror}", "end what holds them"
        )
    finally:
        for each in held:
            each.close()


def shared_memory() -> Iterator[Finding]:
    """Ray's object store lives there; with too little it falls back to the disk."""
    if not os.path.isdir(SHM):
        return
    free = shutil.disk_usage(SHM).free
    if free < GB:
        yield Finding(
            SHM, Mark.WARN, f"{size(free)} free: objects go to the slow disk",
            "in a container: --shm-size 4g",
        )  # fmt: skip
    else:
        yield Finding(SHM, Mark.OK, f"{size(free)} free")


def disk() -> Iterator[Finding]:
    for folder in dict.fromkeys((tempfile.gettempdir(), os.path.expanduser("~"))):
        try:
            usage = shutil.disk_usage(folder)
        except OSError as error:
            yield Finding(
                "disk", Mark.BAD, f"{folder}: {error.strerror}", "set TMPDIR to a folder that exists"
            )
            continue
        # Ray's own limit: beyond 95 % it spills no more objects.
        full = usage.free < GB or usage.free / usage.total < 0.05
        text = f"{size(usage.free)} free at {folder}"
        if full:
            yield Finding("disk", Mark.WARN, f"{text}: Ray stops spilling", "make room, or set TMPDIR")
        else:
            yield Finding("disk", Mark.OK, text)


def memory() -> Iterator[Finding]:
    total, free = _meminfo("MemTotal"), _meminfo("MemAvailable")
    if total is None or free is None:
        return
    text = f"{size(free)} of {size(total)} available, {many(os.cpu_count() or 1, 'CPU')}"
    if free < 2 * GB:
        yield Finding("memory", Mark.WARN, f"{text}: a head and two workers need about 1 GB", "end something")
    else:
        yield Finding("memory", Mark.OK, text)


def _meminfo(key: str) -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":")), None)


def limits() -> Iterator[Finding]:
    try:
        import resource
    except ImportError:  # Windows has none
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = "unlimited" if hard == resource.RLIM_INFINITY else str(hard)
    text = f"{soft} open files (at most {most})"
    if 0 <= soft < 4096:
        yield Finding("limits", Mark.WARN, f"{text}: many actors need more", f"ulimit -n {most}")
    else:
        yield Finding("limits", Mark.OK, text)


def programs() -> Iterator[Finding]:
    """What other places are reached with: lacking one is no fault."""
    for name, place in (("ssh", "ssh"), ("docker", "compose"), ("kubectl", "kubernetes")):
        path = shutil.which(name)
        text = path or f"not here: needed for where: {place} only"
        yield Finding(name, Mark.OK, text)


def surroundings() -> Iterator[Finding]:
    """What other Ray programs left in this person's environment."""
    if address := os.environ.get("RAY_ADDRESS"):
        yield Finding(
            "RAY_ADDRESS", Mark.WARN, f"{address}: Ray scripts that you start by hand go there",
            "unset RAY_ADDRESS",
        )  # fmt: skip
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        if name in os.environ:
            text = "set: heliostat's clusters have their own, scripts started by hand use this"
            yield Finding(name, Mark.WARN, text, f"unset {name}")
    token = Path.home() / ".ray" / "auth_token"
    if token.exists():
        loose = token.stat().st_mode & 0o077
        yield Finding(
            "~/.ray/auth_token", Mark.WARN if loose else Mark.OK,
            "any `ray start` of yours uses it" + (", and other users can read it" if loose else ""),
            f"chmod 600 {token}" if loose else "",
        )  # fmt: skip


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    python, ray, ports, shared_memory, disk, memory, limits, programs, surroundings,
)  # fmt: skip


def findings() -> Iterator[Finding]:
    """All of them, in the order in which they are shown."""
    for check in CHECKS:
        yield from check()
