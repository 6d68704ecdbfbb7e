"""Contents by digest on a node's disk: small ones in packs, large ones as files of their own."""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import struct
from contextlib import contextmanager

TYPE_CHECKING = False  # importing typing would cost the node more than the order
if TYPE_CHECKING:
    from typing import BinaryIO, Iterator, Optional  # noqa: UP035 - a node may have Python 3.9

BIG = 1 << 20  # bytes from which a content is a file of its own
CHUNK = 1 << 20
RECORD = struct.Struct(">64sQQQ")  # on the wire: digest, size of the whole, offset, length of what follows
ENTRY = struct.Struct(">64sQQ")  # in an index: digest, offset in the pack, size


class Store:
    """`<home>/store`. Nothing has its final name before it is whole and its digest was checked."""

    def __init__(self, home: str) -> None:
        self.home = os.fsencode(os.path.expanduser(home))
        self.root = os.path.join(self.home, b"store")
        self._packs: Optional[list[Pack]] = None  # noqa: UP045 - Python 3.9

    def path(self, *parts: bytes) -> bytes:
        return os.path.join(self.root, *parts)

    def make(self) -> None:
        for name in (b"packs", b"blobs", b"parts", b"trees", b"spares", b"targets"):
            os.makedirs(self.path(name), mode=0o700, exist_ok=True)

    def blob(self, digest: bytes) -> bytes:
        return self.path(b"blobs", digest[:2], digest)

    def part(self, digest: bytes) -> bytes:
        return self.path(b"parts", digest)

    def packs(self) -> list[Pack]:
        """The newest first: what was sent a moment ago is looked for most."""
        if self._packs is None:
            folder = self.path(b"packs")
            names = [name for name in os.listdir(folder) if name.endswith(b".index")]
            found = [(os.stat(os.path.join(folder, name)).st_mtime_ns, name) for name in names]
            self._packs = [Pack(os.path.join(folder, name[:-6])) for _, name in sorted(found, reverse=True)]
        return self._packs

    def empty(self) -> bool:
        """Whether nothing has ever arrived here, not even a part."""
        return not any(os.listdir(self.path(name)) for name in (b"packs", b"blobs", b"parts"))

    def has(self, digest: bytes, size: int) -> bool:
        if size >= BIG:
            return os.path.exists(self.blob(digest))
        return any(pack.find(digest) is not None for pack in self.packs())

    def read(self, digest: bytes) -> memoryview:
        """A small content."""
        for pack in self.packs():
            place = pack.find(digest)
            if place is not None:
                return pack.view()[place[0] : place[0] + place[1]]
        raise LookupError("the store lacks " + digest.decode())

    def take(self, stream: BinaryIO, session: str) -> tuple[int, list[str]]:
        """Read records to the stream's end; how many were whole, and the digests of those that were wrong."""
        pack = Writer(self.path(b"packs", session.encode()))
        count, wrong = 0, []
        try:
            while True:
                head = stream.read(RECORD.size)
                if len(head) < RECORD.size:
                    break  # the end, or a cut: what came before is kept
                digest, size, offset, length = RECORD.unpack(head)
                good = (
                    self._take_big(stream, digest, size, offset, length, session)
                    if size >= BIG
                    else pack.add(stream, digest, length)
                )
                if good is None:
                    break
                count += 1
                if not good:
                    wrong.append(digest.decode())
        finally:
            pack.close()
            self._packs = None
        return count, wrong

    def _take_big(
        self, stream: BinaryIO, digest: bytes, size: int, offset: int, length: int, session: str
    ) -> bool | None:
        """A piece of a large content: appended when it continues what is there. None: the stream was cut."""
        fd = self._open_part(digest)
        try:
            whole = os.path.exists(self.blob(digest))  # somebody else has brought it meanwhile
            if whole:
                os.unlink(self.part(digest))
            end = offset + length
            while offset < end:
                data = stream.read(min(CHUNK, end - offset))
                if not data:
                    return None
                if (
                    not whole and os.fstat(fd).st_size >= offset
                ):  # the same bytes again do no harm; a gap would
                    _write(fd, data, offset)
                offset += len(data)
            if whole or os.fstat(fd).st_size < size:
                return True
            if _hash(fd) != digest:
                os.unlink(self.part(digest))
                return False
            os.fchmod(fd, 0o400)
            os.makedirs(os.path.dirname(self.blob(digest)), mode=0o700, exist_ok=True)
            os.rename(self.part(digest), self.blob(digest))
            with open(self.path(b"packs", session.encode() + b".big"), "ab") as large:
                large.write(b"%s %d\n" % (digest, os.fstat(fd).st_mtime_ns))
            return True
        finally:
            os.close(fd)

    def _open_part(self, digest: bytes) -> int:
        """The part as it is called now, for us alone: of two that send the same, one writes at a time."""
        while True:
            fd = os.open(self.part(digest), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX)
            try:
                if os.stat(self.part(digest)).st_ino == os.fstat(fd).st_ino:
                    return fd
            except FileNotFoundError:
                pass  # it was whole and got its name while we waited
            os.close(fd)

    @contextmanager
    def lock(self, name: str, wait: bool = True) -> Iterator[int | None]:
        """One process at a time; without waiting, nothing is given when another has it."""
        fd = os.open(self.path(name.encode() + b".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield None
            else:
                yield fd
        finally:
            os.close(fd)


class Pack:
    """Many small contents in one file, and an index beside it that names only what is whole."""

    def __init__(self, path: bytes) -> None:
        self.path = path
        self._index: Optional[bytes] = None  # noqa: UP045 - Python 3.9
        self._view: Optional[memoryview] = None  # noqa: UP045 - Python 3.9
        self._table: dict[bytes, tuple[int, int]] = {}
        self._asked = 0

    def index(self) -> bytes:
        if self._index is None:
            with open(self.path + b".index", "rb") as file:
                self._index = file.read()
        return self._index

    def entries(self) -> Iterator[tuple[bytes, int, int]]:
        data = self.index()
        return ENTRY.iter_unpack(data[: len(data) // ENTRY.size * ENTRY.size])

    def find(self, digest: bytes) -> tuple[int, int] | None:
        """A few are searched for; for many, a table is worth its making."""
        self._asked += 1
        if self._asked > 32:
            if not self._table:
                self._table = {name: (offset, size) for name, offset, size in self.entries()}
            return self._table.get(digest)
        data, at = self.index(), -1
        while (at := data.find(digest, at + 1)) >= 0:
            if at % ENTRY.size == 0 and at + ENTRY.size <= len(data):
                _, offset, size = ENTRY.unpack_from(data, at)
                return offset, size
        return None

    def view(self) -> memoryview:
        if self._view is None:
            with open(self.path + b".pack", "rb") as file:
                size = os.fstat(file.fileno()).st_size
                self._view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b"")
        return self._view


class Writer:
    """Appends to the pack of one session; made on its first content."""

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.pack: Optional[BinaryIO] = None  # noqa: UP045 - Python 3.9
        self.entries: list[bytes] = []

    def add(self, stream: BinaryIO, digest: bytes, size: int) -> bool | None:
        """None: the stream was cut. False: these are other bytes than were named."""
        data = stream.read(size)
        if len(data) < size:
            return None
        return self.put(digest, data)

    def put(self, digest: bytes, data: bytes) -> bool:
        if hashlib.sha256(data).hexdigest().encode() != digest:
            return False
        if self.pack is None:
            self.pack = open(self.path + b".pack", "ab")  # noqa: SIM115 - closed below
            fcntl.flock(self.pack, fcntl.LOCK_EX)  # two portions of one session may arrive at once
            self.pack.seek(0, os.SEEK_END)
        self.entries.append(ENTRY.pack(digest, self.pack.tell(), len(data)))
        self.pack.write(data)
        return True

    def close(self) -> None:
        """The index last: it names only what stands in the pack."""
        if self.pack is None:
            return
        self.pack.flush()
        with open(self.path + b".index", "ab") as index:
            index.write(b"".join(self.entries))
        self.pack.close()
        self.pack = None


def _write(fd: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(fd, view, offset)
        view, offset = view[done:], offset + done


def _hash(fd: int) -> bytes:
    whole, offset = hashlib.sha256(), 0
    while data := os.pread(fd, CHUNK, offset):
        whole.update(data)
        offset += len(data)
    return whole.hexdigest().encode()
