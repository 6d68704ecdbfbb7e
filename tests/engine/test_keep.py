"""What a node keeps and what it makes ahead, on a real disk; and a hundred thousand files."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from heliostat.engine.sync.fetch import fetch
from heliostat.engine.sync.there import keep, runs
from heliostat.engine.sync.there.store import Store
from heliostat.engine.sync.work import run_dir, send_work
from heliostat.testing.shell_contract import tree
from tests.engine.ground import Disks, site_of


def many(folder: Path, count: int) -> Path:
    for number in range(count):
        if number % 500 == 0:
            (folder / f"{number // 500:04}").mkdir(parents=True)
        (folder / f"{number // 500:04}" / f"{number:06}.txt").write_text(f"{number}\n" * 8)
    return folder


def until(condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what}"
        threading.Event().wait(0.02)  # the node's process needs this processor, too


def test_only_old_runs_that_were_fetched_go(disks: Disks, tmp_path: Path) -> None:
    head, project = disks.node("head"), many(tmp_path / "project", 3)

    async def all_runs() -> None:
        for number in range(5):
            await send_work(site_of(disks), [head], project, f"r{number}")
            if number != 1:
                await fetch(site_of(disks), [head], f"r{number}", [], tmp_path / "out")

    asyncio.run(all_runs())
    store = Store(head.facts["home"])
    assert sorted(keep.old_runs(store, most=2)) == ["r0", "r2"]
    assert sorted(path.name for path in Path(run_dir(head, "x")).parent.iterdir()) == ["r1", "r3", "r4"]


def test_contents_go_when_nothing_needs_them(
    disks: Disks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, project = disks.node("head"), many(tmp_path / "project", 3)
    monkeypatch.setattr(keep, "TREES", 0)
    site = site_of(disks)
    (project / "large").write_bytes(os.urandom(2_000_000))
    asyncio.run(send_work(site, [head], project, "r0"))
    asyncio.run(fetch(site, [head], "r0", [], tmp_path / "out"))
    (project / "large").write_bytes(os.urandom(2_000_000))
    (project / "0000" / "000000.txt").write_text("new")
    asyncio.run(send_work(site, [head], project, "r1"))
    store = Store(head.facts["home"])
    assert keep.sweep(store, grace=-10.0) == {"trees": 0, "contents": 0}
    keep.old_runs(store, most=0)
    assert keep.sweep(Store(head.facts["home"]), grace=-10.0) == {"trees": 1, "contents": 2}
    asyncio.run(send_work(site, [head], project, "r2"))
    assert tree(Path(run_dir(head, "r2"), "work")) == tree(project)


@pytest.mark.slow
def test_a_copy_made_ahead_is_taken_and_a_begun_one_goes_on(disks: Disks, tmp_path: Path) -> None:
    head, project = disks.node("head"), many(tmp_path / "project", runs.AHEAD + 1)
    site, spares = site_of(disks), Path(head.facts["home"]) / "store" / "spares"
    asyncio.run(send_work(site, [head], project, "r0"))
    until(lambda: any(".ready" in path.name for path in spares.iterdir()), "the copy made ahead")
    first = next(path for path in spares.iterdir() if ".ready" in path.name).stat().st_ino
    (project / "0000" / "000000.txt").write_text("changed")
    asyncio.run(send_work(site, [head], project, "r1"))  # takes it, and the next is begun
    assert Path(run_dir(head, "r1"), "work").stat().st_ino == first
    asyncio.run(send_work(site, [head], project, "r2"))  # comes while that is being made, or after
    for run in ("r1", "r2"):
        assert tree(Path(run_dir(head, run), "work")) == tree(project)
    until(lambda: any(".ready" in path.name for path in spares.iterdir()), "the copy made ahead")


@pytest.mark.slow
def test_a_hundred_thousand_files_with_one_changed(disks: Disks, tmp_path: Path) -> None:
    """The goal on a quiet machine is a second; a busy one of strangers gets more before this fails."""
    head, project = disks.node("head"), many(tmp_path / "project", 100_000)
    site, spares = site_of(disks), Path(head.facts["home"]) / "store" / "spares"
    took = []
    for number in range(3):
        (project / "0000" / "000000.txt").write_text(f"turn {number}")
        began = time.perf_counter()
        sent = asyncio.run(send_work(site, [head], project, f"r{number}"))
        took.append(time.perf_counter() - began)
        assert sent.files == 100_000
        assert number == 0 or sent.moved_files == 1
        until(lambda: any(".ready" in path.name for path in spares.iterdir()), "the copy made ahead", 120)
    print(f"first {took[0]:.2f} s, then {min(took[1:]):.2f} s")  # noqa: T201 - the figure
    goal = 1.0 if os.environ.get("HELIO_STRICT_TIMES") else 3.0
    assert min(took[1:]) <= goal
