"""A link from one of our pages to another file of this repository leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / "examples").rglob("*.md"),
]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def relative(text: str) -> list[str]:
    targets = (link.partition("#")[0] for link in LINK.findall(text))
    return [target for target in targets if target and not re.match(r"[a-z]+:", target)]


def test_links_are_found() -> None:
    assert relative("[a](docs/a.md#b), [c](https://x.y/z), [d](#e), [f](g.md)") == ["docs/a.md", "g.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_exists(page: Path) -> None:
    missing = [target for target in relative(page.read_text()) if not (page.parent / target).exists()]
    assert not missing
