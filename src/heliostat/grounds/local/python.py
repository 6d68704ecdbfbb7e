"""Which Python the nodes run, and which Ray it has. Ray itself is never imported here."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from pathlib import Path

from heliostat.core.errors import MissingPart, UsageError

FLOOR = (2, 52)  # the first with token authentication


def interpreter(wanted: str | None) -> str:
    """The path of the nodes' Python: what the file names, else the one that runs this."""
    if wanted is None:
        return sys.executable
    if "/" in wanted:
        path = os.path.abspath(os.path.expanduser(wanted))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
        raise MissingPart(
            f"there is no Python at {wanted}", why="python: in the file names it", fix="correct the path"
        )
    running = ".".join(str(part) for part in sys.version_info[:3])
    if running == wanted or running.startswith(wanted + "."):
        return sys.executable
    found = shutil.which("python" + ".".join(wanted.split(".")[:2]))
    if found is None:
        raise MissingPart(
            f"Python {wanted} is not on this machine",
            why=f"python: {wanted} is in the file; heliostat itself runs on {running}",
            fix="install it, or give python: the path of an interpreter, or leave the key out",
        )
    return found


def version_in(paths: list[str]) -> str | None:
    """Ray's version by the files of its installation.

    >>> version_in(["/nowhere"]) is None
    True
    """
    for path in paths:
        for found in Path(path).glob("ray-*.dist-info"):
            match = re.match(r"ray-(\d[^-]*)\.dist-info$", found.name)
            if match:
                return match[1]
    return None


async def search_path(python: str) -> list[str]:
    """Where that Python looks for packages."""
    if os.path.realpath(python) == os.path.realpath(sys.executable) and python == sys.executable:
        return [path for path in sys.path if path]
    process = await asyncio.create_subprocess_exec(
        python, "-c", "import sys; print('\\n'.join(sys.path))", stdout=-1, stderr=-1, stdin=-3, cwd="/"
    )
    out, err = await process.communicate()
    if process.returncode:
        raise MissingPart(
            f"{python} does not run",
            why=err.decode(errors="replace").strip() or f"it ended with exit code {process.returncode}",
            fix="give python: another interpreter",
        )
    return [line for line in out.decode().splitlines() if line]


async def ray_version(python: str, wanted: str | None) -> str:
    """Ray's version there; missing or another one than asked for, an error says what to type."""
    found = version_in(await search_path(python))
    if found is None:
        package = f"ray[default]=={wanted}" if wanted else "ray[default]"
        raise MissingPart(
            f"Ray is not installed in {python}",
            why="the nodes of a local cluster run Ray with this Python",
            fix=f"{python} -m pip install '{package}'",
        )
    if wanted and found != wanted:
        raise UsageError(
            f"Ray {found} is installed in {python}, the file asks for ray: {wanted}",
            why="a local cluster runs the Ray that is installed",
            fix=f"{python} -m pip install 'ray[default]=={wanted}', or change ray: to {found}",
        )
    if tuple(int(part) for part in found.split(".")[:2]) < FLOOR:
        raise UsageError(
            f"Ray {found} in {python} is too old",
            why=f"token authentication came with Ray {FLOOR[0]}.{FLOOR[1]}",
            fix=f"{python} -m pip install -U 'ray[default]'",
        )
    return found
