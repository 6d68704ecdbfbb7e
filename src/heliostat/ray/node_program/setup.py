"""Run a node's setup commands once per machine, whichever of its nodes comes first. Standard library only.

A process of its own below the node program, in the environment that Ray's daemons will have. What the
commands print is kept in `home/setup/<id>.log`; an empty `<id>.done` says that they need not run again.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

LINES = 12  # of what a command said last


def main(arguments: Sequence[str]) -> int:
    """Prepare the node of this configuration, or say in `setup.json` beside it why that failed."""
    with open(arguments[0], encoding="utf-8") as file:
        config = json.load(file)
    order, began = config["setup"], time.time()
    folder = os.path.join(config["home"], "setup")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    base = os.path.join(folder, order["id"])
    with open(f"{base}.lock", "w", encoding="utf-8", opener=private) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # let go by the system, however this ends
        if os.path.exists(f"{base}.done"):
            return 0
        failure = earlier(f"{base}.failed", began) or run(order, base)
        if failure is None:
            with open(f"{base}.done", "w", encoding="utf-8", opener=private):
                return 0
        write(f"{base}.failed", failure)
        write(os.path.join(config["dir"], "setup.json"), failure)
        return 1


def private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def write(path: str, failure: Mapping[str, Any]) -> None:
    with open(path, "w", encoding="utf-8", opener=private) as file:
        json.dump(failure, file)


def earlier(path: str, began: float) -> dict[str, Any] | None:
    """How it failed for another node while this one waited for it: the same would happen again."""
    try:
        if os.stat(path).st_mtime < began:
            return None
        with open(path, encoding="utf-8") as file:
            return dict(json.load(file))
    except (OSError, ValueError):
        return None


def run(order: Mapping[str, Any], base: str) -> dict[str, Any] | None:
    """Each command in turn; the first that fails ends it."""
    path = f"{base}.log"
    with open(path, "ab", opener=private) as log:
        for command in order["commands"]:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} $ {command}\n".encode())
            log.flush()
            start = log.tell()
            code = subprocess.call(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=order["cwd"] or None,
            )
            if code:
                said = last_lines(path, start)
                return {
                    "command": command,
                    "code": code if code > 0 else 128 - code,
                    "said": said,
                    "log": path,
                }
    return None


def last_lines(path: str, start: int) -> str:
    """The end of what was written from there on."""
    with open(path, "rb") as file:
        file.seek(max(start, os.fstat(file.fileno()).st_size - 16_384))
        lines = file.read().decode(errors="replace").splitlines()
    return "\n".join(line for line in lines[-LINES:] if line.strip())
