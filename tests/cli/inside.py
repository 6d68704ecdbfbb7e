"""`helio` in this process: a command line costs a millisecond, and everything it says is caught."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from heliostat.cli.main import run


class Said(NamedTuple):
    """How a command line ended, and what it wrote."""

    code: int
    out: str
    err: str


class Inside:
    """A folder to stand in, and `helio` there. Nobody sits at its terminal."""

    def __init__(self, folder: Path, caught: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.caught = caught

    def __call__(self, *words: str) -> Said:
        self.caught.readouterr()
        code = run(words)
        out, err = self.caught.readouterr()
        return Said(code, out, err)

    def write(self, text: str | bytes, name: str = "helio.yaml") -> Path:
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path
