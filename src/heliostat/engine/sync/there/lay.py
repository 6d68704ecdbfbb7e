"""Trees onto the disk: private, writable files."""

from __future__ import annotations

import fcntl
import os

from heliostat.engine.sync.there.store import BIG, Store
from heliostat.engine.sync.there.trees import Tree

TYPE_CHECKING = False  # importing typing would cost the node more than the order
if TYPE_CHECKING:
    from typing import Callable  # noqa: UP035 - a node may have Python 3.9

FICLONE = 0x40049409
TEMPORARY = b".helio-part-"


def build(
    store: Store, tree: Tree, root: bytes, start: int = 0, stop: Callable[[], bool] = lambda: False
) -> int | None:
    """Make all of it below an existing folder; when told to stop, how far it came."""
    os.umask(0)
    paths = sorted(tree)
    locked = []
    for count in range(start, len(paths)):
        if stop():
            return count
        path = paths[count]
        value = tree[path]
        if value.startswith(b"d"):
            mode = mode_of(value)
            os.mkdir(root + b"/" + path, mode | 0o700)
            if mode & 0o700 != 0o700:
                locked.append((path, mode))
        else:
            make(store, value, root + b"/" + path)
    for path, value in tree.items() if start else ():
        if value.startswith(b"d") and mode_of(value) & 0o700 != 0o700:
            locked.append((path, mode_of(value)))
    for path, mode in locked:
        os.chmod(root + b"/" + path, mode)
    return None


def mode_of(value: bytes) -> int:
    """The permission bits of a folder or a file."""
    return int(value.split(b" ", 2)[1], 8)


def make(store: Store, value: bytes, path: bytes) -> None:
    """One file or link where nothing stands."""
    if value.startswith(b"l"):
        os.symlink(value[2:], path)
        return
    _, mode, size, digest = value.split(b" ", 3)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, int(mode, 8))
    try:
        if int(size) >= BIG:
            copy(store.blob(digest), fd)
        elif int(size):
            os.write(fd, store.read(digest))
    finally:
        os.close(fd)


def copy(source: bytes, target: int) -> None:
    """Share the blocks where the disk can; else copy them."""
    with open(source, "rb") as file:
        try:
            fcntl.ioctl(target, FICLONE, file.fileno())
        except OSError:
            left = os.fstat(file.fileno()).st_size
            while left > 0:
                done = os.sendfile(target, file.fileno(), None, min(left, 1 << 30))
                if not done:
                    raise OSError("the store's copy is too short") from None
                left -= done


def patch(store: Store, changes: Tree, root: bytes) -> None:
    """Turn what stands there into what it shall be; every file is whole under its name at any moment."""
    os.umask(0)
    for path in sorted(changes, reverse=True):  # what is inside a folder goes before it
        value, full = changes[path], root + b"/" + path
        if not _fits(value, full):
            remove(full)
    for path in sorted(changes):
        value, full = changes[path], root + b"/" + path
        if not value:
            continue
        if value.startswith(b"d"):
            if not os.path.isdir(full):
                os.mkdir(full, 0o700)
            continue
        part = os.path.join(os.path.dirname(full), TEMPORARY + b"%d" % os.getpid())
        remove(part)
        make(store, value, part)
        os.replace(part, full)
    for path, value in changes.items():
        if value.startswith(b"d"):
            os.chmod(root + b"/" + path, mode_of(value))


def _fits(value: bytes, path: bytes) -> bool:
    """Whether what stands there need not go first: a file may be replaced by a file, a folder stays one."""
    if not value:
        return False
    folder = os.path.isdir(path) and not os.path.islink(path)
    return folder == value.startswith(b"d") if os.path.lexists(path) else True


def remove(path: bytes) -> None:
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            import shutil  # rarely needed, and not small

            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        pass
