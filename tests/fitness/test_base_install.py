"""The client alone is small: what a person gets who drives clusters elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = 20
MEGABYTES = 25


@pytest.mark.slow
def test_base_install_is_small(tmp_path: Path) -> None:
    into = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--target", str(into), str(ROOT)]
    subprocess.run(install, check=True, timeout=300)
    installed = sorted(path.name for path in into.glob("*.dist-info"))
    assert "heliostat" in " ".join(installed)
    assert len(installed) <= DISTRIBUTIONS, installed
    assert f"| {len(installed)} packages," in (ROOT / "docs" / "why.md").read_text()
    size = sum(path.stat().st_size for path in into.rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert size <= MEGABYTES * 1e6
