"""Connections that outlast their command by some seconds, where somebody wants that. See ADR 38.

The socket lies in a directory that only this account can enter; its name says what was true when it was made,
the host keys known then included. Whatever is in doubt about it, a connection of one's own is made instead.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SECONDS = 0  # none, unless somebody asks for it
DAY = 86_400.0
FOLDER = "helio-ssh-{uid}-kept"  # below /tmp: a socket's path may have 104 bytes at most


def seconds() -> int:
    """How long; 0 where somebody wants none of it."""
    try:
        return max(0, min(3600, int(os.environ.get("HELIO_SSH_KEEP", SECONDS))))
    except ValueError:
        return SECONDS


def folder() -> str:
    """Ours alone, or none."""
    path = f"/tmp/{FOLDER.format(uid=os.getuid())}"  # noqa: S108 - made 0700, and looked at below
    with suppress(OSError):
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.lstat(path)
        mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
        if mine and not stat.S_IMODE(found.st_mode) & 0o077:
            sweep(path)
            return path
    return ""


def sweep(path: str) -> None:
    """Take away what nobody has touched for a day: locks, and sockets whose connection is long over."""
    for entry in os.scandir(path):
        with suppress(FileNotFoundError):
            if entry.stat(follow_symlinks=False).st_mtime < time.time() - DAY:
                os.unlink(entry.path)


@dataclass(frozen=True, slots=True)
class Kept:
    """The socket of such a connection, for us alone: a host gives ten sessions to one connection."""

    path: str
    lock: int

    def release(self) -> None:
        os.close(self.lock)


def place(words: Iterable[str], files: Iterable[str]) -> Kept | None:
    """Where such a connection is, or may be made; nothing where there is to be none, or another uses it.

    `words` is what it is made with, `files` are the lists of host keys that it is held to.
    """
    at = folder() if seconds() else ""
    if not at:
        return None
    whole = hashlib.sha256("\0".join(words).encode())
    for name in files:
        with suppress(OSError):
            whole.update(b"\0" + Path(name).expanduser().read_bytes())
    path = f"{at}/{whole.hexdigest()[:24]}"
    fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return Kept(path, fd)


def there(path: str) -> bool:
    """Whether a connection stands behind that socket; a dead one is removed."""
    if not os.path.exists(path):
        return False
    words = ["ssh", "-F", "/dev/null", "-o", "ProxyCommand=false", "-S", path, "-O", "check", "--", "host"]
    if subprocess.run(words, stdin=-3, stdout=-3, stderr=-3, check=False).returncode == 0:
        return True
    with suppress(FileNotFoundError):
        os.unlink(path)
    return False


def end(paths: Iterable[str]) -> None:
    """Now, rather than when their time is over."""
    words = ["ssh", "-F", "/dev/null", "-o", "ProxyCommand=false", "-O", "exit", "-S"]
    ending = {
        path: subprocess.Popen([*words, path, "--", "host"], stdin=-3, stdout=-3, stderr=-3) for path in paths
    }
    for path, one in ending.items():
        with suppress(subprocess.TimeoutExpired):
            one.wait(2)
        with suppress(OSError):
            os.unlink(path)
