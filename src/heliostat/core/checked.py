"""What a look at a place found, before anything is made there. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from heliostat.core.errors import HelioError


class Mark(StrEnum):
    OK = "ok"
    WARN = "warn"  # works, but may bite
    BAD = "bad"  # cannot work so


@dataclass(frozen=True, slots=True)
class Checked:
    what: str
    mark: Mark
    text: str
    todo: str = ""
    error: HelioError | None = None  # what `plan` and `up` say of it
