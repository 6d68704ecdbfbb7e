"""Each example runs with plain `python`, where Ray starts on this machine for that script alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    """A home and a Ray of its own; a short path, because Ray puts sockets below it."""
    home = tempfile.mkdtemp(prefix="hx", dir="/tmp")
    yield {
        "HOME": home,
        "PATH": os.environ["PATH"],
        "RAY_ADDRESS": "local",
        "RAY_TMPDIR": home,
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    shutil.rmtree(home, ignore_errors=True)


def run(env: dict[str, str], *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        env=env,
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.mark.ray
def test_hello_counts_a_hundred_tasks(env: dict[str, str]) -> None:
    out = run(env, "hello.py")
    assert out.startswith("Nodes: 1, CPUs: ")
    assert sum(map(int, re.findall(r"(\d+) tasks$", out, re.MULTILINE))) == 100


@pytest.mark.ray
def test_primes_finds_them_all(env: dict[str, str]) -> None:
    out = run(env, "primes.py")
    assert out.startswith("10001 tasks in ")
    assert "605 primes between 8995000 and 9005000" in out
    assert "8995003, 8995013" in out


@pytest.mark.ray
def test_pairs_calls_every_node_from_every_node(env: dict[str, str]) -> None:
    out = run(env, "pairs.py")
    assert re.search(r"called \S+ +10 times$", out, re.MULTILINE)
    assert out.endswith("Success!\n")


@pytest.mark.ray
def test_gpu_says_what_is_there_or_that_nothing_is(env: dict[str, str]) -> None:
    assert re.search(r"GPU$", run(env, "gpu.py"), re.MULTILINE)


@pytest.mark.ray
def test_variance_is_the_same_both_ways(env: dict[str, str], tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    for file in files:
        run(env, "variance.py", "--sample", "5000", file)
    out = run(env, "variance.py", "3", *files)
    assert "10,000 in 3 parts" in out
    assert "equal results: yes" in out
    assert "speed-up:" in out


def test_variance_without_files_explains_and_makes_nothing_up(env: dict[str, str]) -> None:
    assert "makes no numbers up" in run(env, "variance.py", code=1)


def test_variance_names_the_line_that_is_no_number(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("1.5\n2\nthree\n")
    assert "n.txt:3: not a number: 'three'" in run(env, "variance.py", "2", str(tmp_path / "n.txt"), code=1)
    assert "No such file" in run(env, "variance.py", "2", str(tmp_path / "none.txt"), code=1)
