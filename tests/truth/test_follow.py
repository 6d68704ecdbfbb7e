"""Following a job on a real cluster, whatever happens to the line, the head or the laptop."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.rest import wait
from bench.row import program
from tests.truth.patient import Patient
from tests.truth.world import processes_with

pytestmark = [pytest.mark.ray, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
LINES = 10_000
CUTS = 100
WRITER = f"""
import os, signal, sys, time
for n in range({LINES}):
    print("line", n, flush=True)
    if n % 20 == 19:
        time.sleep(0.02)
end = sys.argv[1]
if end == "wait":
    print("waiting", flush=True)
    time.sleep(600)
if end.startswith("-"):
    os.kill(os.getpid(), -int(end))
sys.exit(int(end))
"""
WHOLE = "".join(f"line {n}\n" for n in range(LINES)).encode()


@dataclass
class Followed:
    """A `helio` that follows a job into a file."""

    helio: subprocess.Popen[bytes]
    output: Path
    cuts: Path

    def ends(self, code: int, output: bytes = WHOLE) -> None:
        """With the job's code, and with its output to the byte."""
        said = self.output.with_suffix(".err")
        assert self.helio.wait(120) == code, said.read_text()[-2000:]
        assert self.output.read_bytes() == output

    def counted(self) -> int:
        return self.cuts.stat().st_size if self.cuts.exists() else 0

    def lines(self) -> int:
        return self.output.read_bytes().count(b"\n")


def follow(patient: Patient, folder: Path, name: str, *words: str, cuts: int = CUTS) -> Followed:
    output, count = folder / f"{name}.out", folder / f"{name}.cuts"
    env = patient.mine.env | {
        "HELIO_GROUNDS": "local=tests.truth.cutting:CuttingGround",
        "HELIO_CUTS": str(cuts),
        "HELIO_CUTS_FILE": str(count),
        "PYTHONPATH": str(ROOT),
    }
    with output.open("wb") as out, (folder / f"{name}.err").open("wb") as err:
        helio = subprocess.Popen(
            [program("helio"), *words],
            env=env,
            cwd=patient.mine.work,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
    return Followed(helio, output, count)


@pytest.fixture
def writer(patient: Patient) -> tuple[str, ...]:
    patient.script("writer.py", WRITER)
    return ("run", "--", "python", "writer.py")


def test_a_hundred_cuts_and_every_exit_code(
    patient: Patient, writer: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = {"0": 0, "1": 1, "7": 7, "-11": 139}
    followed = {end: follow(patient, tmp_path, end, *writer, end) for end in codes}
    for end, code in codes.items():
        followed[end].ends(code)
        assert followed[end].counted() == CUTS
    with capsys.disabled():
        print(f"\n{len(codes)} x {LINES} lines, {CUTS} cuts each: every line once, codes {codes}")  # noqa: T201


def test_the_driver_killed(patient: Patient, writer: tuple[str, ...], tmp_path: Path) -> None:
    job = follow(patient, tmp_path, "killed", *writer, "wait")
    wait(lambda: job.output.read_bytes().endswith(b"waiting\n"), "all lines")
    for pid, command in processes_with(patient.mine.name).items():
        if "python writer.py" in command and not command.startswith("/bin/sh"):
            os.kill(pid, signal.SIGKILL)
    job.ends(137, WHOLE + b"waiting\n")


def test_the_dashboard_restarts_meanwhile(patient: Patient, writer: tuple[str, ...], tmp_path: Path) -> None:
    job = follow(patient, tmp_path, "restarted", *writer, "7")
    wait(lambda: job.lines() > LINES / 4, "some lines")
    patient.kill("head", "dashboard")
    job.ends(7)


def test_the_laptop_sleeps(patient: Patient, writer: tuple[str, ...], tmp_path: Path) -> None:
    """It stands still until the job has ended, and every connection that it had is gone when it wakes."""
    job = follow(patient, tmp_path, "slept", *writer, "7", cuts=10**6)
    wait(lambda: job.lines() > LINES / 4, "some lines")
    os.kill(job.helio.pid, signal.SIGSTOP)
    wait(lambda: all(one["state"] != "running" for one in patient.mine.json("jobs")["jobs"]), "the job's end")
    os.kill(job.helio.pid, signal.SIGCONT)
    job.ends(7)


def test_a_job_is_taken_up_again(patient: Patient, writer: tuple[str, ...], tmp_path: Path) -> None:
    """The terminal was closed on it: the job went on, and `logs -f` has it all."""
    first = follow(patient, tmp_path, "first", *writer, "7")
    wait(lambda: first.lines() > LINES / 4, "some lines")
    first.helio.kill()
    first.helio.wait()
    job = patient.mine.json("jobs")["jobs"][-1]["id"]
    again = follow(patient, tmp_path, "again", "logs", "-f", job)
    again.ends(7)


def test_a_hundred_megabytes(patient: Patient, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the client nor the head holds what passes through."""
    patient.script("much.py", "for n in range(1_000_000): print(f'{n:099}')")
    before = weights(patient)
    job = follow(patient, tmp_path, "much", "run", "--", "python", "much.py", cuts=0)
    peaks: list[float] = []  # getrusage would also count what this process weighs, whose fork it was

    def ended() -> bool:
        peaks.append(peak(job.helio.pid))
        return job.helio.poll() is not None

    wait(ended, "100 MB to be followed", 120)
    after = weights(patient)  # what was there before: a worker that was started since is the job's
    most, grown = max(peaks), sum(after[pid] - before[pid] for pid in before.keys() & after.keys())
    assert job.helio.returncode == 0
    assert most > 10, "it was looked at while it ran"
    right = hashlib.sha256()
    for n in range(1_000_000):
        right.update(f"{n:099}\n".encode())
    assert hashlib.sha256(job.output.read_bytes()).digest() == right.digest()
    with capsys.disabled():
        print(f"\n100 MB followed: client {most:.0f} MB at most, head {grown:+.0f} MB")  # noqa: T201
    assert most < 100
    assert grown < 90, "it would hold what passes through"


def peak(pid: int) -> float:
    """The most megabytes that a process has had so far; none once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def weights(patient: Patient) -> dict[int, float]:
    """Megabytes of each process of the head, but for workers, which come and go with jobs."""
    there = patient.processes("head").items()
    return {pid: resident(pid) for pid, command in there if not command.startswith("ray::")}


def resident(pid: int) -> float:
    """Megabytes of a process, as its share of what it shares with others."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
