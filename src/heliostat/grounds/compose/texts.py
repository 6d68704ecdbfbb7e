"""Texts of this room that run elsewhere, read from the package."""

from __future__ import annotations

import importlib.resources
from functools import cache


@cache
def entry_text() -> str:
    """The first program of a container."""
    return importlib.resources.files("heliostat.grounds.compose").joinpath("entry.py").read_text("utf-8")
