"""A folder of the user's choice on the node: what stands there, and how it becomes what was sent."""

from __future__ import annotations

import hashlib
import json
import os
import zlib

from heliostat.engine.sync.there import trees
from heliostat.engine.sync.there.lay import TEMPORARY, build, patch, remove
from heliostat.engine.sync.there.store import CHUNK, Store

TYPE_CHECKING = False  # importing typing would cost the node more than the order
if TYPE_CHECKING:
    from typing import Any

MORE = b".more"  # the end of a memory's name that says what changed beside the whole
FEW = 1000  # changes that are kept so


def place(remote: str) -> bytes:
    """Where that is: as scp, relative to the account's home."""
    home = os.path.expanduser("~")
    return os.fsencode(os.path.normpath(os.path.join(home, os.path.expanduser(remote))))


def kind(remote: str) -> str:
    """A folder (d), a file or a link (f), nothing, or else the word for what it is."""
    path = place(remote)
    if os.path.isdir(path):
        return "d"
    if os.path.isfile(path) or os.path.islink(path):
        return "f"
    odd = {0o010000: "pipe", 0o140000: "socket"}
    return odd.get(os.lstat(path).st_mode & 0o170000, "device") if os.path.lexists(path) else ""


def _memory(store: Store, root: bytes) -> bytes:
    return store.path(b"targets", hashlib.sha256(root).hexdigest()[:32].encode())


def walk(root: bytes) -> dict[bytes, os.stat_result]:
    """Everything below, by its path, without following links."""
    found: dict[bytes, os.stat_result] = {}
    todo = [b""]
    while todo:
        folder = todo.pop()
        with os.scandir(root + b"/" + folder if folder else root) as entries:
            for entry in entries:
                if entry.name.startswith(TEMPORARY):
                    continue
                path = folder + b"/" + entry.name if folder else entry.name
                found[path] = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    todo.append(path)
    return found


def glance(store: Store, remote: str) -> dict[str, Any]:
    """What was sent here last, and where it differs from that by now; nothing when nobody knows."""
    root = place(remote)
    if not os.path.isdir(root):
        return {"kind": "file" if os.path.lexists(root) else "", "tree": ""}
    tree, whole, when = _remembered(store, root)
    if not tree:
        return {"kind": "folder", "tree": ""}
    found = walk(root)
    kinds = {0o100000: b"f", 0o040000: b"d", 0o120000: b"l"}
    dirty = [
        path
        for path, value in whole.items()
        if (seen := found.get(path)) is None
        or kinds.get(seen.st_mode & 0o170000) != value[:1]
        or (seen.st_ctime_ns > when and not value.startswith(b"d"))
        or (value.startswith(b"d") and value != b"d %o" % (seen.st_mode & 0o777))
    ]
    extra = [path for path in found if path not in whole]
    return {"kind": "folder", "tree": tree, "dirty": _text(dirty), "extra": _text(extra)}


def _text(paths: list[bytes]) -> list[str]:
    return [path.decode("utf-8", "surrogateescape") for path in paths]


def _remembered(store: Store, root: bytes) -> tuple[str, trees.Tree, int]:
    """The tree that was sent here last, what of it stands here, and since when."""
    path = _memory(store, root)
    about, whole, when = _noted(path)
    more, changes, later = _noted(path + MORE)
    if not about or more.get("of") != about["tree"]:
        return about.get("tree", ""), whole, when
    trees.apply(whole, changes)
    return more["tree"], whole, later


def _noted(path: bytes) -> tuple[dict[str, str], trees.Tree, int]:
    try:
        with open(path, "rb") as file:
            about = json.loads(file.readline())
            return about, trees.decode(zlib.decompress(file.read())), os.fstat(file.fileno()).st_mtime_ns
    except (OSError, ValueError, zlib.error):
        return {}, {}, 0


def _note(store: Store, root: bytes, tree: str, changes: trees.Tree, based: bool) -> None:
    """Remember what stands there now; as long as little changes, beside what stood there once."""
    path = _memory(store, root)
    if based:
        with open(path, "rb") as file:
            first = json.loads(file.readline())["tree"]
        more, before, _ = _noted(path + MORE)
        together = {**before, **changes} if more.get("of") == first else changes
        if len(together) <= FEW:
            about = json.dumps({"tree": tree, "of": first}).encode()
            trees.write(path + MORE, about + b"\n" + zlib.compress(trees.encode(together), 1))
            return
    whole = _remembered(store, root)[1] if based else {}
    trees.apply(whole, changes)
    remove(path + MORE)  # first: what it says holds beside the old whole alone
    about = json.dumps({"tree": tree}).encode()
    trees.write(path, about + b"\n" + zlib.compress(trees.encode(whole), 1))


def compare(remote: str, whole: trees.Tree) -> dict[str, Any]:
    """Which paths of a tree are not there as they should be, by reading; and what else is there."""
    root = place(remote)
    found = walk(root) if os.path.isdir(root) else {}
    differ = [path for path, value in whole.items() if not _same(root + b"/" + path, value, found.get(path))]
    extra = [path for path in found if path not in whole]
    return {"differ": _text(differ), "extra": _text(extra)}


def _same(path: bytes, value: bytes, seen: os.stat_result | None) -> bool:
    if seen is None:
        return False
    kind = seen.st_mode & 0o170000
    if value.startswith(b"l"):
        return kind == 0o120000 and os.readlink(path) == value[2:]
    mode = b"%o" % (seen.st_mode & 0o777)
    if value.startswith(b"d"):
        return kind == 0o040000 and value[2:] == mode
    _, wanted, size, digest = value.split(b" ", 3)
    if kind != 0o100000 or wanted != mode or seen.st_size != int(size):
        return False
    return digest_of(path) == digest


def digest_of(path: bytes) -> bytes:
    whole = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(CHUNK):
            whole.update(data)
    return whole.hexdigest().encode()


def lay_target(store: Store, ask: dict[str, Any], changes: trees.Tree) -> dict[str, Any]:
    """Change what differs, and remember what stands there now."""
    root = place(ask["remote"])
    if ask.get("file"):
        _one(store, root, changes, ask["file"])
        _forget(store, ask["session"])
        return {}
    if os.path.lexists(root) and not os.path.isdir(root):
        remove(root)
    if not os.path.lexists(root) and not ask.get("base"):
        os.makedirs(os.path.dirname(root), exist_ok=True)
        making = os.path.join(os.path.dirname(root), TEMPORARY + b"%d" % os.getpid())
        remove(making)
        os.mkdir(making, 0o700)
        build(store, changes, making)
        os.chmod(making, ask["mode"])
        os.rename(making, root)
    else:
        os.makedirs(root, exist_ok=True)
        patch(store, changes if ask["delete"] else {k: v for k, v in changes.items() if v}, root)
    if ask["tree"]:
        _note(store, root, ask["tree"], changes, bool(ask.get("base")))
    _forget(store, ask["session"])
    return {}


def _one(store: Store, root: bytes, changes: trees.Tree, name: str) -> None:
    """A single file, unless the same stands there."""
    path = file_place(root, name)
    value = next(iter(changes.values()))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    patch(store, {os.path.basename(path): value}, os.path.dirname(path))


def file_place(root: bytes, name: str) -> bytes:
    """Under that name, or, where a folder stands or is meant (the name begins with /), into it."""
    inside = os.path.isdir(root) or name.startswith("/")
    return os.path.join(root, os.fsencode(name.lstrip("/"))) if inside else root


def compare_file(remote: str, name: str, value: bytes) -> dict[str, Any]:
    """Whether the same stands there."""
    path = file_place(place(remote), name)
    seen = os.lstat(path) if os.path.lexists(path) else None
    return {"differ": [] if _same(path, value, seen) else [name], "extra": []}


def _forget(store: Store, session: str) -> None:
    """What was sent for this alone is at its place now, unless somebody else was told that it is here."""
    large = store.path(b"packs", session.encode() + b".big")
    if os.path.exists(large):
        with open(large, "rb") as file:
            for line in file.read().splitlines():
                digest, when = line.split()
                if os.stat(store.blob(digest)).st_mtime_ns == int(when):
                    os.unlink(store.blob(digest))
        os.unlink(large)
    for ending in (b".index", b".pack"):
        remove(store.path(b"packs", session.encode() + ending))
