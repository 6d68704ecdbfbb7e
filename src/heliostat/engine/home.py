"""Where heliostat keeps its few files on this machine: intent and caches, nothing that is believed."""

from __future__ import annotations

import os
from pathlib import Path

from heliostat.core.trouble import trouble


def state_dir() -> Path:
    """Journals. HELIO_STATE overrides it."""
    given = os.environ.get("HELIO_STATE")
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return _private(Path(os.path.abspath(given)) if given else Path(base) / "heliostat", "HELIO_STATE")


def cache_dir() -> Path:
    """What can be made again at any time: digests of files, decoded files. HELIO_CACHE overrides it."""
    given = os.environ.get("HELIO_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return _private(Path(os.path.abspath(given)) if given else Path(base) / "heliostat", "HELIO_CACHE")


def _private(path: Path, variable: str) -> Path:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise trouble(error, f"cannot make the folder {path}", instead=f"set {variable} elsewhere") from error
    return path
