"""The verbs as separate processes on a fake place: exit codes, what goes to which stream, what it says."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from heliostat.core.owner import Owner
from tests.cli.place import Helio, begin, read, write

pytestmark = pytest.mark.slow  # each is some processes: too much for the seconds that `make unit` may take
OWNER = Owner("somebody", "demo")


@pytest.fixture
def demo(helio: Helio) -> Helio:
    (helio.folder / "helio.yaml").write_text("cluster: demo\nworkers: 2\n")
    return helio


def test_a_cluster_from_up_to_down(demo: Helio) -> None:
    planned = demo("plan")
    assert planned.returncode == 0, planned.stderr
    assert "node/worker-2" in planned.stdout
    assert "helio.yaml:2" in planned.stdout, "it says where a value came from"
    up = demo("up", "--yes")
    assert up.returncode == 0, up.stderr
    assert "worker-2  alive" in up.stdout
    assert "head alive" in up.stderr, "progress goes to stderr"
    again = demo("up")
    assert again.returncode == 0
    assert "nothing to do" in again.stderr
    status = demo("status")
    assert (status.returncode, status.stderr) == (0, "")
    assert "in use: 0 of 6 CPU" in status.stdout
    assert "demo" in demo("ls").stdout
    down = demo("down", "--yes")
    assert down.returncode == 0, down.stderr
    assert "is gone" in down.stdout
    assert "proof:" in down.stdout
    assert read(demo.place).names() == []
    assert demo("status").returncode == 5


def test_a_file_may_be_named_in_three_ways(demo: Helio) -> None:
    (demo.folder / "other.yaml").write_text("cluster: other\n")
    for words in (
        ["-f", "other.yaml", "status"],
        ["status", "--file", "other.yaml"],
        ["status", "other.yaml"],
    ):
        assert "no cluster other" in demo(*words).stdout
    assert "no cluster third" in demo("status", "--set", "cluster=third").stdout
    (demo.folder / "data.yaml").write_text("rows: 3\n")
    told = demo("run", "data.yaml", "more").stderr
    assert "data-yaml-" in told
    assert "is not a key" not in told, "data is no cluster's file"
    assert "no cluster third" in demo("--set", "cluster=third", "status").stdout


def test_json_is_one_object_a_line_and_the_last_is_the_result(demo: Helio) -> None:
    done = demo("up", "--json", "--yes")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [lines[0]["event"], lines[-1]["event"]] == ["began", "result"]
    assert lines[-1]["code"] == 0
    assert [node["state"] for node in lines[-1]["status"]["nodes"]] == ["alive"] * 3
    (only,) = demo("--json", "status").stdout.splitlines()
    assert json.loads(only)["status"]["cluster"] == "demo"


def test_errors_are_json_too(demo: Helio) -> None:
    done = demo("status", "--json", "-f", "absent.yaml")
    assert done.returncode == 2
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["event"], told["code"], told["kind"]) == ("error", 2, "UsageError")
    assert "absent.yaml" in told["what"]


def test_quiet_leaves_the_result_only(demo: Helio) -> None:
    done = demo("up", "-q", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert "head      alive" in done.stdout


def test_too_little_capacity_is_an_error_and_leaves_nothing(demo: Helio) -> None:
    begin(demo.place, capacity=2)
    done = demo("up", "--yes")
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert read(demo.place).names() == []


def test_what_cannot_be_removed_is_exit_code_3_with_the_command_that_removes_it(demo: Helio) -> None:
    assert demo("up", "--yes").returncode == 0
    place = read(demo.place)
    place.faults.stuck.add("network/main")
    write(demo.place, place)
    done = demo("down", "--yes", env={"HELIO_TEST_PATIENCE": "1"})
    assert done.returncode in (3, 6)
    assert "network/main" in done.stderr


def test_a_question_without_a_terminal_fails_at_once(demo: Helio) -> None:
    assert demo("up", "--yes").returncode == 0
    done = demo("kill", "head")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert demo("status").returncode == 0, "nothing was killed"


def test_a_node_name_that_is_nearly_right(demo: Helio) -> None:
    assert demo("up", "--yes").returncode == 0
    done = demo("kill", "worker1", "--yes")
    assert done.returncode == 2
    assert "did you mean worker-1?" in done.stderr
    killed = demo("kill", "worker-1", "--yes")
    assert killed.returncode == 0
    assert demo("status").returncode == 5


def test_a_reader_that_goes_away_is_no_error(demo: Helio) -> None:
    line = f"{sys.executable} -m heliostat status; echo $? >&2"
    pipe = ["bash", "-c", f"({line}) | true"]
    done = subprocess.run(pipe, cwd=demo.folder, env=demo.env(), capture_output=True, text=True, check=False)
    assert done.stderr == "5\n", "its own exit code, and no word about a pipe"


def test_closed_streams_are_no_error(demo: Helio) -> None:
    line = f"{sys.executable} -m heliostat up --yes >&- 2>&-"
    done = subprocess.run(["bash", "-c", line], cwd=demo.folder, env=demo.env(), check=False)
    assert done.returncode == 0
    assert demo("status").returncode == 0


def test_a_bug_of_ours_is_one_line_and_a_saved_traceback(demo: Helio) -> None:
    demo.place.write_bytes(b"broken")
    done = demo("status")
    assert done.returncode == 1
    assert "this is a bug of heliostat" in done.stderr
    assert "Traceback" not in done.stderr
    path = next(word for word in done.stderr.split() if word.endswith(".txt"))
    assert "Traceback" in Path(path).read_text()
    assert Path(path).stat().st_mode & 0o077 == 0


@contextmanager
def on_a_terminal(demo: Helio, *words: str, **env: str) -> Iterator[tuple[int, int]]:
    """The process and the other end of its terminal."""
    child, terminal = pty.fork()
    if child == 0:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # whoever started us may not hear them
            signal.signal(number, signal.SIG_DFL)
        os.chdir(demo.folder)
        argv = [sys.executable, "-m", "heliostat", *words]
        os.execvpe(sys.executable, argv, demo.env(TERM="xterm", **env))  # noqa: S606 - no shell is meant
    try:
        yield child, terminal
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.close(terminal)


def read_until(terminal: int, text: str, seconds: float = 20.0) -> str:
    """What the terminal shows, until that text is there or it ends."""
    seen, deadline = "", time.monotonic() + seconds
    while text not in seen or not text:
        ready = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]
        assert ready, f"waited for {text!r}, saw {seen[-300:]!r}"
        try:
            data = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        seen += data.decode(errors="replace")
    return seen


STARTING = "head\x1b[0m starting"


def code_of(child: int, seconds: float = 60.0) -> int:
    """Its exit code; one that does not end is an error here, and no endless wait."""
    with os.fdopen(os.pidfd_open(child)) as end:
        assert select.select([end], [], [], seconds)[0], f"{child} does not end"
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_terminal_sees_moving_lines_and_then_how_it_stands(demo: Helio) -> None:
    with on_a_terminal(demo, "up") as (child, terminal):
        seen = read_until(terminal, "")
        assert code_of(child) == 0
    assert "\x1b[" in seen
    assert "worker-2  alive" in seen


def test_a_closed_terminal_during_up_cleans_up_what_it_made(demo: Helio) -> None:
    begin(demo.place, start=30.0)
    state = demo.folder.parent / "state"
    with on_a_terminal(demo, "up", HELIO_STATE=str(state)) as (child, terminal):
        read_until(terminal, STARTING)
        os.dup2(os.open(os.devnull, os.O_RDONLY), terminal)  # closes it; the number stays ours
        assert code_of(child) == 130
    assert read(demo.place).names() == []
    assert not (state / "bugs").exists()


def test_ctrl_c_in_down_says_what_removes_the_rest(demo: Helio) -> None:
    assert demo("up", "--yes").returncode == 0
    place = read(demo.place)
    place.faults.teardown = 60.0
    write(demo.place, place)
    with on_a_terminal(demo, "down", "--yes", "--plain") as (child, terminal):
        read_until(terminal, "head removing")
        os.write(terminal, b"\x03")
        seen = read_until(terminal, "")
        assert code_of(child) == 130, seen
    assert "interrupted: what is left is removed by running `helio down` again" in seen


def test_a_file_that_is_not_there_is_named_as_such(demo: Helio) -> None:
    done = demo("up", "nosuch.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no file nosuch.yaml" in done.stderr


def test_no_color_and_plain_are_heard(demo: Helio) -> None:
    with on_a_terminal(demo, "up", "--plain") as (child, terminal):
        seen = read_until(terminal, "")
        assert code_of(child) == 0
    assert "\x1b" not in seen


def test_ctrl_c_removes_what_this_up_made(demo: Helio) -> None:
    begin(demo.place, never_joins={"head"})
    with on_a_terminal(demo, "up") as (child, terminal):
        read_until(terminal, STARTING)
        os.write(terminal, b"\x03")
        seen = read_until(terminal, "")
        assert code_of(child) == 130, seen
    assert "Traceback" not in seen
    assert read(demo.place).names() == []


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_being_ended_tidies_up_too(demo: Helio, name: str) -> None:
    begin(demo.place, never_joins={"head"})
    with on_a_terminal(demo, "up") as (child, terminal):
        read_until(terminal, STARTING)
        os.kill(child, getattr(signal, name))
        read_until(terminal, "")
        assert code_of(child) == 130
    assert read(demo.place).names() == []


def test_a_question_on_a_terminal_is_asked(demo: Helio) -> None:
    assert demo("up", "--yes").returncode == 0
    for answer, code in ((b"n\n", 130), (b"\x03", 130), (b"maybe\ny\n", 0)):
        with on_a_terminal(demo, "kill", "head") as (child, terminal):
            read_until(terminal, "[y/N]")
            os.write(terminal, answer)
            seen = read_until(terminal, "")
            assert code_of(child) == code, seen
        assert "Traceback" not in seen


def test_what_is_not_available_yet_hinders_only_what_makes_something(demo: Helio) -> None:
    assert demo("up", "--yes").returncode == 0
    (demo.folder / "helio.yaml").write_text("cluster: demo\nworkers: {count: 2..4, spot: true}\n")
    assert demo("up", "--yes").returncode == 2
    assert demo("status").returncode == 0
    assert demo("jobs").returncode == 0
    down = demo("down", "--yes")
    assert down.returncode == 0, down.stderr
    assert "5 things removed" in down.stdout
