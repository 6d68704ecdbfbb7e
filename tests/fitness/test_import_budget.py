"""What a command may load before it has something to do: a gate on names, which no busy machine can shake."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = frozenset({"asyncio", "rich", "httpx", "h11", "yaml", "ray", "pydantic", "pathspec", "ssl", "numpy"})
# Runs the command in this process and names what it loaded, on its last line of stderr.
SPY = """
import json, sys
from heliostat.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def loaded(*words: str, cwd: Path, code: int = 0) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", SPY, *words], cwd=cwd, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == code, done.stderr
    names: list[str] = json.loads(done.stderr.splitlines()[-1])
    return set(names)


@pytest.mark.parametrize(
    "words", [["--help"], ["up", "--help"], ["status", "--help"], ["--version"], ["help"]]
)
def test_help_loads_neither_the_engine_nor_a_library(words: list[str], tmp_path: Path) -> None:
    names = loaded(*words, cwd=tmp_path)
    assert not names & HEAVY
    assert not {name for name in names if name.startswith(("heliostat.engine", "heliostat.grounds"))}


WORK = ("core.decode", "core.event", "core.job", "core.plan", "core.spec", "engine.status", "ray.client")
PARTS = frozenset({"socket", "subprocess", "logging", "shutil", "importlib.resources", "random"})


def test_status_of_nothing_loads_only_what_looks(tmp_path: Path) -> None:
    """No event loop, no decoder and no record of what is not there."""
    names = loaded("status", cwd=tmp_path, code=5)
    assert not names & (HEAVY | PARTS)
    assert not {name for name in names if name.startswith(tuple(f"heliostat.{part}" for part in WORK))}


def test_status_of_nothing_of_a_file_loads_no_event_loop(tmp_path: Path) -> None:
    (tmp_path / "helio.yaml").write_text("cluster: demo\n")
    assert not loaded("status", cwd=tmp_path, code=5) & (HEAVY - {"yaml"})


def cpu(*words: str, cwd: Path) -> float:
    """CPU seconds of one command, children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "heliostat", *words], cwd=cwd, capture_output=True, check=False, timeout=60
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(("words", "goal"), [(["--help"], 0.080), (["status"], 0.150)])
def test_start_up_takes_little_cpu(words: list[str], goal: float, tmp_path: Path) -> None:
    """The goal on a quiet machine; a busy one of strangers gets twice as much before this fails."""
    least = min(cpu(*words, cwd=tmp_path) for _ in range(5))
    room = 1 if os.environ.get("HELIO_STRICT_TIMES") else 2
    print(f"helio {' '.join(words)}: {least * 1000:.0f} ms of CPU, goal {goal * 1000:.0f} ms")  # noqa: T201 - the figure
    assert least <= goal * room
