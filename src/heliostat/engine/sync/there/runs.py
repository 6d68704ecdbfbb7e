"""A run's private work folder, from a copy that was made ahead when there is one."""

from __future__ import annotations

import os
import signal

from heliostat.engine.sync.there import keep, trees
from heliostat.engine.sync.there.lay import build, patch, remove
from heliostat.engine.sync.there.store import Store

TYPE_CHECKING = False  # importing typing would cost the node more than the order
if TYPE_CHECKING:
    from typing import Any

AHEAD = 2000  # files from which the next run's copy is made ahead
ROOM = 8  # a copy ahead is made when this many of it would fit on the disk
NICENESS = 10


def run_folder(store: Store, run: str) -> bytes:
    return os.path.join(store.home, b"runs", run.encode())


def lay_run(store: Store, run: str, tree: str) -> dict[str, Any]:
    """Work and outputs of a run; the work folder appears whole. Saying it again changes nothing."""
    root = run_folder(store, run)
    os.makedirs(os.path.join(root, b"outputs"), mode=0o700, exist_ok=True)
    work, mark = os.path.join(root, b"work"), os.path.join(root, b"tree")
    if os.path.exists(work) and os.path.exists(mark):
        return {"how": "there"}
    remove(work)
    making = store.path(b"spares", b"run-" + run.encode())
    remove(making)
    with preempt(store):
        how = _from_spare(store, tree, making)
        if how != "spare":
            whole = trees.load(store, tree)
            start = int(how or 0) if how else 0
            if not how:
                os.mkdir(making, 0o700)
            build(store, whole, making, start)
            how = "copied"
    os.chmod(making, 0o700)
    os.rename(making, work)
    with open(mark, "w") as file:  # what changes from now on is the run's own doing
        file.write(tree)
    return {"how": how}


def _from_spare(store: Store, tree: str, into: bytes) -> str:
    """Take a copy that was made ahead: `spare` when it is right now, a number when it is so far begun."""
    for name in sorted(os.listdir(store.path(b"spares"))):
        was, _, state = name.decode().partition(".")
        if state == "ready" and (changes := trees.steps(store, tree, was)) is not None:
            os.rename(store.path(b"spares", name), into)
            patch(store, changes, into)
            return "spare"
        if state.isdigit() and was == tree:
            os.rename(store.path(b"spares", name), into)
            return state
    return ""


class preempt:  # noqa: N801 - used like a function
    """Alone with the spares: whoever makes one ahead leaves it as far as it is, for us to go on."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __enter__(self) -> None:
        _tell(self.store.path(b"ahead.pid"))
        self.held = self.store.lock("spares")  # a maker stops at once; another run's laying takes its time
        self.held.__enter__()

    def __exit__(self, *_: object) -> None:
        self.held.__exit__(None, None, None)


def _tell(path: bytes) -> None:
    """Ask the maker to stop: only when that number is still the process that wrote it."""
    try:
        with open(path) as file:
            pid, began = file.read().split()
        if started(int(pid)) == began:
            os.kill(int(pid), signal.SIGTERM)
    except (OSError, ValueError):
        pass


def started(pid: int) -> str:
    """When a process began, which with its number names it."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[19]


def prepare(store: Store, tree: str) -> None:
    """In a process of its own: tidy up, and make the copy that the next run will take."""
    if os.fork():
        return
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        if not os.fork():
            os.nice(NICENESS)
            ahead(store, tree)
            keep.tidy(store)
    except (OSError, LookupError):
        pass  # the cluster may be gone meanwhile; nothing waits for this
    finally:
        os._exit(0)


def ahead(store: Store, tree: str) -> None:
    """Make the copy, unless there is one that serves; leave it as far as it is when a run comes."""
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    with store.lock("spares", wait=False) as held:
        if held is None:
            return
        with open(store.path(b"ahead.pid"), "w") as file:
            file.write(f"{os.getpid()} {started(os.getpid())}")
        spares = store.path(b"spares")
        for name in os.listdir(spares):
            if name.startswith(tree.encode() + b".ready"):
                return
        for name in os.listdir(spares):
            if not name.startswith(b"run-"):
                remove(os.path.join(spares, name))
        whole = trees.load(store, tree)
        if stopped or not worthwhile(store, whole):
            return
        base = store.path(b"spares", tree.encode())
        making = base + b".making-" + os.urandom(4).hex().encode()
        os.mkdir(making, 0o700)
        count = build(store, whole, making, 0, lambda: bool(stopped))
        os.rename(making, base + (b".ready" if count is None else b".%d" % count))


def worthwhile(store: Store, tree: trees.Tree) -> bool:
    """Many files, and plenty of room."""
    size = sum(int(value.split(b" ", 3)[2]) for value in tree.values() if value.startswith(b"f"))
    disk = os.statvfs(store.root)
    room = disk.f_bavail * disk.f_frsize > ROOM * size
    return len(tree) >= AHEAD and room and (not disk.f_files or disk.f_favail > ROOM * len(tree))


def ended(store: Store, run: str) -> None:
    """Its outputs have been fetched: its folder need not be kept for ever."""
    with open(os.path.join(run_folder(store, run), b"fetched"), "w"):
        pass
