"""The training example on a real cluster here, with a node killed in mid-epoch; and its notebook."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine import Machine
from tests.training import EXAMPLE, compare, lay, need_torch, trained, trained_with_a_loss

pytestmark = [pytest.mark.ray, pytest.mark.torch, pytest.mark.slow]
FILE = ("-f", "local.yaml")


@pytest.fixture(scope="module")
def lab() -> Iterator[Machine]:
    """The example's folder with its cluster of three nodes; checkpoints go below this home."""
    need_torch()
    with tempfile.TemporaryDirectory(prefix="ht", dir="/tmp", ignore_cleanup_errors=True) as home:
        made = Machine(Path(home), HOME=home)
        lay(made.folder)
        try:
            made("up", *FILE, "--yes", "-q")
            yield made
        finally:
            made("down", *FILE, "--yes", "-q")


def test_a_run_that_lost_a_node_ends_as_one_that_did_not(lab: Machine) -> None:
    unbroken = trained(lab, *FILE)
    broken, victim = trained_with_a_loss(lab, lambda node: lab("kill", *FILE, node, "--yes"), *FILE)
    compare(unbroken, broken, victim)
    assert f"{victim}  missing" in lab("status", *FILE, code=5).stdout, "nothing undoes a kill by itself"
    lab("up", *FILE, "--yes")
    assert f"{victim}  alive" in lab("status", *FILE).stdout


RUNNER = """
import json, sys
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), cell["id"], "exec"), globals())
"""


def test_the_notebook_runs_from_its_first_cell_to_its_last(tmp_path: Path) -> None:
    """In order, in one namespace, as a kernel does it; Ray starts for it alone."""
    need_torch()
    lay(tmp_path)
    with tempfile.TemporaryDirectory(prefix="ht", dir="/tmp", ignore_cleanup_errors=True) as home:
        own = {"HOME": home, "RAY_TMPDIR": home, "RAY_ADDRESS": "local", "RAY_USAGE_STATS_ENABLED": "0"}
        done = subprocess.run(
            [sys.executable, "-c", RUNNER, EXAMPLE.name + ".ipynb"],
            cwd=tmp_path, env={"PATH": os.environ["PATH"], **own},
            capture_output=True, text=True, timeout=150, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "trained 2 epochs: " in done.stdout
    again = done.stdout.partition("trained 4 epochs: ")[2]
    assert re.search(r"epochs 3 to 4 on .*, resumed from the checkpoint of epoch 2$", again, re.MULTILINE)


def test_the_notebook_carries_no_output() -> None:
    """What it once printed somewhere would be taken for what it prints."""
    cells = json.loads((EXAMPLE / "train.ipynb").read_text())["cells"]
    assert not any(cell.get("outputs") for cell in cells)
