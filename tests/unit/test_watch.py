"""Daemons whose program was killed are taken up only whole, alive and ours; their end is noticed, too."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.rest import wait
from heliostat.ray.node_program.processes import LABEL, label_of
from heliostat.ray.node_program.watch import SPAWNED, Strangers, left_running, whole

OURS = b"a label"


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two of them, and what their program wrote down."""
    env = {**os.environ, LABEL: OURS.decode()}
    started = [subprocess.Popen(["sleep", "60"], env=env) for _ in range(2)]
    lines = [{"role": f"d{n}", "argv": ["x"], "env": {}, "pid": 1} for n in range(2)]
    (tmp_path / SPAWNED).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    tell(tmp_path, {f"d{n}": one.pid for n, one in enumerate(started)})
    wait(
        lambda: all(label_of(one.pid) == OURS for one in started), "their environments", 10
    )  # exec shows it late
    yield started
    for one in started:
        one.kill()
        one.wait()


def tell(folder: Path, pids: dict[str, int], phase: str = "up") -> None:
    (folder / "state.json").write_text(json.dumps({"phase": phase, "daemons": pids, "ports": {"gcs": 1}}))


def test_all_alive_are_taken_up_with_what_is_known_of_them(
    tmp_path: Path, daemons: list[subprocess.Popen[bytes]]
) -> None:
    found, state = left_running(str(tmp_path), OURS)
    assert [(one.role, one.pid) for one in found] == [(f"d{n}", one.pid) for n, one in enumerate(daemons)]
    assert state["ports"] == {"gcs": 1}


def test_a_part_is_not_enough(tmp_path: Path, daemons: list[subprocess.Popen[bytes]]) -> None:
    daemons[1].kill()
    daemons[1].wait()
    assert left_running(str(tmp_path), OURS)[0] == []
    tell(tmp_path, {"d0": daemons[0].pid})
    assert left_running(str(tmp_path), OURS)[0] == []


def test_what_is_not_ours_or_was_not_up_is_left_alone(
    tmp_path: Path, daemons: list[subprocess.Popen[bytes]]
) -> None:
    assert left_running(str(tmp_path), b"another label")[0] == []
    assert left_running(str(tmp_path / "nowhere"), OURS)[0] == []
    tell(tmp_path, {f"d{n}": one.pid for n, one in enumerate(daemons)}, phase="stopping")
    assert left_running(str(tmp_path), OURS)[0] == []


def test_what_had_just_started_is_taken_up_once_it_is_whole(
    tmp_path: Path, daemons: list[subprocess.Popen[bytes]]
) -> None:
    """Its program was killed before it could say `up`; Ray's start command went on to its end."""
    lines = [{"role": f"d{n}", "argv": ["x"], "env": {}, "pid": one.pid} for n, one in enumerate(daemons)]
    spawned = tmp_path / SPAWNED
    spawned.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    tell(tmp_path, {}, phase="starting")
    assert left_running(str(tmp_path), OURS)[0] == []
    Path(whole(str(spawned))).touch()
    assert {one.pid for one in left_running(str(tmp_path), OURS)[0]} == {one.pid for one in daemons}
    daemons[1].kill()
    daemons[1].wait()
    assert left_running(str(tmp_path), OURS)[0] == []


def test_their_end_is_noticed(tmp_path: Path, daemons: list[subprocess.Popen[bytes]]) -> None:
    strangers = Strangers()
    assert strangers.take(left_running(str(tmp_path), OURS)[0])
    assert not select.select(list(strangers.handles), [], [], 0)[0]
    daemons[0].kill()
    (handle,) = select.select(list(strangers.handles), [], [], 60)[0]
    assert strangers.ended(handle) == daemons[0].pid
    assert list(strangers.handles.values()) == [daemons[1].pid]
    strangers.drop()
