"""The training example, watched from outside: what it printed, and where it can be hit in mid-epoch."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.machine import Machine
from tests.rig.rig import wait_until

EXAMPLE = Path(__file__).parents[1] / "examples" / "train"
EPOCHS = 4
PARTS = ("torch", "pandas", "pyarrow")


def need_torch() -> None:
    """PyTorch and what Ray Train needs are no part of the lock; `.ci/run` adds them where they can be had."""
    for part in PARTS:
        pytest.importorskip(part, reason=f"{part} is not installed here (requirements/train.txt)")


def lay(folder: Path) -> None:
    """The example's files in the work folder."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


@dataclass(frozen=True)
class Story:
    """What a run of the example printed, read as a person would."""

    text: str

    def found(self, pattern: str) -> str:
        match = re.search(pattern, self.text, re.MULTILINE)
        assert match, f"{pattern!r} is not in:\n{self.text}"
        return match[1]

    @property
    def loss(self) -> float:
        return float(self.found(rf"^trained {EPOCHS} epochs: loss ([\d.]+), accuracy"))

    @property
    def began_on(self) -> list[str]:
        return self.found(r"started from nothing on (.+)$").split(", ")

    @property
    def resumed_from(self) -> int:
        return int(self.found(r"RESUMED from the checkpoint of epoch (\d+), now on "))

    @property
    def resumed_on(self) -> list[str]:
        return self.found(r"RESUMED from the checkpoint of epoch \d+, now on (.+)$").split(", ")

    @property
    def saved_before_the_loss(self) -> int:
        before = self.text.partition("RESUMED")[0]
        return max(int(epoch) for epoch in re.findall(rf"epoch (\d+)/{EPOCHS} done and saved", before))


def trained(machine: Machine, *words: str) -> Story:
    """A whole run that nothing disturbs."""
    return Story(machine("run", *words, "train.py", "--epochs", str(EPOCHS)).stdout)


def trained_with_a_loss(machine: Machine, lose: Callable[[str], object], *words: str) -> tuple[Story, str]:
    """A run of which one node, never the head, is lost in the middle of its third epoch."""
    pace = ["--epochs", str(EPOCHS), "--seconds-per-epoch", "3"]
    with started(machine, "run", *words, "train.py", *pace) as (process, printed):

        def third() -> bool:
            assert process.poll() is None, printed()
            return f"epoch 3/{EPOCHS} begins" in printed()

        wait_until(third, "the third epoch begins", 100)
        victim = next(node for node in Story(printed()).began_on if node != "head")
        lose(victim)
        code = process.wait(100)
    assert code == 0, printed()
    return Story(printed()), victim


@contextmanager
def started(machine: Machine, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], str]]]:
    """`helio` under way, and all that it has printed so far."""
    path = machine.home / "printed"
    with path.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "heliostat", *words],
            cwd=machine.folder, env=machine.env, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
        )  # fmt: skip
    try:
        yield process, lambda: path.read_text(errors="replace")
    finally:
        process.terminate()
        process.wait(30)


def compare(unbroken: Story, broken: Story, victim: str) -> None:
    """The lost epoch was done again, elsewhere, and the end is the same."""
    print(
        f"unbroken: loss {unbroken.loss}; {victim} lost after epoch {broken.saved_before_the_loss}: resumed "
        f"from epoch {broken.resumed_from} on {', '.join(broken.resumed_on)}, loss {broken.loss}"
    )
    assert broken.resumed_from == broken.saved_before_the_loss
    assert 2 <= broken.resumed_from < EPOCHS
    assert victim in broken.began_on
    assert victim not in broken.resumed_on
    assert broken.loss == pytest.approx(unbroken.loss, abs=1e-5)
