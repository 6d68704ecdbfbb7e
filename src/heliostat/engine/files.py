"""Writing a file whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from heliostat.core.trouble import trouble


def write_text(path: Path, text: str) -> None:
    """Write it beside its place and move it there, so that nobody ever sees half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_text(text, encoding="utf-8", newline="\n")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise trouble(error, f"cannot write {path}") from error
