"""Ports, held so that nobody else picks them. Standard library only: it is copied to nodes."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Mapping

FROM = 20_000  # below the ephemeral range: no outgoing connection takes a port of ours


def ephemeral() -> int:
    """Where the ports begin that the kernel gives to connections."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError):
        return 32_768


def hold(ip: str, port: int = 0) -> socket.socket:
    """Bind a port without listening: nobody else picks it, and the daemon it is meant for still gets it.

    A second bind succeeds only for a socket with SO_REUSEADDR: servers set it, a pick here does not.
    """
    tries = [port] if port else random.sample(range(FROM, max(ephemeral(), FROM + 1000)), 200)
    error = OSError("no port is free")
    for one in tries:
        sock = socket.socket()
        try:
            sock.bind((ip, one))
        except OSError as taken:
            sock.close()
            error = OSError(taken.errno, f"port {one} on {ip}: {taken.strerror}")
            continue
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return sock
    raise error


def take_ports(ip: str, asked: Mapping[str, int], path: str) -> tuple[list[socket.socket], dict[str, int]]:
    """Hold every port asked for; where any will do (0), the one of last time if it is free, else another."""
    try:
        with open(path, encoding="utf-8") as file:
            before = json.load(file)
    except (OSError, ValueError):
        before = {}
    held = {name: again(ip, port, before.get(name, 0)) for name, port in asked.items()}
    ports: dict[str, int] = {name: sock.getsockname()[1] for name, sock in held.items()}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(ports, file)
    return list(held.values()), ports


def again(ip: str, asked: int, before: int) -> socket.socket:
    try:
        return hold(ip, asked or before)
    except OSError:
        if asked:
            raise
        return hold(ip)


def fill(text: str, ports: Mapping[str, int]) -> str:
    """Put the ports in.

    >>> fill("--port={gcs}", {"gcs": 6379})
    '--port=6379'
    """
    for name, port in ports.items():
        text = text.replace("{" + name + "}", str(port))
    return text
