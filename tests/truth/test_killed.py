"""`kill -9` of the real program at random moments: what follows leaves nothing, and nobody else's is touched.

HELIO_KILLS says how many (10 unless said), HELIO_SEED which ones.
"""

from __future__ import annotations

import os
import random
import secrets
import subprocess
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from bench.ours import Ours
from bench.rest import wait
from bench.row import program
from heliostat.core.owner import Owner
from heliostat.grounds.local.places import home_of, principal, temp_of
from tests.truth.world import identities, processes_with

pytestmark = [pytest.mark.ray, pytest.mark.slow]

KILLS = int(os.environ.get("HELIO_KILLS", "10"))
SEED = int(os.environ.get("HELIO_SEED", str(secrets.randbelow(10**6))))
BESIDE = "bystander"


class Torn:
    """A cluster of its own, beside one that nobody works on; both belong to the same person."""

    def __init__(self) -> None:
        self.dice = random.Random(SEED)  # noqa: S311  # to be repeated, not to be secret
        self.mine = Ours(0)
        (self.mine.work / "beside.yaml").write_text(f"cluster: {BESIDE}\nhead: {{ cpus: 1 }}\nworkers: 0\n")
        self.turn = 0
        self.took = {"up": 3.0, "down": 1.5, "restart": 3.0}  # seconds; the horizon for a kill
        self.killed: Counter[str] = Counter()
        self.places: tuple[str, ...] = ()

    def write(self) -> None:
        """A file that differs from the last one: in its environment, or in its workers."""
        self.turn += 1
        workers = self.dice.choice([0, 0, 1])
        (self.mine.work / "helio.yaml").write_text(
            f"cluster: {self.mine.name}\nhead: {{ cpus: 1 }}\n"
            f"workers: {{ cpus: 1, count: {workers} }}\nenv: {{ TURN: {self.turn} }}\n"
        )

    def beside(self) -> set[tuple[int, int]]:
        return identities(processes_with(f'"cluster":"{BESIDE}"'))

    def done(self, *words: str) -> None:
        """A verb that nobody kills."""
        began = time.monotonic()
        self.mine.run(*words, "--yes")
        self.took[words[0]] = time.monotonic() - began

    def kill(self, verb: str) -> None:
        """Start it, and kill it at a random moment of its usual time, the first second more often."""
        horizon = self.took[verb] if self.dice.random() < 0.5 else min(1.0, self.took[verb])
        moment = self.dice.uniform(0.0, horizon)
        with subprocess.Popen(
            [program("helio"), verb, "--yes"],
            env=self.mine.env,
            cwd=self.mine.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as helio:
            try:
                helio.wait(moment)
            except subprocess.TimeoutExpired:
                helio.kill()
                self.killed[verb] += 1

    def left(self) -> list[str]:
        """Processes and directories of the cluster, by our own eyes."""
        mine = processes_with(f'"cluster":"{self.mine.name}"').values()
        return [*mine, *(path for path in self.places if os.path.lexists(path))]

    def standing(self) -> str:
        (ours,) = [one for one in self.mine.json("ls")["clusters"] if one["cluster"] == self.mine.name]
        return str(ours["standing"])

    def one_more(self) -> None:
        """Something is killed, and something else puts it right."""
        self.write()
        standing = bool(self.left())
        verb = self.dice.choice(["up", "up", "down", "restart"] if standing else ["up"])
        self.kill(verb)
        then = self.dice.choice(["clean", "clean", "down", "up", "up"])
        self.done(then)
        if then == "up":
            assert self.mine.json("status")["status"]["trouble"] == []
        if then == "clean" and self.left():  # what was sound before stays, and is sound
            self.done("clean")
            wait(
                lambda: self.standing() == "up", "what stays to be up, not an orphan", 30
            )  # Ray may be restarting
            self.done("down")
        if then != "up":
            assert self.left() == [], f"after {verb} killed, {then}"


@pytest.fixture
def torn(monkeypatch: pytest.MonkeyPatch) -> Iterator[Torn]:
    pytest.importorskip("ray", reason="Ray is not installed here (pip install 'heliostat[local]')")
    made = Torn()
    monkeypatch.setenv("HELIO_DATA", made.mine.env["HELIO_DATA"])
    owner = Owner(principal(), made.mine.name)
    made.places = (home_of(owner), temp_of(owner))
    try:
        made.mine.run("up", "-f", "beside.yaml", "--yes")
        yield made
    finally:
        made.mine.run("down", "-f", "beside.yaml", "--yes")
        made.mine.close()


def test_killed_at_random_moments(torn: Torn, capsys: pytest.CaptureFixture[str]) -> None:
    beside = torn.beside()
    assert beside
    began = time.monotonic()
    while torn.killed.total() < KILLS:
        try:
            torn.one_more()
        except BaseException as error:
            error.add_note(f"HELIO_SEED={SEED}, after {dict(torn.killed)}")
            raise
        assert torn.beside() >= beside, "a process of the bystander is gone"
    with capsys.disabled():
        print(  # noqa: T201  # how much was tried is what this run is for
            f"\n{torn.killed.total()} kills ({dict(torn.killed)}) in {time.monotonic() - began:.0f} s, "
            f"seed {SEED}: nothing left behind, the bystander untouched"
        )
    torn.mine.run("down", "--yes")
    assert torn.left() == []
    assert torn.mine.json("status", "-f", "beside.yaml")["status"]["trouble"] == []
