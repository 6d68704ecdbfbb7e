"""Python values as the file would have them: `workers=3` is `--set workers=3`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping

# What YAML reads as it is written, also inside braces.
_PLAIN = re.compile(r"[\w./][\w./@%+ :-]*", re.ASCII)


def sets(overrides: Mapping[str, object]) -> tuple[str, ...]:
    """Each as KEY=VALUE.

    >>> sets({"workers": {"count": "0..4", "cpus": 1}, "work": None, "env": {"A": "x: y"}})
    ('workers={count: 0..4, cpus: 1}', 'work=', 'env={A: "x: y"}')
    """
    return tuple(f"{key}={written(value)}" for key, value in overrides.items())


def written(value: object) -> str:
    """One value in YAML's short form, on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{written(key)}: {written(part)}' for key, part in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    plain = _PLAIN.fullmatch(text) and ": " not in text and not text.endswith((" ", ":"))
    return text if plain else json.dumps(text)
