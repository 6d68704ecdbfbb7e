"""Rows as one table to read, or as JSON to keep."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.row import Row

HEADINGS = ("what", "ours", "peer", "peer / ours", "limit", "ours / limit", "peer is; limit is")


def table(rows: Sequence[Row]) -> str:
    """A table in plain text.

    >>> print(table([Row(name="no-op up", ours=0.5, theirs=11.5, peer="ray up")]))
    what      ours    peer    peer / ours  limit  ours / limit  peer is; limit is
    --------  ------  ------  -----------  -----  ------------  -----------------
    no-op up  0.50 s  11.5 s  23.0         -      -             ray up
    """
    cells = [HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    limit = f"limit: {row.limit_name}" if row.limit_name else ""
    return (
        row.name,
        _figure(row.ours, row.unit),
        _figure(row.theirs, row.unit),
        _figure(row.ratio),
        _figure(row.limit, row.unit),
        _figure(row.over_limit),
        "; ".join(part for part in (row.peer, limit, row.note) if part),
    )


def _figure(value: float | None, unit: str = "") -> str:
    """Three digits that count."""
    if value is None:
        return "-"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{value:.{digits}f} {unit}".rstrip()


def keep(rows: Sequence[Row], file: str) -> None:
    """Figures with what is needed to compare them later: versions and the machine."""
    record: dict[str, Any] = {
        "python": platform.python_version(),
        "ray": version("ray"),
        "heliostat": version("heliostat"),
        "cpus": os.cpu_count(),
        "system": platform.platform(),
        "rows": [asdict(row) | {"ratio": row.ratio, "over_limit": row.over_limit} for row in rows],
    }
    Path(file).write_text(json.dumps(record, indent=2) + "\n")
