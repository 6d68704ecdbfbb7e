"""run, submit, jobs, logs, stop on a fake place: codes, streams, words; Ctrl-C on a real terminal."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from heliostat.core.job import COMMAND
from heliostat.core.owner import Owner
from heliostat.testing.fake import Script
from tests.cli.inside import Inside, Said
from tests.cli.place import Helio, read, write
from tests.cli.test_verbs import code_of, on_a_terminal, read_until

OWNER = Owner("somebody", "demo")


class Demo:
    """`helio` in this process, where a file, a script and a fake place are; jobs there do as told."""

    def __init__(self, inside: Inside, helio: Helio) -> None:
        self.folder, self.place = inside.folder, helio.place
        self.inside, self.helio = inside, helio

    def __call__(self, *words: str) -> Said:
        return self.inside(*words)


@pytest.fixture
def demo(inside: Inside, helio: Helio, monkeypatch: pytest.MonkeyPatch) -> Demo:
    monkeypatch.setenv("HELIO_GROUNDS", "local=tests.cli.place:KeptGround")
    monkeypatch.setenv("FAKE_PLACE", str(helio.place))
    inside.write("cluster: demo\nworkers: { cpu: { count: 1, cpus: 2 } }\nhead: { cpus: 2 }\n")
    inside.write("print('trained')\n", "train.py")
    inside.write("six\n-r loop.txt\n", "loop.txt")
    inside.write("-e .\n", "edit.txt")
    place = read(helio.place)
    place.scripts = {
        "train.py": Script(output=b"trained\n", seconds=0.1),
        "fails": Script(output=b"no\n", seconds=0.1, code=3),
        "long": Script(output=b"begun\n" * 5000, seconds=300),
    }
    write(helio.place, place)
    return Demo(inside, helio)


def requests(demo: Demo) -> dict[str, str]:
    """Entrypoints of all jobs, by the words that were typed."""
    jobs = read(demo.place).jobs[OWNER].values()
    return {job.request.metadata[COMMAND]: job.request.entrypoint for job in jobs}


def test_a_file_and_its_arguments(demo: Demo) -> None:
    done = demo("run", "train.py", "--epochs", "3", "--json")
    assert (done.code, done.out) == (0, "trained\n"), done.err
    assert requests(demo) == {"python train.py --epochs 3 --json": "exec python train.py --epochs 3 --json"}
    assert "succeeded" in done.err
    assert "still up with 2 nodes" in done.err


def test_a_command_and_its_own_exit_code(demo: Demo) -> None:
    done = demo("run", "--no-work", "-q", "--", "fails", "-x")
    assert tuple(done) == (3, "no\n", "")
    done = demo("run", "--no-work", "--json", "--", "fails")
    last = json.loads(done.out.splitlines()[-1])
    assert (done.code, last["code"], last["job_code"]) == (3, 3, 3)


def test_started_here_it_starts_there_at_the_same_place(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    (demo.folder / "sub").mkdir()
    (demo.folder / "sub" / "train.py").write_text("")
    monkeypatch.chdir(demo.folder / "sub")
    assert demo("run", "train.py").code == 0
    assert requests(demo) == {"python train.py": "cd sub && exec python train.py"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run",), "nothing to run"),
        (("run", "python", "-V"), "put it after --: helio run -- python"),
        (("run", "trian.py"), "there is no file trian.py here"),
        (("run", "--memory", "4 apples", "train.py"), "4 apples"),
        (("run", "--env", "NO-NAME=1", "train.py"), "no name of a variable"),
        (("run", "--resources", "{oops", "train.py"), "--resources is no JSON"),
        (("run", "--runtime-env-json", "[1]", "train.py"), "is no runtime environment"),
        (("run", "--requirements", "none.txt", "train.py"), "none.txt cannot be read"),
        (("run", "--work", "nowhere", "train.py"), "there is no folder nowhere"),
        (("run", "--work", ".", "--no-work", "train.py"), "contradict"),
        (("run", "--attach", "x", "train.py"), "nothing new to run"),
        (("run", "--cwd", "nowhere", "train.py"), "there is no folder nowhere"),
        (("logs",), "no cluster demo is up"),
        (("stop", "x"), "no cluster demo is up"),
        (("run", "--attach", "x"), "no cluster demo is up"),
        (("run", "--", ""), "nothing to run"),
        (("run", "--", " "), "nothing to run"),
        (("run", "--num-cpus", "nan", "train.py"), "no amount"),
        (("run", "--resources", "x=-1", "train.py"), "no amount"),
        (("run", "--resources", "x=inf", "train.py"), "no amount"),
        (("run", "-r", "loop.txt", "train.py"), "names itself"),
        (("run", "-r", "edit.txt", "train.py"), "cannot be used for one job"),
        (("submit", "--down", "train.py"), "nobody here waits"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_made(
    demo: Demo, words: tuple[str, ...], said: str
) -> None:
    done = demo(*words)
    assert done.code == 2, done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert read(demo.place).names() == []


def test_what_no_node_can_have_is_exit_code_7(demo: Demo) -> None:
    done = demo("run", "--num-cpus", "9999", "train.py")
    assert done.code == 7
    assert "9999 CPUs" in done.err
    assert "--num-cpus 2" in done.err, "the nearest that fits"
    assert read(demo.place).names() == []


def test_submitted_listed_followed_stopped(demo: Demo) -> None:
    submitted = demo("submit", "-q", "--no-work", "--", "long")
    assert submitted.code == 0, submitted.err
    run_id = submitted.out.strip()
    assert run_id.startswith("long-")
    jobs = demo("jobs")
    assert "running" in jobs.out or "pending" in jobs.out
    assert demo("logs", run_id[:8]).code == 0
    assert "did you mean" in demo("logs", run_id.replace("long", "lung")).err
    stopped = demo("stop")
    assert stopped.code == 0
    assert f"{run_id}  stopped" in stopped.out
    followed = demo("logs", "-f", run_id)
    assert followed.code == 1, "a job that was stopped did not succeed"
    assert demo("stop").code == 2
    assert demo("stop", "--all").out == "no job is running or waiting\n"


def test_files_of_a_run(demo: Demo) -> None:
    with (demo.folder / "helio.yaml").open("a") as file:
        file.write("secrets: [API_KEY]\nenv: { A: 1 }\n")
    (demo.folder / ".env").write_text("API_KEY=not-for-your-eyes\n")
    done = demo("run", "--down", "train.py")
    assert done.code == 0, done.err
    assert "not-for-your-eyes" not in done.out + done.err
    assert b"not-for-your-eyes" not in demo.place.read_bytes()


@pytest.mark.parametrize(("answer", "left"), [(b"n\n", True), (b"y\n", False)])
def test_ctrl_c_asks_once_whether_the_job_goes_on(demo: Demo, answer: bytes, left: bool) -> None:
    with on_a_terminal(demo.helio, "run", "--no-work", "--", "long") as (child, terminal):
        read_until(terminal, "begun")
        os.write(terminal, b"\x03")
        read_until(terminal, "[y/N]")
        os.write(terminal, answer)
        seen = read_until(terminal, "")
        assert code_of(child) == 130, seen
    (job,) = read(demo.place).jobs[OWNER].values()
    assert (job.stopped is None) is left
    assert ("helio logs -f" in seen) is left
    assert "Traceback" not in seen


def test_ctrl_c_at_the_question_leaves_the_job_and_says_so(demo: Demo) -> None:
    with on_a_terminal(demo.helio, "run", "--no-work", "--", "long") as (child, terminal):
        read_until(terminal, "begun")
        os.write(terminal, b"\x03")
        read_until(terminal, "[y/N]")
        os.write(terminal, b"\x03")
        seen = read_until(terminal, "")
        assert code_of(child) == 130, seen
    (job,) = read(demo.place).jobs[OWNER].values()
    assert job.stopped is None
    assert "helio logs -f" in seen
    assert "left at once" not in seen


def test_a_closed_terminal_leaves_the_job_and_is_no_mistake_of_ours(demo: Demo) -> None:
    state = demo.folder.parent / "state"
    with on_a_terminal(demo.helio, "run", "--no-work", "--", "long", HELIO_STATE=str(state)) as (
        child,
        terminal,
    ):
        read_until(terminal, "begun")
        os.dup2(os.open(os.devnull, os.O_RDONLY), terminal)  # closes it; the number stays ours
        assert code_of(child) == 130
    (job,) = read(demo.place).jobs[OWNER].values()
    assert job.stopped is None
    assert not (state / "bugs").exists()


def test_without_a_terminal_ctrl_c_leaves_the_job_and_says_so(demo: Demo) -> None:
    with on_a_terminal(demo.helio, "run", "--no-work", "--on-interrupt", "stop", "--", "long") as (
        child,
        terminal,
    ):
        read_until(terminal, "begun")
        os.write(terminal, b"\x03")
        seen = read_until(terminal, "")
        assert code_of(child) == 130
    assert "was stopped" in seen
    (job,) = read(demo.place).jobs[OWNER].values()
    assert job.stopped is not None


def test_a_program_that_is_no_python(demo: Demo) -> None:
    (demo.folder / "go.sh").write_text("true")
    (demo.folder / "tool").write_text("true")
    assert demo("run", "go.sh", "a b").code == 0
    assert demo("run", "tool").code == 0
    assert requests(demo) == {"sh go.sh 'a b'": "exec sh go.sh 'a b'", "./tool": "./tool"}


def test_the_folder_of_a_run_is_named_by_its_file_not_by_who_stands_where(
    demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = demo("run", "-f", str(demo.folder / "helio.yaml"), "train.py")
    assert done.code == 0, done.err
    assert requests(demo) == {"python train.py": "exec python train.py"}


def test_how_a_node_booted(demo: Demo) -> None:
    assert demo("up", "--yes").code == 0
    home = Path(read(demo.place).homes, OWNER.id, "cpu-1")
    home.mkdir(parents=True, exist_ok=True)
    (home / "boot.log").write_text("it began\n")
    assert demo("logs", "--node", "cpu-1").out == "it began\n"
    assert "did you mean cpu-1?" in demo("logs", "--node", "cpu1").err
    assert "cannot read how head booted" in demo("logs", "--node", "head").err
    assert demo("logs", "--node", "cpu-1", "-f").code == 2


def test_a_port_that_is_taken(demo: Demo) -> None:
    assert demo("up", "--yes").code == 0
    home = Path(read(demo.place).homes, OWNER.id, "head")
    home.mkdir(parents=True, exist_ok=True)
    (home / "token").write_text("t")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = demo("open", "dashboard", "--no-browser", "--port", str(port))
    assert done.code == 4
    assert f"port {port} of this machine is taken" in done.err
    assert "--port N" in done.err


@pytest.mark.parametrize("given", ['{"env_vars": [1]}', '{"env_vars": "abc"}', '{"env_vars": {"A": 1}}'])
def test_a_runtime_environment_that_ray_would_refuse(demo: Demo, given: str) -> None:
    done = demo("run", "--runtime-env-json", given, "train.py")
    assert done.code == 2
    assert "env_vars" in done.err


def test_where_outputs_cannot_be_kept_the_exit_code_is_still_the_jobs(demo: Demo) -> None:
    (demo.folder / "outputs").write_text("a file of that name")
    done = demo("run", "--no-work", "--", "fails")
    assert done.code == 3, done.err
    assert "could not be fetched" in done.err
    assert (demo.folder / "outputs").read_text() == "a file of that name"


def test_requirements_take_in_others(demo: Demo) -> None:
    (demo.folder / "sub").mkdir()
    (demo.folder / "all.txt").write_text("six>=1  # why\n-r sub/more.txt\nray[tune]\n")
    (demo.folder / "sub" / "more.txt").write_text("--requirement=deep.txt\nrich\n")
    (demo.folder / "sub" / "deep.txt").write_text("click==8.1\n")
    assert demo("run", "-r", "all.txt", "train.py").code == 0
    (job,) = read(demo.place).jobs[OWNER].values()
    assert job.request.runtime_env["pip"] == ["six>=1", "click==8.1", "rich"]


def test_a_script_whose_name_looks_like_an_option(demo: Demo) -> None:
    (demo.folder / "-train.py").write_text("")
    assert demo("run", "./-train.py").code == 0
    assert "exec python ./-train.py" in requests(demo).values()


def test_logs_end_when_nobody_reads_them_and_the_job_goes_on(demo: Demo) -> None:
    assert demo("submit", "-q", "--no-work", "--", "long").code == 0
    argv = [sys.executable, "-m", "heliostat", "logs", "-f"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody:
        done = subprocess.run(
            argv, cwd=demo.folder, env=demo.helio.env(), stdout=nobody, stderr=-1, check=False, timeout=20
        )
    assert done.returncode == 141, done.stderr
    (job,) = read(demo.place).jobs[OWNER].values()
    assert job.stopped is None
