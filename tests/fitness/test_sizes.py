"""One idea to a file and to a function: the size is what can be measured of that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE_LINES = 400
FUNCTION_LINES = 40
FILES = sorted(
    file for folder in ("src", "tests", "bench", "examples") for file in (ROOT / folder).rglob("*.py")
)

# What may be longer, and the ADR that says why.
LONGER: dict[str, str] = {}


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Each function and the lines of its body, docstring left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            yield node.name, (body[-1].end_lineno or 0) - body[0].lineno + 1


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_files_and_functions_stay_small(file: Path) -> None:
    if str(file.relative_to(ROOT)) in LONGER:
        return
    text = file.read_text()
    assert len(text.splitlines()) <= FILE_LINES
    long = {name: lines for name, lines in functions(ast.parse(text)) if lines > FUNCTION_LINES}
    assert not long


def test_exceptions_have_a_reason_and_are_needed() -> None:
    for name, adr in LONGER.items():
        assert (ROOT / adr).is_file()
        assert len((ROOT / name).read_text().splitlines()) > FILE_LINES
