"""`helio exec` as a process on a fake place whose nodes are shells of this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.inside import Inside
from tests.cli.place import Helio, read, write
from tests.cli.test_verbs import OWNER, code_of, on_a_terminal, read_until


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Helio:
    """A cluster of three nodes that all tests here use."""
    helio = Helio(tmp_path_factory.mktemp("exec"))
    (helio.folder / "helio.yaml").write_text("cluster: demo\nworkers: 2\nenv: { FROM_FILE: yes }\n")
    done = helio("up", "--yes", env={"HELIO_STATE": str(helio.folder / "state")})
    assert done.returncode == 0, done.stderr
    return helio


@pytest.fixture
def here(up: Helio, inside: Inside, monkeypatch: pytest.MonkeyPatch) -> Inside:
    """`helio` there, in this process: quick, where neither streams nor signals matter."""
    monkeypatch.chdir(up.folder)
    for name, value in up.env().items():
        monkeypatch.setenv(name, value)
    return inside


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_code_of_one_node_is_the_commands(here: Inside, code: int) -> None:
    assert here("exec", f"exit {code}").code == code
    assert here("exec", "worker-1", "--", "sh", "-c", f"exit {code}").code == code


def test_a_command_that_a_signal_ended_reads_as_in_a_shell(here: Inside) -> None:
    assert here("exec", "kill -9 $$").code == 137


def test_one_word_is_a_shells_line_and_several_are_passed_on_as_they_are(here: Inside) -> None:
    assert here("exec", "echo a b | tr a-z A-Z").out == "A B\n"
    assert here("exec", "--", "printf", "%s,", "a b", "$HOME", "--", "*").out == "a b,$HOME,--,*,"
    assert here("exec", "printf", "%s", "--json").out == "--json", "its options are its own"


def test_the_bytes_of_one_node_are_untouched(up: Helio) -> None:
    argv = [sys.executable, "-m", "heliostat", "exec", r"printf 'a\033[1m\377'; printf err >&2"]
    done = subprocess.run(argv, cwd=up.folder, env=up.env(), capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"a\x1b[1m\xff", b"err")


def test_several_nodes_have_their_names_before_each_line(here: Inside) -> None:
    done = here("exec", "--all", "basename $PWD; printf end")
    assert done.code == 0
    assert sorted(done.out.splitlines()) == [
        f"{name}: {line}" for name in ("head", "worker-1", "worker-2") for line in ("end", name)
    ]
    assert done.err == ""
    two = here("exec", "worker-2", "head", "--", "true")
    assert (two.code, two.out, two.err) == (0, "", "")


def test_each_nodes_own_code_is_told_and_the_first_in_their_order_counts(here: Inside) -> None:
    line = "case $PWD in *-1) sleep 0.3; exit 4;; *-2) exit 5;; esac"
    done = here("exec", "--all", line)
    assert done.code == 4
    assert done.err == "warning: exit code 4 on worker-1, 5 on worker-2; 0 on 1 other\n"
    told = json.loads(here("exec", "--all", "--json", line).out.splitlines()[-1])
    assert (told["code"], [node["code"] for node in told["nodes"]]) == (4, [0, 4, 5])


def test_a_node_that_cannot_be_reached_is_an_error_and_the_others_go_on(here: Inside, up: Helio) -> None:
    place = read(up.place)
    place.break_node(OWNER, "worker-1")
    write(up.place, place)
    try:
        done = here("exec", "--all", "echo here")
        assert done.code == 5
        assert sorted(done.out.splitlines()) == ["head: here", "worker-2: here"]
        assert "failed on worker-1 (cannot reach worker-1: no route to host)" in done.err
        alone = here("exec", "worker-1", "--", "true")
        assert alone.code == 5
        assert "cannot reach worker-1" in alone.err
    finally:
        thing = place.thing(OWNER, "node/worker-1")
        assert thing is not None
        thing.broken_at = None
        write(up.place, place)


def test_what_is_piped_in_reaches_one_node(up: Helio) -> None:
    assert up("exec", "wc -c", stdin="12345").stdout.strip() == "5"
    assert up("exec", "--no-stdin", "wc -c", stdin="12345").stdout.strip() == "0"
    assert up("exec", "--all", "wc -c", stdin="12345").stdout.count(": 0") == 3


@pytest.mark.slow
def test_an_input_that_does_not_end_is_named(up: Helio) -> None:
    argv = [sys.executable, "-m", "heliostat", "exec", "wc -c"]
    with subprocess.Popen(
        argv, cwd=up.folder, env=up.env(), stdin=subprocess.PIPE, stdout=-1, stderr=-1
    ) as child:
        assert child.stderr is not None
        assert b"--no-stdin leaves it alone" in child.stderr.readline()
        out, _ = child.communicate(b"123")
    assert (child.returncode, out.strip()) == (0, b"3")


def test_the_command_has_the_nodes_environment_and_the_files(here: Inside) -> None:
    done = here("exec", 'echo "$PATH|$FROM_FILE|$RAY_ADDRESS|$RAY_AUTH_MODE|$RAY_AUTH_TOKEN_PATH|$MINE"')
    path, *rest = done.out.strip().split("|")
    assert path.split(":")[0] == os.path.dirname(sys.executable), "the node's Python is first"
    assert rest[:3] == ["yes", "127.0.0.1:6379", "token"]
    assert rest[3].endswith("/head/token")
    assert "RAY_ADDRESS" not in here("exec", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["exec"], "there is no command"),
        (["exec", "--all"], "there is no command"),
        (["exec", "worker-1", "--"], "there is no command"),
        (["exec", "--all", "head", "--", "ls"], "contradict"),
        (["exec", "worker-9", "--", "ls"], "did you mean worker-"),
        (["exec", "worker-1", "hostname", "-f"], "helio exec worker-1 -- hostname -f"),
        (["exec", "--set", "cluster=none", "--", "ls"], "start it with `helio up`"),
    ],
)
def test_what_cannot_be_meant_is_told(here: Inside, words: list[str], told: str) -> None:
    done = here(*words)
    assert (done.code, done.out) == (2, "")
    assert told in done.err


def test_rays_habit_of_naming_the_file_first(here: Inside) -> None:
    assert here("exec", "helio.yaml", "echo $HELIO_CLUSTER").out == "demo\n"
    assert here("exec", "helio.yaml", "--", "echo", "b").out == "b\n"


def test_a_reader_that_goes_away_ends_the_command(up: Helio) -> None:
    argv = [sys.executable, "-m", "heliostat", "exec", "echo $$; exec yes"]
    with subprocess.Popen(argv, cwd=up.folder, env=up.env(), stdout=-1, stderr=-1) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        pid = child.stdout.readline().strip().decode()
        child.stdout.close()
        assert child.wait(20) == 141
        assert child.stderr.read() == b""
    assert not Path(f"/proc/{pid}").exists(), "it ended it before it ended"


def test_a_reader_that_leaves_when_all_is_done_changes_nothing(up: Helio) -> None:
    argv = [sys.executable, "-m", "heliostat", "exec", "--json", "sleep 0.2; exit 3"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody:
        done = subprocess.run(argv, cwd=up.folder, env=up.env(), stdout=nobody, stderr=-1, check=False)
    assert (done.returncode, done.stderr) == (3, b"")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["echo in $0; exit 6"], 6, ""),
        (["nosuchprog"], 127, "not found"),
        (["nosuchprog", "-x"], 127, "nosuchprog cannot be started: No such file"),
        (["/", "-x"], 126, "/ cannot be started: Permission denied"),
    ],
)
def test_ssh_says_how_a_command_ended(up: Helio, words: list[str], code: int, told: str) -> None:
    done = up("ssh", "head", *words)
    assert (done.returncode, done.stdout) == (code, "in sh\n" if code == 6 else "")
    assert told in done.stderr
    assert "bug" not in done.stderr


def test_ctrl_c_ends_the_commands_everywhere(up: Helio) -> None:
    with on_a_terminal(up, "exec", "--all", "echo pid $$ begun; sleep 1000") as (child, terminal):
        seen = ""
        while seen.count("begun") < 3:
            seen += read_until(terminal, "begun")
        os.write(terminal, b"\x03")
        seen += read_until(terminal, "")
        assert code_of(child) == 130, seen
    pids = re.findall(r"pid (\d+)", seen)
    assert len(pids) == 3
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()], "it ended them before it ended"
