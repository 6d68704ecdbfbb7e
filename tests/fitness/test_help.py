"""What the command line says of itself: each command has help with an example, the codes are documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from heliostat.cli.main import COMMANDS, cli
from heliostat.core.errors import EXIT_CODES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_with_an_example(name: str) -> None:
    done = CliRunner().invoke(cli, [name, "--help"], prog_name="helio")
    assert done.exit_code == 0, done.output
    assert re.search(rf"Examples?:.*helio .*\b{name}\b", done.output, re.DOTALL), done.output


def test_exit_codes_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "exit-codes.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)
    assert tuple((int(code), text) for code, text in rows) == EXIT_CODES
