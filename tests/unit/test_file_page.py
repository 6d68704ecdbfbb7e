"""docs/file.md is what the decoder's own table says today."""

from __future__ import annotations

from pathlib import Path

from heliostat.core.docs import text

PAGE = Path(__file__).parents[2] / "docs" / "file.md"


def test_the_page_of_the_file_is_current() -> None:
    assert PAGE.read_text() == text(), "run `make docs`"
