"""Digests of files that were read before, so that only what changed is read again."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from heliostat.core.credentials import LOOKED_AT, by_content
from heliostat.core.errors import Conflict
from heliostat.core.tree import file as file_value
from heliostat.core.trouble import trouble

CHUNK = 1 << 20
TRIES = 4
SECRET = b"c"  # the value of a file whose content looks like credentials, before its real value
# A change within the clock's own step would leave the same times: such files are read again next time.
STEP, WHOLE_SECONDS = 100_000_000, 2_000_000_000


def signature(seen: os.stat_result) -> bytes:
    """What changes when a file's content does."""
    return b"%d %d %d %d %d" % (
        seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_mode
    )  # fmt: skip


@dataclass(slots=True)
class Known:
    """What one folder's files were, by path: a signature and a value."""

    path: Path
    old: dict[bytes, tuple[bytes, bytes]]
    new: dict[bytes, tuple[bytes, bytes]]
    read: int = 0

    @classmethod
    def of(cls, path: Path) -> Known:
        """From the cache; a broken or foreign one is as good as none."""
        try:
            data = path.read_bytes()
        except OSError:
            data = b""
        parts = data.split(b"\0")
        whole = len(parts) % 3 == 1 and parts[-1] == b"end"
        old = dict(zip(parts[:-1:3], zip(parts[1::3], parts[2::3], strict=False), strict=False))
        return cls(path, old if whole else {}, {})

    def same(self, path: bytes, seen: os.stat_result) -> bytes:
        """The value of a file that is as it was, and had nothing secret then; else nothing."""
        known = self.old.get(path)
        if known is None or known[0] != signature(seen) or known[1][:1] == SECRET:
            return b""
        self.new[path] = known
        return known[1]

    def value(self, path: bytes, full: bytes, seen: os.stat_result) -> bytes:
        """A file's value, from memory or by reading it; `c` and a value for what holds credentials."""
        sign = signature(seen)
        known = self.old.get(path)
        if known is not None and known[0] == sign:
            self.new[path] = known
            return known[1]
        return self._read(path, full)

    def _read(self, path: bytes, full: bytes) -> bytes:
        for _ in range(TRIES):
            began = time.time_ns()
            value, sign, latest = read(full)
            if value:
                self.read += 1
                step = STEP if latest % 1_000_000_000 else WHOLE_SECONDS
                if latest < began - step:
                    self.new[path] = (sign, value)
                return value
        raise changing(full)

    def save(self) -> None:
        """Keep it for the next time; failing to only costs time then."""
        if self.new == self.old:
            return
        parts = [part for path, (sign, value) in self.new.items() for part in (path, sign, value)]
        part = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            part.write_bytes(b"\0".join([*parts, b"end"]))
            part.replace(self.path)
        except OSError:
            part.unlink(missing_ok=True)


def read(full: bytes) -> tuple[bytes, bytes, int]:
    """A file's value, its signature and its latest time; no value when it changed meanwhile."""
    whole, start, size = hashlib.sha256(), b"", 0
    try:
        with open(full, "rb", buffering=0) as stream:
            before = os.fstat(stream.fileno())
            while data := stream.read(CHUNK):
                start = start or data[:LOOKED_AT]
                whole.update(data)
                size += len(data)
            after = os.fstat(stream.fileno())
    except FileNotFoundError:
        return b"", b"", 0
    except OSError as error:
        raise trouble(
            error,
            f"cannot read {os.fsdecode(full)}",
            instead="leave it out: name it in .helioignore",
            wanted="readable",
        ) from error
    if signature(before) != signature(after) or size != after.st_size:
        return b"", b"", 0
    mode = after.st_mode if os.name == "posix" else 0o644
    value = file_value(mode, size, whole.hexdigest())
    if by_content(os.path.basename(full), start):
        value = SECRET + value
    return value, signature(after), max(after.st_mtime_ns, after.st_ctime_ns)


def changing(full: bytes) -> Conflict:
    name = os.fsdecode(full)
    return Conflict(
        f"{name} changes while it is read",
        why=f"it was different each of {TRIES} times",
        fix="wait until nothing writes it, or leave it out: name it in .helioignore",
    )
