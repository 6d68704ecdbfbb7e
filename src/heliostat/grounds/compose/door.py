"""The program of the door: connections of the networks that the file names are let through to a service.

It runs in a container of its own, standard library only, and is sent as text with a call of `main` behind it.
Whoever comes from elsewhere is let go without a word.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any

TOLD = "/etc/heliostat/door.json"
ROUTES = "/proc/net/route"
CHUNK = 65536

Visit = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


def gateways(routes: Iterable[str]) -> set[str]:
    """The machine that this container stands on, from the kernel's table of routes.

    >>> gateways(["Iface Destination Gateway", "eth0 00000000 010012AC 0003"])
    {'172.18.0.1'}
    """
    rows = [line.split() for line in routes][1:]
    return {str(ipaddress.IPv4Address(bytes.fromhex(row[2])[::-1])) for row in rows if row[1] == "00000000"}


def may(address: str, network: str, near: Iterable[str]) -> bool:
    """Whether somebody at that address may come in.

    Engines that pass connections on by a program, instead of by the kernel, make all of them come
    from their own machine: where somebody really is cannot be told then, so nobody is let in.

    >>> may("10.1.2.3", "10.0.0.0/8", ["172.18.0.1"]), may("192.168.1.1", "10.0.0.0/8", ["172.18.0.1"])
    (True, False)
    >>> may("172.18.0.1", "172.16.0.0/12", ["172.18.0.1"]), may("172.18.0.1", "0.0.0.0/0", ["172.18.0.1"])
    (False, True)
    """
    allowed = ipaddress.ip_network(network, strict=False)
    if allowed.prefixlen == 0:
        return True
    return address not in near and ipaddress.ip_address(address) in allowed


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.write_eof()


def visit(network: str, to: str, near: Iterable[str]) -> Visit:
    """What becomes of a connection."""
    host, _, port = to.rpartition(":")

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if may(writer.get_extra_info("peername")[0], network, near):
                far_reader, far_writer = await asyncio.open_connection(host, int(port))
                try:
                    await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))
                finally:
                    far_writer.close()
        except OSError as error:
            print(f"{to}: {error}", file=sys.stderr)  # noqa: T201  (the container's log)
        finally:
            writer.close()

    return one


async def serve(told: Iterable[Mapping[str, Any]]) -> None:
    with open(ROUTES, encoding="ascii") as file:
        near = gateways(file)
    for one in told:
        await asyncio.start_server(visit(one["network"], one["to"], near), "0.0.0.0", one["port"])  # noqa: S104
    await asyncio.Event().wait()


def main() -> None:
    with open(TOLD, encoding="utf-8") as file:
        told = json.load(file)
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(told))
