"""Texts of this room that run elsewhere, read from the package."""

from __future__ import annotations

import importlib.resources
from functools import cache


@cache
def text_of(name: str) -> str:
    """A program of a container."""
    return importlib.resources.files("heliostat.grounds.compose").joinpath(f"{name}.py").read_text("utf-8")
