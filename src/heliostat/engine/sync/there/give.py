"""Files of the node on their way to the client: one stream, each file with its own end and digest."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import zlib

from heliostat.engine.sync.there import runs, target
from heliostat.engine.sync.there.lay import TEMPORARY
from heliostat.engine.sync.there.store import CHUNK, Store

TYPE_CHECKING = False  # importing typing would cost the node more than the order
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Iterator  # noqa: UP035 - a node may have Python 3.9


def give(store: Store, ask: dict[str, Any], stream: BinaryIO, out: BinaryIO) -> None:
    """For each thing a line, for each file its bytes in pieces; the last line tells how it went."""
    have, missing, count = json.loads(zlib.decompress(stream.read())), [], 0
    since = laid(store, ask.get("fresh", ""))
    seen = set()
    for number, (base, pattern, prefix) in enumerate(ask["roots"]):
        found = False
        for path, name in matches(base, pattern):
            found = True
            for inner, full in below(path):
                into = os.path.join(os.fsencode(prefix), name, inner) if inner else join(prefix, name)
                if into not in seen:
                    seen.add(into)
                    count += 1
                    one(out, into, full, have, since)
        if not found:
            missing.append(number)
    line(out, {"end": True, "missing": missing, "count": count})
    out.flush()
    if ask.get("ended") and os.path.isdir(runs.run_folder(store, ask["ended"])):
        runs.ended(store, ask["ended"])


def laid(store: Store, run: str) -> int:
    """When the run's work folder was laid, in the disk's own time."""
    try:
        return os.stat(os.path.join(runs.run_folder(store, run), b"tree")).st_mtime_ns if run else 0
    except FileNotFoundError:
        return 0


def join(prefix: str, name: bytes) -> bytes:
    return os.path.join(os.fsencode(prefix), name) if name else os.fsencode(prefix)


def matches(base: str, pattern: str) -> Iterator[tuple[bytes, bytes]]:
    """What a pattern means below a folder, with the path that it has there."""
    root = target.place(base)
    if pattern in ("", "."):
        if os.path.lexists(root):
            yield root, b""
        return
    inside = os.path.normpath(pattern)
    if os.path.isabs(inside) or inside.startswith(".."):
        return
    for found in sorted(glob.glob(os.path.join(glob.escape(root), os.fsencode(inside)), recursive=True)):
        yield found, os.path.relpath(found, root)


def below(path: bytes) -> Iterator[tuple[bytes, bytes]]:
    """A file, or a folder with everything in it."""
    yield b"", path
    if os.path.isdir(path) and not os.path.islink(path):
        for inner in sorted(target.walk(path)):
            yield inner, os.path.join(path, inner)


def one(out: BinaryIO, into: bytes, path: bytes, have: dict[str, Any], since: int) -> None:
    """One thing; what vanished meanwhile is no more there to be brought."""
    if os.path.basename(path).startswith(TEMPORARY):
        return
    name = into.decode("utf-8", "surrogateescape")
    try:
        seen = os.lstat(path)
        kind = seen.st_mode & 0o170000
        if kind != 0o040000 and seen.st_ctime_ns <= since:
            return
        about = {"path": name, "mode": seen.st_mode & 0o777, "mtime": seen.st_mtime_ns}
        if kind == 0o040000:
            line(out, {**about, "kind": "d"})
        elif kind == 0o120000:
            goal = os.readlink(path).decode("utf-8", "surrogateescape")
            line(out, {**about, "kind": "l", "target": goal})
        elif kind == 0o100000:
            with open(path, "rb") as file:
                contents(out, file, {**about, "kind": "f", "size": seen.st_size}, have.get(name))
    except FileNotFoundError:
        return


def contents(out: BinaryIO, file: BinaryIO, about: dict[str, Any], have: Any) -> None:
    """A file's bytes, unless the client has the same; from where it stopped, when it has the beginning."""
    whole, offset = hashlib.sha256(), 0
    if have and have.get("size") == about["size"] and have.get("digest"):
        while data := file.read(CHUNK):
            whole.update(data)
        if whole.hexdigest() == have["digest"]:
            line(out, {**about, "same": True})
            return
        file.seek(0)
        whole = hashlib.sha256()
    part = (have or {}).get("part")
    if part and part["size"] <= about["size"] and part["mark"] == mark(about):
        while offset < part["size"] and (data := file.read(min(CHUNK, part["size"] - offset))):
            whole.update(data)
            offset += len(data)
    line(out, {**about, "offset": offset})
    while data := file.read(CHUNK):
        whole.update(data)
        out.write(b"%d\n" % len(data))
        out.write(data)
    out.write(b"0\n")
    line(out, {"digest": whole.hexdigest()})


def mark(about: dict[str, Any]) -> str:
    """Names this state of a file, so that a part of another is not taken for its beginning."""
    return f"{about['size']}-{about['mtime']}"


def line(out: BinaryIO, value: dict[str, Any]) -> None:
    out.write(json.dumps(value).encode() + b"\n")
