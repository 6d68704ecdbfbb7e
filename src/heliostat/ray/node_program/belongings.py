"""Directories and files of clusters on a machine of theirs. Standard library only: it is sent there."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import socket
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Data = dict[str, Any]
else:
    Data = dict  # the machine may have Python 3.8


class Refusal(Exception):
    """What the other side will say to a person."""

    def __init__(self, kind: str, what: str, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.data = {"kind": kind, "what": what, "why": why, "fix": fix}


# Where things are


def base() -> str:
    return os.path.expanduser("~/.local/share/heliostat/ssh")


def home_of(order: Data) -> str:
    return os.path.join(base(), order["id"], order["host"])


def temp_base() -> str:
    """Short: Ray's unix sockets below it may have paths of 107 bytes at most."""
    return f"/tmp/helio-{os.getuid()}"  # noqa: S108  (made 0700 and checked: see private_dir)


def temp_of(home: str) -> str:
    return os.path.join(temp_base(), "s" + hashlib.sha256(home.encode()).hexdigest()[:8])


def address() -> str:
    """Where other machines reach this one: as the login came in, else as the way out of here begins."""
    came = os.environ.get("SSH_CONNECTION", "").split()
    if len(came) == 4 and ":" not in came[2] and not came[2].startswith("127."):
        return came[2]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


# Files


def private_dir(path: str) -> None:
    """Make a directory that only this user can enter; refuse one that somebody else has put there."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise Refusal("conflict", f"{path} is not a directory of yours", "something else took its place")
    if stat.S_IMODE(found.st_mode) & 0o077:
        os.chmod(path, 0o700)


def write(path: str, text: str, once: bool = False) -> None:
    """Write a private file whole, or not at all; `once`: of two that write it, the first has written it."""
    new = f"{path}.{secrets.token_hex(4)}"
    try:
        with os.fdopen(
            os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(text)
        if once:
            with suppress(FileExistsError):
                os.link(new, path)
        else:
            os.replace(new, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(new)


def read(path: str) -> Data:
    """A JSON object of ours, or an empty one."""
    try:
        if os.lstat(path).st_uid != os.getuid():
            return {}
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def remove_tree(path: str) -> None:
    """Remove a directory of ours with all in it, read-only trees included; absent is fine."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode):
        raise Refusal("conflict", f"{path} is not a directory of yours", "something else took its place")
    with suppress(FileNotFoundError):
        try:
            shutil.rmtree(path)
        except PermissionError:
            for folder, _, _ in os.walk(path):
                os.chmod(folder, 0o700)
            shutil.rmtree(path)


def tail(path: str, lines: int = 12) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 16384))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])


def filled(data: Any, words: dict[str, str]) -> Any:
    """Put in what only this machine knows; `{gcs}` and other ports are for the node program."""
    if isinstance(data, str):
        for name, value in words.items():
            data = data.replace("{" + name + "}", value)
        return data
    if isinstance(data, dict):
        return {key: filled(value, words) for key, value in data.items()}
    return [filled(value, words) for value in data] if isinstance(data, list) else data
