"""Trees on a node: each whole, or as a difference from another."""

from __future__ import annotations

import os
import zlib

from heliostat.engine.sync.there.store import Store

LONGEST = 24  # differences in a row; then the whole is written again
Tree = dict[bytes, bytes]


def decode(data: bytes) -> Tree:
    parts = data.split(b"\0") if data else []
    return dict(zip(parts[::2], parts[1::2]))  # noqa: B905 - Python 3.9


def encode(tree: Tree) -> bytes:
    return b"\0".join([part for path in sorted(tree) for part in (path, tree[path])])


def save(store: Store, digest: str, base: str, data: bytes) -> None:
    """Write one down: `data` is the tree, or what differs from `base`."""
    path = store.path(b"trees", digest.encode())
    if os.path.exists(path):
        os.utime(path)
        return
    depth = 1 + _head(store, base)[1] if base else 0
    write(path, b"%s %d\n" % (base.encode() or b"-", depth) + zlib.compress(data, 1))


def write(path: bytes, data: bytes) -> None:
    """Whole, or not at all."""
    new = path + b".%d" % os.getpid()
    with open(new, "wb") as file:
        file.write(data)
    os.replace(new, path)


def known(store: Store, digest: str) -> bool:
    return bool(digest) and os.path.exists(store.path(b"trees", digest.encode()))


def _head(store: Store, digest: str) -> tuple[str, int, bytes]:
    with open(store.path(b"trees", digest.encode()), "rb") as file:
        base, depth = file.readline().split()
        return base.decode().replace("-", ""), int(depth), file.read()


def load(store: Store, digest: str) -> Tree:
    """The whole tree; a long chain is written again in one piece."""
    changes: list[Tree] = []
    at, longest = digest, 0
    while at:
        base, depth, data = _head(store, at)
        longest = max(longest, depth)
        changes.append(decode(zlib.decompress(data)))
        at = base
    tree = changes.pop()
    while changes:
        apply(tree, changes.pop())
    if longest >= LONGEST:
        path = store.path(b"trees", digest.encode())
        write(path, b"- 0\n" + zlib.compress(encode(tree), 1))
    return tree


def apply(tree: Tree, changes: Tree) -> None:
    for path, value in changes.items():
        if value:
            tree[path] = value
        else:
            tree.pop(path, None)


def steps(store: Store, digest: str, start: str) -> Tree | None:
    """What turns the tree `start` into this one, when this one was made from it."""
    changes: list[Tree] = []
    at = digest
    while at and at != start:
        if len(changes) > LONGEST or not known(store, at):
            return None
        at, _, data = _head(store, at)
        if not at and at != start:
            return None
        changes.append(decode(zlib.decompress(data)))
    if at != start:
        return None
    merged: Tree = {}
    while changes:
        merged.update(changes.pop())
    return merged
