"""The table of docs/ray-yaml.md: each key of Ray's, and what it becomes. `python -m` prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from heliostat.core.rayyaml.keys import NODE_TYPE, PROVIDERS, TOP, Key


def table() -> str:
    """Every key that a file for `ray up` may have."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "| Ray's key | in a heliostat file |"
    yield "|---|---|"
    yield from _rows(TOP, "")
    yield from _rows(NODE_TYPE, "*type*.")
    for kind, keys in PROVIDERS.items():
        if kind != "kubernetes":
            yield from _rows(keys, f"provider ({kind}).")


def _rows(keys: Mapping[str, Key], lead: str) -> Iterator[str]:
    for name, key in keys.items():
        if key.becomes:
            yield f"| {lead}`{name}` | {key.becomes} |"
            yield from _rows(key.inside, f"{lead}`{name}`.")


if __name__ == "__main__":
    sys.stdout.write(table())
