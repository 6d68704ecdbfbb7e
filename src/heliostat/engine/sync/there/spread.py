"""From one node's store to others, past the client: offered once on an address that they share.

Both sides show that they know the secret of this one transfer before a byte of contents moves; the secret
itself never does. What arrives is taken like what comes from the client: only under the digest that it has.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time

from heliostat.engine.sync.there.store import BIG, CHUNK, RECORD, Pack, Store

TYPE_CHECKING = False  # importing typing would cost the node more than the order
if TYPE_CHECKING:
    from typing import Any, BinaryIO

COMING = 20.0  # seconds for all to have come; a transfer itself may last as long as bytes move
STUCK = 20.0  # seconds without one byte


def offer(store: Store, ask: dict[str, Any], out: BinaryIO) -> None:
    """Say the port, serve so many as were announced, and end."""
    with socket.create_server((ask["ip"], 0)) as server:
        out.write(json.dumps({"port": server.getsockname()[1]}).encode() + b"\n")
        out.flush()
        deadline = time.monotonic() + COMING
        served: list[threading.Thread] = []
        while len(served) < ask["count"] and (rest := deadline - time.monotonic()) > 0:
            server.settimeout(rest)
            try:
                line, _ = server.accept()
            except OSError:
                break
            served.append(threading.Thread(target=_serve, args=(store, ask, line), daemon=True))
            served[-1].start()
    for thread in served:
        thread.join()


def _file(line: socket.socket) -> BinaryIO:
    return line.makefile("rwb", CHUNK)  # type: ignore[return-value]  # its stub knows no better


def _serve(store: Store, ask: dict[str, Any], line: socket.socket) -> None:
    with line:
        line.settimeout(STUCK)
        try:
            with _file(line) as stream:
                if _known(stream, ask["secret"], b"source", b"other"):
                    _give(store, ask["session"], stream)
                    stream.flush()
        except OSError:
            return  # it went away: what it lacks comes from the client


def _give(store: Store, session: str, stream: BinaryIO) -> None:
    """Everything that this session brought here."""
    path = store.path(b"packs", session.encode())
    if os.path.exists(path + b".index"):
        pack = Pack(path)
        for digest, offset, size in pack.entries():
            stream.write(RECORD.pack(digest, size, 0, size))
            stream.write(pack.view()[offset : offset + size])
    if os.path.exists(path + b".big"):
        with open(path + b".big", "rb") as large:
            digests = [row.split()[0] for row in large.read().splitlines()]
        for digest in digests:
            with open(store.blob(digest), "rb") as file:
                size = os.fstat(file.fileno()).st_size
                assert size >= BIG  # noqa: S101 - smaller ones are in packs
                stream.write(RECORD.pack(digest, size, 0, size))
                while data := file.read(CHUNK):
                    stream.write(data)


def fetch(store: Store, ask: dict[str, Any]) -> dict[str, Any]:
    """Take all that is offered there; how much of it was whole."""
    try:
        line = socket.create_connection((ask["ip"], ask["port"]), timeout=5)
    except OSError as error:
        return {"count": 0, "why": str(error)}
    with line:
        line.settimeout(STUCK)
        try:
            with _file(line) as stream:
                if not _known(stream, ask["secret"], b"other", b"source"):
                    return {"count": 0, "why": "somebody else answers there"}
                return {"count": store.take(stream, ask["session"])[0], "why": ""}
        except OSError as error:
            return {"count": 0, "why": str(error)}


def _known(stream: BinaryIO, secret: str, me: bytes, you: bytes) -> bool:
    """Whether the other side knows the secret as well; it learns no more of it than that we do."""
    import hashlib
    import hmac

    def shown(who: bytes, first: bytes, second: bytes) -> bytes:
        return hmac.new(bytes.fromhex(secret), who + first + second, hashlib.sha256).digest()

    mine = os.urandom(32)
    stream.write(mine)
    stream.flush()
    yours = stream.read(32)
    stream.write(shown(me, mine, yours))
    stream.flush()
    return len(yours) == 32 and hmac.compare_digest(stream.read(32), shown(you, yours, mine))
