"""Records to plain JSON values, for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

from heliostat.core.errors import HelioError


def plain(value: Any) -> Any:  # noqa: PLR0911 - one line for each kind of value
    """A record as JSON can hold it; empty fields stay, so that programs can rely on the keys."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, HelioError):
        return error(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, PurePath):
        return str(value)
    return [plain(each) for each in value]


def error(what: HelioError) -> dict[str, Any]:
    """An error as the last JSON line carries it."""
    told = {
        "kind": type(what).__name__,
        "what": what.what,
        "why": what.why,
        "next": what.fix,
        "retry": what.retry,
    }
    problems = getattr(what, "problems", None)
    return told | ({"problems": plain(problems)} if problems is not None else {})
