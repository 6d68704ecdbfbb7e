"""The page's table is the decoder's own."""

from __future__ import annotations

from pathlib import Path

from heliostat.core.rayyaml.page import table

PAGE = Path(__file__).parents[3] / "docs" / "ray-yaml.md"


def test_the_table_on_the_page_is_up_to_date() -> None:
    assert PAGE.read_text().endswith("\n\n" + table()), "python -m heliostat.core.rayyaml.page writes it"
