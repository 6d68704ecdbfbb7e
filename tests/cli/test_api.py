"""The Python API on a fake place: what it returns, raises and prints, and where it may be called."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import heliostat
from heliostat.core.event import Event, Step
from heliostat.testing.place import Script
from tests.cli.place import Helio, begin, read, write


@pytest.fixture
def here(helio: Helio, monkeypatch: pytest.MonkeyPatch) -> Helio:
    """We stand in an empty folder, on an empty fake place."""
    helio.folder /= "project"  # what it sends must not hold the place's own files
    helio.folder.mkdir()
    monkeypatch.chdir(helio.folder)
    for name in ("HELIO_GROUNDS", "FAKE_PLACE"):
        monkeypatch.setenv(name, helio.env()[name])
    return helio


def script(here: Helio, part: str, output: bytes = b"", *, seconds: float = 0.1, code: int = 0) -> None:
    """What a job does whose entrypoint has that part."""
    place = read(here.place)
    place.scripts[part] = Script(output, seconds, code)
    write(here.place, place)


def test_with_brings_it_up_and_takes_it_down(here: Helio) -> None:
    with heliostat.cluster(workers=2) as c:
        assert [node.name for node in c.status().nodes] == ["head", "worker-1", "worker-2"]
        assert c.status().healthy
    assert read(here.place).names() == []


def test_with_leaves_what_was_up_before_and_what_is_to_be_kept(here: Helio) -> None:
    with heliostat.cluster(keep=True) as c:
        assert c.name == "default"
    assert c.status().healthy
    with heliostat.cluster() as again:
        assert again.status().healthy
    assert c.status().healthy
    proof = c.down()
    assert proof.gone
    assert not c.status().exists


def test_with_does_not_take_a_strangers_job_away(here: Helio, capsys: pytest.CaptureFixture[str]) -> None:
    script(here, "theirs", seconds=60)
    with heliostat.cluster() as mine:
        theirs = heliostat.cluster().submit(["theirs"], work="")
    assert mine.status().healthy
    assert f"default stays up: {theirs.id} still runs there" in capsys.readouterr().err


def test_its_own_job_is_no_reason_to_stay(here: Helio) -> None:
    script(here, "mine", seconds=60)
    with heliostat.cluster() as mine:
        mine.submit(["mine"], work="")
    assert read(here.place).names() == []


def test_the_file_and_what_replaces_its_values(here: Helio) -> None:
    (here.folder / "helio.yaml").write_text("cluster: demo\nworkers: 2\n")
    c = heliostat.cluster(workers={"count": 1, "cpus": 3}, env={"A": "x: y", "B": "on"})
    assert (c.name, c.where, c.spec.env) == ("demo", "local", {"A": "x: y", "B": "on"})
    assert c.spec.workers[0].node.cpus == 3
    assert heliostat.cluster(here.folder / "helio.yaml").name == "demo"
    with pytest.raises(heliostat.FileError, match="did you mean workers"):
        heliostat.cluster(worker=3)
    with pytest.raises(heliostat.UsageError, match=r"there is no file none\.yaml"):
        heliostat.cluster("none.yaml")


def test_run_shows_its_output_and_returns_how_it_ended(
    here: Helio, capsys: pytest.CaptureFixture[str]
) -> None:
    script(here, "train.py", "süß\n".encode(), code=7)
    (here.folder / "train.py").write_text("pass")
    with heliostat.cluster() as c:
        end = c.run("train.py", "--lr", 0.1)
        assert (end.job.code, end.job.state) == (7, heliostat.JobState.FAILED)
        assert "train.py --lr 0.1" in end.job.entrypoint
        assert capsys.readouterr().out == "süß\n"
        assert c.logs() == "süß\n"
        assert c.logs(end.job) == "süß\n"
        assert capsys.readouterr().out == ""
        assert [job.id for job in c.jobs()] == [end.job.id]
        with pytest.raises(heliostat.UsageError, match="there is no file echo here"):
            c.run("echo")


def test_output_and_events_may_go_to_functions(here: Helio, capsys: pytest.CaptureFixture[str]) -> None:
    script(here, "say", b"a\nb\n")
    said: list[str] = []
    events: list[Event] = []
    threads: set[threading.Thread] = set()

    def take(text: str) -> None:
        said.append(text)
        threads.add(threading.current_thread())

    with heliostat.cluster(output=take, on_event=events.append) as c:
        c.run(["say"], work="")
    assert "".join(said) == "a\nb\n"
    assert threads == {threading.current_thread()}, "they are called where the method was"
    assert {event.subject for event in events if isinstance(event, Step)} >= {"head"}
    assert capsys.readouterr().out == ""


def test_submit_attach_and_stop(here: Helio) -> None:
    script(here, "long", b"begun\n", seconds=60)
    script(here, "short", b"done\n")
    with heliostat.cluster(output=lambda _: None) as c:
        job = c.submit(["long"], work="", name="long")
        assert not job.state.final
        assert c.stop(job)[0].state is heliostat.JobState.STOPPED
        end = c.attach(c.submit(["short"], work=""))
        assert end.job.code == 0
        with pytest.raises(heliostat.Infeasible):
            c.submit(["big"], work="", needs=heliostat.Needs(cpus=64))


def test_exec_push_and_pull(here: Helio, capsys: pytest.CaptureFixture[str]) -> None:
    with heliostat.cluster(workers=1) as c:
        (head,) = c.exec("echo out; echo err >&2; exit 3")
        assert (head.node, head.code) == ("head", 3)
        assert capsys.readouterr() == ("out\n", "err\n")
        both = c.exec(["basename", "a/b c"], nodes="all", capture=True)
        assert [(one.node, one.out) for one in both] == [("head", b"b c\n"), ("worker-1", b"b c\n")]
        c.exec("echo; printf end", nodes=["head", "worker-1"])
        assert sorted(capsys.readouterr().out.splitlines()) == [
            "head: ", "head: end", "worker-1: ", "worker-1: end",
        ]  # fmt: skip
        assert c.exec("cat", stdin=b"typed", capture=True)[0].out == b"typed"
        (here.folder / "a.txt").write_text("a")
        there = here.folder / "there"
        c.push("a.txt", f"{there}/b.txt")
        c.pull(f"{there}/b.txt", here.folder / "c.txt")
        assert (here.folder / "c.txt").read_text() == "a"


def test_what_would_lose_something_is_refused(here: Helio) -> None:
    script(here, "long", seconds=60)
    with heliostat.cluster(workers=1) as c:
        c.submit(["long"], work="")
        with pytest.raises(heliostat.UsageError, match="needs an answer") as told:
            c.down()
        assert "yes=True" in told.value.fix
        with pytest.raises(heliostat.UsageError, match="needs an answer"):
            heliostat.cluster(workers=0).up()
        assert heliostat.cluster(workers=0, yes=True).up().healthy


def test_a_node_is_killed_and_comes_back(here: Helio) -> None:
    with heliostat.cluster(workers=1) as c:
        assert c.kill("worker-1").key == "worker-1"
        assert not c.status().healthy
        assert len(c.plan().create) == 1
        assert c.up().healthy


def test_errors_are_the_cores_and_say_what_to_do(here: Helio) -> None:
    begin(here.place, capacity=1)
    with pytest.raises(heliostat.NoCapacity), heliostat.cluster(workers=3):
        pytest.fail("it is not up")
    assert read(here.place).names() == []
    with pytest.raises(heliostat.HelioError) as told:
        heliostat.cluster().jobs()
    assert told.value.fix == "start it with `helio up`"


def test_it_works_inside_a_running_loop(here: Helio) -> None:
    async def cell() -> int:
        with heliostat.cluster(output=lambda _: None) as c:
            return c.exec("exit 5")[0].exit_code

    assert asyncio.run(cell()) == 5


def test_an_error_of_the_callers_own_function_ends_the_call(here: Helio) -> None:
    def fails(text: str) -> None:
        raise ZeroDivisionError(text)

    with heliostat.cluster(output=fails) as c:
        with pytest.raises(ZeroDivisionError, match="begun"):
            c.exec("echo begun $$ > pid; cat pid; sleep 1000")
        home = c.exec("pwd; cat pid", capture=True)[0].out.decode().split()
        assert not Path("/proc", home[2]).exists(), "and with it the command"


CTRL_C = """
import os, signal
import heliostat

said = []
def take(text):
    before = "".join(said)
    said.append(text)
    if "begun" in before + text and "begun" not in before:
        os.kill(os.getpid(), signal.SIGINT)

with heliostat.cluster(output=take) as c:
    try:
        {call}
    except KeyboardInterrupt:
        print("interrupted", [job.state.value for job in c.jobs()])
print("down:", c.status().exists)
"""


@pytest.mark.parametrize(
    ("call", "states"),
    [
        ('c.exec("echo begun; sleep 1000")', "[]"),
        ('c.run(["long"], work="")', "['stopped']"),
        ('c.run(["long"], work="", on_interrupt=heliostat.OnInterrupt.LEAVE)', "['running']"),
    ],
)
def test_ctrl_c_ends_the_call_and_then_the_with(here: Helio, call: str, states: str) -> None:
    script(here, "long", b"begun" + 600 * b".", seconds=30)
    done = subprocess.run(
        [sys.executable, "-c", CTRL_C.format(call=call)],
        env=here.env(), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    up_still = "running" in states  # a job that was left is a reason to stay
    assert done.stdout == f"interrupted {states}\ndown: {up_still}\n"
