"""One order from the client: a line of JSON and data on standard input, one line of JSON back."""

from __future__ import annotations

import io
import json
import os
import sys
import zlib

from heliostat.engine.sync.there import give, keep, runs, spread, target, trees
from heliostat.engine.sync.there.store import Store

TYPE_CHECKING = False  # importing typing would cost the node more than the order
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Callable  # noqa: UP035 - a node may have Python 3.9

    Order = dict[str, Any]


def begin(store: Store, ask: Order, stream: BinaryIO) -> Order:
    """All in one, when the node has this tree, or the one that it differs from and the difference is here."""
    if trees.known(store, ask["tree"]):
        return lay(store, {**ask, "length": 0}, stream)
    if not trees.known(store, ask["base"]):
        return {"done": False, "base": False, "empty": store.empty()}
    if not ask["whole"]:
        return {"done": False, "base": True, "empty": False}
    data = stream.read(ask["length"])
    store.take(stream, ask["session"])
    return lay(store, {**ask, "length": len(data)}, io.BytesIO(data))


def want(store: Store, _ask: Order, stream: BinaryIO) -> Order:
    """Which of these contents are here, as ones and zeros, and how much of the large ones has arrived."""
    have, parts = [], {}
    for line in zlib.decompress(stream.read()).split(b"\n"):
        digest, size = line.split()
        there = store.has(digest, int(size))
        have.append("1" if there else "0")
        if there and os.path.exists(store.blob(digest)):
            os.utime(store.blob(digest))
        elif os.path.exists(store.part(digest)):
            parts[digest.decode()] = os.stat(store.part(digest)).st_size
    for pack in store.packs():
        os.utime(pack.path + b".index")  # what a client was told to be here stays for now
    return {"have": "".join(have), "parts": parts}


def put(store: Store, ask: Order, stream: BinaryIO) -> Order:
    count, wrong = store.take(stream, ask["session"])
    return {"count": count, "wrong": wrong}


def lay(store: Store, ask: Order, stream: BinaryIO) -> Order:
    """The work folder of a run."""
    data = stream.read(ask["length"])
    if not trees.known(store, ask["tree"]):
        trees.save(store, ask["tree"], ask["base"], zlib.decompress(data))
    done = runs.lay_run(store, ask["run"], ask["tree"])
    if ask["files"] >= runs.AHEAD:
        runs.prepare(store, ask["tree"])
    else:
        keep.tidy(store)
    return {"done": True, **done}


def glance(store: Store, ask: Order, _stream: BinaryIO) -> Order:
    return dict(target.glance(store, ask["remote"]), empty=store.empty())


def compare(_store: Store, ask: Order, stream: BinaryIO) -> Order:
    whole = trees.decode(zlib.decompress(stream.read()))
    if ask.get("file"):
        return target.compare_file(ask["remote"], ask["file"], next(iter(whole.values())))
    return target.compare(ask["remote"], whole)


def kinds(_store: Store, ask: Order, _stream: BinaryIO) -> Order:
    return {"kinds": [target.kind(path) for path in ask["paths"]]}


def lay_target(store: Store, ask: Order, stream: BinaryIO) -> Order:
    """Behind the changes stands what they need, where that is little."""
    changes = trees.decode(zlib.decompress(stream.read(ask["length"])))
    _, wrong = store.take(stream, ask["session"])
    return {"wrong": wrong} if wrong else target.lay_target(store, ask, changes)


def fetch(store: Store, ask: Order, _stream: BinaryIO) -> Order:
    return spread.fetch(store, ask)


ORDERS: dict[str, Callable[[Store, Order, BinaryIO], Order]] = {
    "begin": begin,
    "want": want,
    "put": put,
    "lay": lay,
    "glance": glance,
    "compare": compare,
    "kinds": kinds,
    "lay_target": lay_target,
    "fetch": fetch,
}


def main(stream: BinaryIO, out: BinaryIO) -> None:
    """Answer one order; an operating system's refusal is an answer, too."""
    ask = json.loads(stream.readline())
    store = Store(ask["home"])
    try:
        store.make()
        os.makedirs(os.path.join(store.home, b"runs"), mode=0o700, exist_ok=True)
        if ask["order"] == "give":
            give.give(store, ask, stream, out)
            return
        if ask["order"] == "offer":
            spread.offer(store, ask, out)
            return
        answer = ORDERS[ask["order"]](store, ask, stream)
    except LookupError as error:
        answer = {"done": False, "lacks": str(error)}
    except OSError as error:
        name = os.fsdecode(error.filename) if error.filename else ""
        answer = {"errno": error.errno, "strerror": error.strerror or str(error), "filename": name}
    out.write(json.dumps(answer).encode() + b"\n")
    out.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
