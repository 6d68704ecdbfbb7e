"""Contents of files as portions to send: memory holds a few portions, however much there is."""

from __future__ import annotations

import asyncio
import hashlib
import os
import struct
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass

from heliostat.core.tree import content

PORTION = 8 << 20  # bytes of one order; also how far a cut can set a transfer back
BIG = 1 << 20
RECORD = struct.Struct(">64sQQQ")


class ChangedMeanwhileError(Exception):
    """A file is not any more what the scan saw."""

    def __init__(self, path: bytes) -> None:
        super().__init__(os.fsdecode(path))
        self.path = path


@dataclass(frozen=True, slots=True)
class Piece:
    """A content, or what is left of a large one."""

    path: bytes
    digest: bytes
    size: int
    start: int = 0


def pieces(tree: Mapping[bytes, bytes], digests: Mapping[bytes, int]) -> Iterator[Piece]:
    """One file for each wanted content, from where the other side's part of it ends."""
    left = dict(digests)
    for path, value in tree.items():
        found = content(value)
        if found is not None and found[0] in left:
            yield Piece(path, found[0], found[1], left.pop(found[0]))


def portions(root: bytes, wanted: Iterator[Piece]) -> Iterator[tuple[bytes, int]]:
    """Records for the node, in portions, each with the number of contents that end in it."""
    held: list[bytes] = []
    size = ended = 0
    for piece in wanted:
        for head, data, last in records(root, piece):
            held += (head, data)
            size += len(data)
            ended += last
            if size >= PORTION or len(held) >= 40_000:
                yield b"".join(held), ended
                held, size, ended = [], 0, 0
    if held:
        yield b"".join(held), ended


def records(root: bytes, piece: Piece) -> Iterator[tuple[bytes, bytes, bool]]:
    """The bytes of one content; an error when they are not any more what they were."""
    path = root + b"/" + piece.path if piece.path else root
    whole, at = hashlib.sha256(), 0
    try:
        with open(path, "rb", buffering=0) as file:
            while at < piece.size:
                data = _exactly(file.read, min(PORTION if piece.size >= BIG else BIG, piece.size - at))
                whole.update(data)
                begin, at = at, at + len(data)
                last = at >= piece.size
                if not data or (last and whole.hexdigest().encode() != piece.digest):
                    raise ChangedMeanwhileError(path)
                if at > piece.start or last:
                    rest = data[max(0, piece.start - begin) :]
                    yield RECORD.pack(piece.digest, piece.size, at - len(rest), len(rest)), rest, last
    except FileNotFoundError:
        raise ChangedMeanwhileError(path) from None


def _exactly(read: Callable[[int], bytes | None], size: int) -> bytes:
    """A read may return less than was asked for."""
    parts = []
    while size > 0 and (data := read(size)):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


async def ahead(source: Iterator[tuple[bytes, int]]) -> AsyncGenerator[tuple[bytes, int], None]:
    """The next portion is read while the last is on its way; pieces of one file stay in order."""
    coming = asyncio.ensure_future(asyncio.to_thread(next, source, None))
    try:
        while (portion := await coming) is not None:
            coming = asyncio.ensure_future(asyncio.to_thread(next, source, None))
            yield portion
    finally:
        await asyncio.wait([coming])
