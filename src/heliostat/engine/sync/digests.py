"""Digests of files that were read before, so that only what changed is read again."""

from __future__ import annotations

import hashlib
import os
import struct
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


_SIGNATURE = struct.Struct("<QqqQL")
LENGTH = _SIGNATURE.size


def signature(seen: os.stat_result) -> bytes:
    """What changes when a file's content does; all of them are LENGTH bytes long."""
    try:
        return _SIGNATURE.pack(seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_mode)
    except struct.error:  # a time some centuries away
        fields = (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_mode)
        return hashlib.blake2b(repr(fields).encode(), digest_size=LENGTH).digest()


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
        number, _, rest = data.partition(b"\n")
        count = int(number) if number.isdigit() else 0
        parts = rest[count * LENGTH :].split(b"\0")
        if len(parts) != 2 * count + 1 or parts[-1] != b"end":
            return cls(path, {}, {})
        signs = [rest[at : at + LENGTH] for at in range(0, count * LENGTH, LENGTH)]
        return cls(path, dict(zip(parts, zip(signs, parts[count:-1], strict=True), strict=False)), {})

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
        signs = b"".join([sign for sign, _ in self.new.values()])
        parts = [*self.new, *(value for _, value in self.new.values()), b"end"]
        part = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            part.write_bytes(b"%d\n" % len(self.new) + signs + b"\0".join(parts))
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
