"""The setup of a node: once for each machine, with a log, and with a failure that says enough."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from heliostat.grounds.local.start import lay_program, setup_of
from heliostat.grounds.local.want import inputs

COMMANDS = ["echo once >> count", "echo said"]


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "home").mkdir()
    return lay_program(str(tmp_path / "home"))


def order(tmp_path: Path, node: str, commands: list[str]) -> Path:
    folder = tmp_path / "home" / "nodes" / node
    folder.mkdir(parents=True, exist_ok=True)
    setup = {"commands": commands, "cwd": str(tmp_path), "id": "abc"}
    path = folder / "config.json"
    path.write_text(json.dumps({"home": str(tmp_path / "home"), "dir": str(folder), "setup": setup}))
    return path


def start(program: str, config: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-I", "-S", program, "setup", str(config)])


def failure(tmp_path: Path, node: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "home" / "nodes" / node / "setup.json").read_text())
    return found


def test_nodes_that_start_at_once_run_it_once_and_keep_what_it_said(tmp_path: Path, program: str) -> None:
    started = [start(program, order(tmp_path, node, COMMANDS)) for node in ("head", "w-1", "w-2")]
    assert [one.wait(20) for one in started] == [0, 0, 0]
    assert (tmp_path / "count").read_text() == "once\n"
    log = tmp_path / "home" / "setup" / "abc.log"
    assert "$ echo said\nsaid\n" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


def test_a_failure_names_the_command_its_code_and_its_last_words(tmp_path: Path, program: str) -> None:
    commands = ["echo fine", "echo one; echo two >&2; exit 7", "touch never"]
    assert start(program, order(tmp_path, "head", commands)).wait(20) == 1
    found = failure(tmp_path, "head")
    assert (found["command"], found["code"], found["said"]) == (commands[1], 7, "one\ntwo")
    assert not (tmp_path / "never").exists()


def test_a_command_that_was_killed_has_the_code_that_a_shell_gives_it(tmp_path: Path, program: str) -> None:
    assert start(program, order(tmp_path, "head", ["kill -9 $$"])).wait(20) == 1
    assert failure(tmp_path, "head")["code"] == 137


def test_who_waited_for_a_failure_shares_it_and_the_next_up_tries_again(tmp_path: Path, program: str) -> None:
    gate = tmp_path / "gate"
    commands = [f"echo x >> tries; [ -e {gate} ] || exit 3"]
    hold = ["flock", str(tmp_path / "home" / "setup" / "abc.lock"), "cat"]
    (tmp_path / "home" / "setup").mkdir()
    with subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin
        assert holder.stdout
        holder.stdin.write(b"held\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == b"held\n"
        both = [start(program, order(tmp_path, node, commands)) for node in ("head", "w-1")]
        for one in both:  # both have noted when they began, and wait for the lock
            wait_for_lock(one.pid)
        holder.stdin.close()
    assert [one.wait(20) for one in both] == [1, 1]
    assert (tmp_path / "tries").read_text() == "x\n"
    assert failure(tmp_path, "head") == failure(tmp_path, "w-1")
    gate.touch()
    assert start(program, order(tmp_path, "head", commands)).wait(20) == 0


def wait_for_lock(pid: int) -> None:
    """Until that process waits for a file lock, as the kernel's list shows it."""
    for _ in range(2000):
        if any("->" in line and f" {pid} " in line for line in Path("/proc/locks").read_text().splitlines()):
            return
        subprocess.run(["true"], check=True)  # give the other process the machine for a moment
    raise AssertionError(f"{pid} does not wait for a lock")


def test_it_runs_again_when_a_file_that_it_reads_changes(tmp_path: Path) -> None:
    def chosen(python: str = "/python") -> str:
        commands = ["pip install -r 'needs.txt' >> said.txt"]
        named = inputs(commands, str(tmp_path))
        return setup_of({"setup": commands, "folder": str(tmp_path), "inputs": named}, python).id

    (tmp_path / "needs.txt").write_text("one")
    first = chosen()
    (tmp_path / "said.txt").write_text("what it writes is no reason")
    assert chosen() == first
    (tmp_path / "needs.txt").write_text("two")
    assert len({first, chosen(), chosen("/other")}) == 3
