"""A folder sent twice, with one file changed in between: what does the second time cost?"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from bench.bare import bare
from bench.ours import Ours, ours
from bench.row import Cost, Row, clock, command, program
from heliostat.engine.sync.there.runs import AHEAD

COUNTS = (1, 1_000, 100_000)
LARGE, PARTS = 1 << 30, 8  # bytes of the large folder, in so many files
PER_FOLDER = 500


def rows(runs: int) -> Iterator[Row]:
    with ours(1) as mine, bare(0) as plain:
        for count in COUNTS:
            tree = mine.home / f"tree-{count}"
            make(tree, count)
            walked = best(clock(partial(walk, tree)) for _ in range(runs))
            yield pushed(mine, tree, count, walked, runs)
            yield run_with(mine, tree, count, walked, runs, plain.env)
        yield gigabyte(mine)


def pushed(mine: Ours, tree: Path, count: int, walked: float, runs: int) -> Row:
    """`helio push` beside the quickest plain copy that this machine has."""
    words = ("push", str(tree), str(mine.home / f"pushed-{count}"))
    first = mine.timed(*words)
    second = best(mine.timed(*_after(tree, words, turn)) for turn in range(runs))
    name, peer = plain_copy(tree, mine.home / f"copied-{count}")
    before = peer().wall
    theirs = best(_then(tree, turn, peer) for turn in range(runs))
    return Row(
        name=f"push, {count:,} files, one changed",
        ours=second,
        theirs=theirs,
        peer=name,
        limit=walked,
        limit_name="os.walk that looks at every file",
        note=f"the first time {first.wall:.1f} s, theirs {before:.1f} s",
    )


def plain_copy(tree: Path, into: Path) -> tuple[str, Callable[[], Cost]]:
    """rsync where it is installed, else tar, which sends everything each time."""
    into.mkdir()
    if shutil.which("rsync"):
        return "rsync -a", command(["rsync", "-a", f"{tree}/", str(into)], deadline=600)
    pipe = f"tar -C {tree} -cf - . | tar -C {into} -xf -"
    return "tar | tar (no rsync here)", command(["sh", "-c", pipe], deadline=600)


def run_with(
    mine: Ours, tree: Path, count: int, walked: float, runs: int, env: Mapping[str, str] | None
) -> Row:
    """A job with that folder: each run has a private copy, made ahead while nobody waits."""
    words = ("run", "--detach", "--work", str(tree), "--", "true")
    first = mine.timed(*words)
    at_once = mine.timed(*_after(tree, words, runs))
    taken = []
    for turn in range(runs):
        wait_for_copy(mine, count)
        taken.append(mine.timed(*_after(tree, words, turn)))
    submit = [program("ray"), "job", "submit", "--no-wait", "--working-dir", str(tree), "--", "true"]
    _after(tree, (), runs)
    theirs = command(submit, env=env, deadline=600)()
    return Row(
        name=f"run --detach, {count:,} files, one changed",
        ours=best(iter(taken)),
        theirs=theirs.wall,
        peer="ray job submit --no-wait --working-dir",
        limit=walked,
        limit_name="os.walk that looks at every file",
        note=f"the first time {first.wall:.1f} s, again at once {at_once.wall:.1f} s",
    )


def gigabyte(mine: Ours) -> Row:
    """It arrives whole: the job itself says what it found."""
    tree, right = mine.home / "large", hashlib.sha256()
    tree.mkdir()
    for number in range(PARTS):
        data = os.urandom(LARGE // PARTS)
        right.update(data)
        (tree / f"{number}").write_bytes(data)
    copied = command(["cp", "-r", str(tree), str(mine.home / "large-copied")], deadline=600)()
    began = time.perf_counter()
    said = mine.run("run", "--work", str(tree), "--", "cat * | sha256sum")
    taken = time.perf_counter() - began
    if said.split()[0] != right.hexdigest():
        raise AssertionError(f"not what was sent: {said}")
    return Row(
        name="run with a work folder of 1 GiB, its digest said by the job",
        ours=taken,
        peer="ray job submit refuses more than 100 MiB",
        limit=copied.wall,
        limit_name="cp -r, without looking at a byte",
    )


def wait_for_copy(mine: Ours, count: int) -> None:
    """The time in which a person changes something."""
    if count < AHEAD:
        return
    spares = Path(mine.nodes()["head"]["facts"]["home"], "store", "spares")
    deadline = time.monotonic() + 120
    while not any(".ready" in path.name for path in spares.iterdir()):
        if time.monotonic() > deadline:
            raise AssertionError("waited for the copy that is made ahead")
        threading.Event().wait(0.05)


def _then(tree: Path, turn: int, deed: Callable[[], Cost]) -> Cost:
    _after(tree, (), turn)
    return deed()


def best(costs: Iterator[Cost]) -> float:
    return min(cost.wall for cost in costs)


def make(tree: Path, count: int) -> None:
    """Small files, some hundred to a folder, as in a repository."""
    for number in range(count):
        folder = tree / f"{number // PER_FOLDER:04}"
        if number % PER_FOLDER == 0:
            folder.mkdir(parents=True)
        (folder / f"{number:06}.txt").write_text(f"{number}\n" * 8)


def _after(tree: Path, words: tuple[str, ...], turn: int) -> tuple[str, ...]:
    """Change one file, before these words are typed."""
    (tree / "0000" / "000000.txt").write_text(f"turn {turn}\n")
    return words


def walk(tree: Path) -> int:
    return sum(os.stat(os.path.join(at, name)).st_size for at, _, names in os.walk(tree) for name in names)
