"""The journal of intent: one small file of JSON lines for each cluster, and one lock beside it.

A run is under way exactly as long as its process holds the cluster's lock; the system lets the lock go when
the process ends, so there is no pid to be mistaken about. What began and neither ended nor is under way is
open.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heliostat.core.errors import Busy
from heliostat.core.intent import Intent
from heliostat.core.owner import Owner
from heliostat.core.trouble import trouble
from heliostat.engine import filelock


class FileJournal:
    """Journals in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, str] = {}  # owner id -> the token of our hold

    @contextmanager
    def hold(self, owner: Owner, verb: str) -> Iterator[None]:
        """Be the only one to change this cluster from this machine, or raise Busy."""
        fd = _open(self._folder / f"{owner.id}.lock")
        try:
            if not _taken(fd):
                raise _busy(owner, _note(fd))
            token = secrets.token_hex(8)
            _write_note(fd, {"token": token, "verb": verb, "pid": os.getpid(), "host": socket.gethostname()})
            self._held[owner.id] = token
            try:
                yield
            finally:
                del self._held[owner.id]
                os.ftruncate(fd, 0)
        finally:
            os.close(fd)  # lets the lock go

    def begin(self, owner: Owner, verb: str, run: str, names: Sequence[str]) -> None:
        """Write it down for good before anything is changed."""
        if owner.id not in self._held:
            raise RuntimeError("a run begins only while its cluster is held")
        entry = {
            "begin": run,
            "verb": verb,
            "principal": owner.principal,
            "cluster": owner.cluster,
            "names": list(names),
            "token": self._held[owner.id],
            "at": time.time(),
        }
        path = self._folder / f"{owner.id}.jsonl"
        with _locked(path) as fd:
            _append(fd, entry)
            os.fsync(fd)
            _sync_folder(self._folder)

    def end(self, owner: Owner, run: str, result: str) -> None:
        """Losing this line in a crash is harmless: cleaning up then finds nothing to do."""
        path = self._folder / f"{owner.id}.jsonl"
        if not path.exists():
            return
        with _locked(path) as fd:
            _append(fd, {"end": run, "result": result})
            if not _unended(_entries(fd)):
                os.ftruncate(fd, 0)  # nothing is open: nothing needs to be remembered

    def open(self, owner: Owner) -> tuple[Intent, ...]:
        """What began, never ended, and is not under way."""
        paths = sorted(self._folder.glob("*.jsonl")) if owner.cluster is None else [self._path(owner)]
        found: list[Intent] = []
        for path in paths:
            if not path.exists():
                continue
            live = _live_token(path.with_suffix(".lock"))
            with _locked(path) as fd:
                entries = _unended(_entries(fd))
            found += [_intent(entry) for entry in entries if entry.get("token") != live]
        return tuple(intent for intent in found if owner.owns(intent.owner))

    def _path(self, owner: Owner) -> Path:
        return self._folder / f"{owner.id}.jsonl"


def _taken(fd: int) -> bool:
    """Take the lock, forgiving those who only look whether it is free (`open` does, for an instant)."""
    deadline = time.monotonic() + 0.1
    while not filelock.try_lock(fd):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Never inherited: a child that outlives us must not keep the lock.
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    except OSError as error:
        what = f"cannot keep a journal in {path.parent}"
        raise trouble(error, what, instead="set HELIO_STATE elsewhere") from error


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The file, for the instant of a read or a write."""
    fd = _open(path)
    try:
        filelock.lock(fd)
        yield fd
    finally:
        os.close(fd)


def _read(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    with open(fd, "rb", closefd=False) as file:
        return file.read()


def _append(fd: int, entry: dict[str, Any]) -> None:
    text = _read(fd)
    torn = text and not text.endswith(b"\n")  # a crash in the middle of a line: leave it, and start anew
    os.lseek(fd, 0, os.SEEK_END)
    os.write(fd, (b"\n" if torn else b"") + json.dumps(entry).encode() + b"\n")


def _entries(fd: int) -> list[dict[str, Any]]:
    """Every whole line; one that is torn was never durable, so nothing was done on its account."""
    return [entry for line in _read(fd).splitlines() if (entry := _parsed(line)) is not None]


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _unended(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    begun: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if "begin" in entry:
            begun[entry["begin"]] = entry
        elif "end" in entry:
            begun.pop(entry["end"], None)
    return list(begun.values())


def _intent(entry: dict[str, Any]) -> Intent:
    return Intent(
        owner=Owner(entry["principal"], entry["cluster"]),
        verb=entry["verb"],
        run=entry["begin"],
        names=tuple(entry["names"]),
        at=entry["at"],
    )


def _note(fd: int) -> dict[str, Any]:
    return _parsed(_read(fd).strip() or b"{}") or {}


def _write_note(fd: int, note: dict[str, Any]) -> None:
    os.ftruncate(fd, 0)
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, json.dumps(note).encode())


def _live_token(path: Path) -> str | None:
    """The token of the hold that is under way, if any."""
    if not path.exists():
        return None
    fd = _open(path)
    try:
        if filelock.try_lock(fd):
            return None
        token = _note(fd).get("token")
        return str(token) if token else None
    finally:
        os.close(fd)


def _busy(owner: Owner, note: dict[str, Any]) -> Busy:
    verb, pid, host = note.get("verb", "…"), note.get("pid", "?"), note.get("host", "this machine")
    return Busy(
        f"another helio is at work on cluster {owner.cluster}",
        why=f"`helio {verb}` is running as process {pid} on {host}",
        fix=f"wait for it to end, or stop it with Ctrl-C (kill -INT {pid})",
    )


def _sync_folder(folder: Path) -> None:
    """Make a new file's name durable too."""
    if sys.platform == "win32":  # a folder cannot be opened there
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
