"""The directories of local clusters: where they are, and that nobody else could have prepared them for us."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

from heliostat.core.errors import Conflict, HelioError
from heliostat.core.owner import Owner
from heliostat.core.trouble import trouble as refusal


def data_dir() -> Path:
    """Where clusters keep their homes. HELIO_DATA overrides it, and is then another set of clusters."""
    given = os.environ.get("HELIO_DATA")
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return Path(os.path.abspath(given)) if given else Path(base) / "heliostat"


def homes() -> Path:
    return data_dir() / "local"


def principal() -> str:
    """This user on this machine, by an id that outlives the machine's name."""
    try:
        machine = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        machine = ""
    mark = hashlib.sha256(f"heliostat\n{machine or os.uname().nodename}".encode()).hexdigest()[:8]
    given = os.environ.get("HELIO_DATA")
    return f"uid:{os.getuid()}@{mark}" + (f":{Path(given).absolute()}" if given else "")


def home_of(owner: Owner) -> str:
    return str(homes() / owner.id)


def temp_base() -> str:
    """Short, because Ray's unix sockets below it may have paths of 107 bytes at most."""
    return f"/tmp/helio-{os.getuid()}"  # noqa: S108  (made 0700 and checked: see private_dir)


def temp_of(owner: Owner) -> str:
    return f"{temp_base()}/{owner.id.rpartition('-')[2]}"


def short(name: str) -> str:
    """A node's name in a socket's path.

    >>> short("worker-1"), len(short("a-very-long-group-of-workers-17"))
    ('worker-1', 12)
    """
    return name if len(name) <= 12 else f"{name[:5]}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def private_dir(path: str) -> None:
    """Make a directory that only this user can enter; refuse one that somebody else has put there."""
    try:
        Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.lstat(path)
    except OSError as error:
        raise trouble(error, f"cannot make the directory {path}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise Conflict(
            f"{path} is not a directory of yours",
            why=f"it belongs to uid {found.st_uid}"
            if found.st_uid != os.getuid()
            else "it is a link or a file",
            fix="remove it, or have it removed, and try again",
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        os.chmod(path, 0o700)


def trouble(error: OSError, what: str) -> HelioError:
    """An operating system's refusal, in words that say what to do."""
    return refusal(error, what, instead="set HELIO_DATA elsewhere")


def remove_tree(path: str) -> None:
    """Remove a directory of ours with all in it, read-only trees included; absent is fine."""
    import shutil  # `status` is loaded without it

    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode):
        raise Conflict(
            f"{path} is not a directory of yours", why="something else took its place", fix=f"look at {path}"
        )

    with suppress(OSError):  # whoever makes a copy in there finds its place gone, and ends: see ADR 12
        os.rename(f"{path}/store", f"{path}/store.gone")
    try:
        try:
            shutil.rmtree(path)
        except PermissionError:  # store trees are read-only
            for folder, _, _ in os.walk(path):
                os.chmod(folder, 0o700)
            shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise trouble(error, f"cannot remove {path}") from error
