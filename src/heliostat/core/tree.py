"""A folder as data: each path with what stands there, under one digest. Paths are bytes with `/`.

A value is text without NUL: `d 755`, `f 644 SIZE SHA256`, `l TARGET`. In a difference, empty means: gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

Tree = Mapping[bytes, bytes]
GONE = b""


def folder(mode: int) -> bytes:
    return b"d %o" % (mode & 0o777)


def file(mode: int, size: int, digest: str) -> bytes:
    """A file's value: the right to execute is in its mode, setuid is not.

    >>> file(0o104755, 3, "ab" * 32)[:8]
    b'f 755 3 '
    """
    return b"f %o %d %s" % (mode & 0o777, size, digest.encode())


def link(target: bytes) -> bytes:
    return b"l " + target


def content(value: bytes) -> tuple[bytes, int] | None:
    """The digest and the size of a file's bytes; nothing for what is no file.

    >>> content(file(0o644, 3, "ab" * 32))[1]
    3
    """
    if value[:1] != b"f":
        return None
    _, _, size, digest = value.split(b" ", 3)
    return digest, int(size)


def encode(tree: Tree) -> bytes:
    """One text for equal trees, whatever order they were made in.

    >>> encode({b"b": b"d 755", b"a": b"l b"})
    b'a\\x00l b\\x00b\\x00d 755'
    """
    return b"\0".join([part for path in sorted(tree) for part in (path, tree[path])])


def encode_changed(tree: Tree, changes: Tree) -> bytes:
    """The same for a tree that is in order, as `decode` leaves it, with some of it changed.

    >>> encode_changed({b"a": b"l b", b"b": b"l c"}, {b"b": b"l d"})
    b'a\\x00l b\\x00b\\x00l d'
    """
    changed = {**tree, **changes}
    if len(changed) > len(tree) or not all(changes.values()):
        return encode({path: value for path, value in changed.items() if value})
    return b"\0".join([part for pair in changed.items() for part in pair])


def decode(data: bytes) -> dict[bytes, bytes]:
    """The tree again."""
    parts = data.split(b"\0") if data else []
    return dict(zip(parts[::2], parts[1::2], strict=True))


def digest(encoded: bytes) -> str:
    return hashlib.sha256(b"tree 1\0" + encoded).hexdigest()


def difference(old: Tree, new: Tree) -> dict[bytes, bytes]:
    """What turns the one into the other.

    >>> difference({b"a": b"d 755", b"b": b"l x"}, {b"a": b"d 700"})
    {b'a': b'd 700', b'b': b''}
    """
    changed = {path: value for path, value in new.items() if old.get(path) != value}
    changed.update((path, GONE) for path in old if path not in new)
    return changed


def contents(tree: Tree) -> dict[bytes, int]:
    """Every content of its files, once, with its size; emptiness need not travel."""
    return dict(found for value in tree.values() if (found := content(value)) is not None and found[1])
