"""Nothing of a test ever touches the person's own state or cache; and a last word on which real parts ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rig.fixture import engine, rig

__all__ = ["engine", "own_home", "rig"]

PART = "real part"
REAL = {
    "ray": "real Ray clusters on this machine",
    "docker": "a real Docker engine with containers of Ray",
    "rig": "real hosts with sshd in network namespaces",
    "torch": "a model trained by PyTorch and Ray Train",
}


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELIO_STATE", str(tmp_path / "helio-state"))
    monkeypatch.setenv("HELIO_CACHE", str(tmp_path / "helio-cache"))
    monkeypatch.setenv("HELIO_DATA", str(tmp_path / "helio-data"))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Write the real parts on the test, for the last word: a keyword could also be a name or a parameter."""
    item.user_properties += [(PART, part) for part in REAL if item.get_closest_marker(part)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which real parts ran and which were skipped, so that a green run cannot hide what it left out."""
    lines = [
        f"  {text}: {counts}" for part, text in REAL.items() if (counts := _counts(terminalreporter, part))
    ]
    if lines:
        terminalreporter.write_line("\nReal parts in this run:")
        for line in lines:
            terminalreporter.write_line(line)


def _counts(reporter: pytest.TerminalReporter, part: str) -> str:
    """How the tests of one part ended: `12 passed, 1 skipped`."""
    ends = {
        end: sum(
            (PART, part) in map(tuple, getattr(one, "user_properties", ()))
            for one in reporter.stats.get(end, ())
        )
        for end in ("passed", "failed", "error", "skipped")
    }
    return ", ".join(f"{count} {end}" for end, count in ends.items() if count)
