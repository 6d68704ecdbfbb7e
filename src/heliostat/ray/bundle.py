"""Wheels of an exact Ray for hosts without internet: pip brings them here, the bootstrap installs them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from heliostat.core.errors import MissingPart, Unavailable
from heliostat.engine.home import cache_dir
from heliostat.ray.bootstrap import EXTRAS

MACHINES = ("x86_64", "aarch64")
LIST = "requirements.txt"
FOLDER = "~/.cache/heliostat/bundles"  # on hosts
OLDEST, NEWEST = 5, 28  # of glibc 2.x: what Debian 10, RHEL 8 and anything newer have
Heard = Callable[[bytes], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What one is for."""

    ray: str
    python: str  # 3.11
    machine: str = MACHINES[0]

    @property
    def name(self) -> str:
        return f"ray-{self.ray}-py{self.python}-{self.machine}"

    @property
    def folder(self) -> Path:
        """Where it is here."""
        return cache_dir() / "bundles" / self.name

    @property
    def there(self) -> str:
        """What its folder is called on hosts: other packages, another name."""
        names = "\n".join(sorted(path.name for path in self.folder.iterdir()))
        return f"{self.name}-{hashlib.sha256(names.encode()).hexdigest()[:8]}"


def links(python: str, there: str) -> dict[str, str]:
    """What tells pip and uv on a host of its wheels, beside the interpreter that was made there."""
    cache = python.removesuffix("/bin/python").rpartition("/python/")[0]
    return dict.fromkeys(("PIP_FIND_LINKS", "UV_FIND_LINKS"), f"{cache}/bundles/{there}") if there else {}


def minor(python: str) -> str:
    """The release that wheels are made for.

    >>> minor("3.11.7"), minor("")
    ('3.11', '')
    """
    return ".".join(python.split(".")[:2])


def fitting(ray: str, python: str) -> tuple[Bundle, ...]:
    """The bundles here for that Ray, and for that Python if one is wanted; the newest Python first."""
    pythons = [minor(python)] if python else ["3.13", "3.12", "3.11", "3.10"]
    every = [Bundle(ray=ray, python=one, machine=machine) for one in pythons for machine in MACHINES]
    return tuple(one for one in every if one.folder.is_dir())


def platforms(machine: str) -> Iterator[str]:
    """What pip calls the systems whose wheels run there.

    >>> list(platforms("x86_64"))[:2]
    ['manylinux_2_28_x86_64', 'manylinux_2_27_x86_64']
    """
    yield from (f"manylinux_2_{number}_{machine}" for number in range(NEWEST, OLDEST - 1, -1))
    yield from (f"{name}_{machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1"))


def resolving(bundle: Bundle) -> list[str]:
    """uv says which packages those are on the hosts, whatever system and Python this is."""
    return [
        "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--only-binary", ":all:",
        "--python-version", bundle.python,
        "--python-platform", f"{bundle.machine}-manylinux_2_{NEWEST}", "-",
    ]  # fmt: skip


def downloading(bundle: Bundle, into: Path, *, pinned: bool) -> list[str]:
    """pip brings them; which, it reads from a list beside them."""
    words = [sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check"]
    words += ["--only-binary=:all:", "--python-version", bundle.python, "--implementation", "cp"]
    words += [word for name in platforms(bundle.machine) for word in ("--platform", name)]
    return [*words, *(["--no-deps"] if pinned else []), "--dest", str(into), "-r", str(into / LIST)]


async def gather(bundle: Bundle, packages: Sequence[str], heard: Heard) -> Path:
    """Bring all wheels into its folder, whole or not at all."""
    wanted = "".join(f"{one}\n" for one in (f"ray[{EXTRAS}]=={bundle.ray}", *packages))
    uv = shutil.which("uv") is not None
    if not uv and (sys.platform != "linux" or bundle.python != minor(sys.version.split()[0])):
        raise MissingPart(
            f"packages for Python {bundle.python} on Linux cannot be chosen with this Python alone",
            why="what depends on the system or the release of Python is decided by the one that runs pip",
            fix="install uv here (`pip install uv`), then run this again",
        )
    if uv:
        wanted = (await _run(resolving(bundle), wanted.encode(), heard)).decode()
    part = bundle.folder.with_name(f".{bundle.name}.{os.getpid()}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o700, parents=True)
    try:
        (part / LIST).write_text(wanted, encoding="utf-8")
        await _run(downloading(bundle, part, pinned=uv), b"", heard)
        (part / LIST).unlink()
        shutil.rmtree(bundle.folder, ignore_errors=True)
        part.replace(bundle.folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return bundle.folder


async def _run(argv: Sequence[str], stdin: bytes, heard: Heard) -> bytes:
    """Its output; what it complains of is passed on, and its end is the reason when it fails."""
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=-1, stdout=-1, stderr=-1, start_new_session=True
    )
    try:
        out, err = await process.communicate(stdin)
    except BaseException:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    heard(err)
    if process.returncode:
        lines = [line for line in err.decode(errors="replace").splitlines() if line.strip()]
        if "No module named pip" in err.decode(errors="replace"):
            raise MissingPart(
                "there is no pip here", why="it brings the wheels", fix=f"{argv[0]} -m ensurepip"
            )
        raise Unavailable(
            f"the packages could not be brought: {os.path.basename(argv[0])} ended with {process.returncode}",
            why="\n".join(lines[-4:]),
            fix="`pip config list` shows where packages come from here",
        )
    return out
