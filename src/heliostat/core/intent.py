"""What a run meant to do: written before its first change, read only by what cleans up after it."""

from __future__ import annotations

from dataclasses import dataclass

from heliostat.core.owner import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One run that began. It says what may exist, never what does."""

    owner: Owner
    verb: str
    run: str
    names: tuple[str, ...] = ()  # what it meant to make or change
    at: float = 0.0  # seconds since the epoch
