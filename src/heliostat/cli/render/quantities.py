"""Sizes, times and amounts in the words of a person."""

from __future__ import annotations


def size(count: float) -> str:
    """Bytes, to three figures.

    >>> size(512), size(1536), size(16 * 2**30)
    ('512 B', '1.5 KiB', '16 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}" if count < 1000 else f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.3g} TiB" if count < 1000 else f"{count:.0f} TiB"


def seconds(count: float) -> str:
    """A time span.

    >>> seconds(0.42), seconds(71), seconds(7322), seconds(200_000)
    ('0.4 s', '1 min 11 s', '2 h 2 min', '2 d 7 h')
    """
    if count < 59.95:
        return f"{count:.1f} s"
    whole = round(count)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def amount(count: float) -> str:
    """A number without a needless fraction.

    >>> amount(4.0), amount(0.5)
    ('4', '0.5')
    """
    return f"{count:.4g}" if count < 10_000 else f"{count:.0f}"


def many(count: int, one: str, more: str = "") -> str:
    """A count with its noun.

    >>> many(1, "node"), many(3, "node")
    ('1 node', '3 nodes')
    """
    return f"{count} {one}" if count == 1 else f"{count} {more or one + 's'}"


def resource(name: str, value: float) -> str:
    """An amount of a Ray resource; memory is in bytes there.

    >>> resource("CPU", 4.0), resource("memory", 2.0**30)
    ('4', '1 GiB')
    """
    return size(value) if name in ("memory", "object_store_memory") else amount(value)
