from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.cli.inside import Inside
from tests.cli.place import Helio


@pytest.fixture
def helio(tmp_path: Path) -> Helio:
    """`helio`, in an empty folder, on an empty fake place."""
    folder = tmp_path / "here"
    folder.mkdir(exist_ok=True)
    return Helio(folder)


@pytest.fixture
def inside(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Inside:
    """`helio` in this process, in an empty folder, without a terminal."""
    folder = tmp_path / "here"
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return Inside(folder, capsys)
