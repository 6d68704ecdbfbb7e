"""What a node keeps: the newest runs, whatever was not fetched, and the contents that those need."""

from __future__ import annotations

import os
import time

from heliostat.engine.sync.there import trees
from heliostat.engine.sync.there.store import BIG, Store, Writer

RUNS = 10  # fetched runs that stay
TREES = 10  # trees that stay, so that the next difference is small
GRACE = 24 * 3600.0  # seconds for which whatever was sent or asked for stays in any case


def tidy(store: Store) -> None:
    """Remove old runs that were fetched; once a day, contents that nothing needs any more."""
    old_runs(store)
    mark = store.path(b"swept")
    try:
        due = time.time() - os.stat(mark).st_mtime > GRACE
    except FileNotFoundError:
        due = True
        open(mark, "w").close()
        return
    if due:
        open(mark, "w").close()
        with store.lock("sweep", wait=False) as held:
            if held is not None:
                sweep(store)


def old_runs(store: Store, most: int = RUNS) -> list[str]:
    """All but the newest of those whose outputs were fetched; a run that was not fetched is never touched."""
    folder = os.path.join(store.home, b"runs")
    fetched: list[tuple[float, bytes]] = []
    for name in os.listdir(folder):
        try:
            fetched.append((os.stat(os.path.join(folder, name, b"fetched")).st_mtime, name))
        except (FileNotFoundError, NotADirectoryError):
            continue
    gone = []
    for _, name in sorted(fetched, reverse=True)[most:]:
        path = os.path.join(folder, name)
        leaving = os.path.join(folder, b".leaving-" + name)
        os.rename(path, leaving)
        gone.append(name.decode())
    for name in os.listdir(folder):
        if name.startswith(b".leaving-"):
            import shutil  # rarely needed, and not small

            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    return gone


def sweep(store: Store, grace: float = GRACE) -> dict[str, int]:
    """Remove contents that no tree needs; trees stay that a run stands on, and the newest."""
    before = time.time() - grace
    live = _live_trees(store, before)
    needed: set[bytes] = set()
    for digest in live:
        whole = trees.load(store, digest)
        trees.write(store.path(b"trees", digest.encode()), b"- 0\n" + _packed(whole))
        needed.update(value.split(b" ", 3)[3] for value in whole.values() if value.startswith(b"f"))
    gone = {"trees": 0, "contents": 0}
    for name in os.listdir(store.path(b"trees")):
        if name.decode() not in live:
            os.unlink(store.path(b"trees", name))
            gone["trees"] += 1
    for name in os.listdir(store.path(b"parts")):
        _drop_old(store.path(b"parts", name), before)
    for folder, _, names in os.walk(store.path(b"blobs")):
        for name in names:
            if name not in needed:
                gone["contents"] += _drop_old(os.path.join(folder, name), before)
    gone["contents"] += _packs(store, needed, before)
    return gone


def _packed(tree: trees.Tree) -> bytes:
    import zlib

    return zlib.compress(trees.encode(tree), 1)


def _live_trees(store: Store, before: float) -> set[str]:
    live = set()
    runs = os.path.join(store.home, b"runs")
    for name in os.listdir(runs):
        try:
            with open(os.path.join(runs, name, b"tree")) as file:
                live.add(file.read())
        except (FileNotFoundError, NotADirectoryError):
            continue
    names = os.listdir(store.path(b"trees"))
    dated = sorted(
        ((os.stat(store.path(b"trees", name)).st_mtime, name.decode()) for name in names), reverse=True
    )
    live.update(name for at, name in dated if at > before)
    live.update(name for _, name in dated[:TREES])
    live.update(name.decode().partition(".")[0] for name in os.listdir(store.path(b"spares")))
    return {name for name in live if trees.known(store, name)}


def _drop_old(path: bytes, before: float) -> int:
    if os.stat(path).st_mtime >= before:
        return 0
    os.unlink(path)
    return 1


def _packs(store: Store, needed: set[bytes], before: float) -> int:
    """Old packs become one, with what is needed."""
    gone = 0
    old = [pack for pack in store.packs() if os.stat(pack.path + b".index").st_mtime < before]
    unneeded = [sum(digest not in needed for digest, _, _ in pack.entries()) for pack in old]
    if not any(unneeded) and len(old) < 2:
        return 0
    new = Writer(store.path(b"packs", b"swept-%d-%d" % (int(time.time()), os.getpid())))
    kept: set[bytes] = set()
    for pack in old:
        for digest, offset, size in pack.entries():
            if digest not in needed:
                gone += 1
            elif digest not in kept and size < BIG:
                kept.add(digest)
                new.put(digest, bytes(pack.view()[offset : offset + size]))
    new.close()
    for pack in old:
        os.unlink(pack.path + b".index")
        os.unlink(pack.path + b".pack")
    return gone
