"""Every command and every piece of Python on our pages does what the page says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fitness.pages import Code, Typed, agrees, blocks

ROOT = Path(__file__).parents[2]
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if any(blocks(page))]
MARK = "-- end of what was printed --"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with the examples, and a home of its own. Short, because Ray puts sockets below it."""
    home = Path(tempfile.mkdtemp(prefix="hp", dir="/tmp"))
    shutil.copytree(
        ROOT / "examples", home / "work" / "examples", ignore=shutil.ignore_patterns("__pycache__")
    )
    yield home
    shutil.rmtree(home, ignore_errors=True)


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHON"))}
    return kept | {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "100",
        "HELIO_STATE": str(home / "state"),
        "HELIO_CACHE": str(home / "cache"),
        "HELIO_DATA": str(home / "data"),
    }


def script(steps: list[Typed | Code]) -> str:
    """One shell for the whole page; after each step a mark and the exit code, which `$?` still has then."""
    lines = ["exec 2>&1"]
    for number, step in enumerate(steps):
        if isinstance(step, Code):
            lines.append(f"python - <<'END-{number}'\n{step.text}END-{number}")
        else:
            lines.append(step.command)
        lines.append(f"code=$?; printf '\\n%s %s\\n' '{MARK}' $code; (exit $code)")
    return "\n".join(lines) + "\n"


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_is_true(page: Path, place: Path) -> None:
    steps = list(blocks(page))
    (place / "page.sh").write_text(script(steps))
    try:
        done = subprocess.run(
            ["bash", str(place / "page.sh")],
            env=environment(place),
            cwd=place / "work",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    finally:
        clean_up(place)
    check(page, steps, done.stdout)


def check(page: Path, steps: list[Typed | Code], printed: str) -> None:
    """Each step's own output, and no exit code that the page does not ask about."""
    first, *rest = printed.split(f"\n{MARK} ")
    codes = [int(piece.partition("\n")[0]) for piece in rest]
    outs = [first, *(piece.partition("\n")[2] for piece in rest)]
    for step, following, code, out in zip(steps, [*steps[1:], None], codes, outs, strict=False):
        where = f"{page.relative_to(ROOT)}:{step.line}"
        asked = isinstance(following, Typed) and following.command == "echo $?"
        if isinstance(step, Typed) and step.command == "echo $?":
            assert out.strip() == step.expected, where
            continue
        assert code == 0 or asked, f"{where} ended with {code}:\n{out}"
        if isinstance(step, Typed):
            assert agrees(out, step.expected), f"{where}: $ {step.command}\nprinted:\n{out}"
    assert len(codes) == len(steps), f"{page.name}: the shell ended early:\n{printed[-2000:]}"


def clean_up(place: Path) -> None:
    """Whatever a page left, ours only."""
    subprocess.run(
        ["helio", "clean", "--yes"],
        env=environment(place),
        cwd=place / "work",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
