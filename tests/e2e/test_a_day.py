"""A day with a real cluster here: up, work of every kind, a lost worker, repair, down with proof."""

from __future__ import annotations

import os
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine import Machine as Day

pytestmark = [pytest.mark.ray, pytest.mark.slow]

FILE = """\
cluster: day
head: { cpus: 1 }
workers: { cpus: 1, count: 1 }
outputs: [ results/ ]
secrets: [ DAY_SECRET ]
env: { FROM_FILE: "010" }
"""
SCRIPT = """\
import os, sys
from pathlib import Path
import ray

ray.init(log_to_driver=False)

@ray.remote
def there() -> dict[str, str]:
    names = ("DAY_SECRET", "FROM_FILE", "GIVEN", "HELIO_RUN", "HELIO_CLUSTER", "RAY_ADDRESS")
    return {name: os.environ.get(name, "") for name in names} | {"cwd": os.getcwd()}

seen = ray.get(there.remote())
here = {name: os.environ.get(name, "") for name in seen if name != "cwd"}
assert all(seen[name] == here[name] != "" for name in here), (seen, here)
print(seen["FROM_FILE"], seen["GIVEN"], seen["HELIO_CLUSTER"], len(seen["DAY_SECRET"]))
Path("results").mkdir(exist_ok=True)
Path("results/cwd.txt").write_text(seen["cwd"])
Path(os.environ["HELIO_OUTPUTS"], "words.txt").write_text(" ".join(sys.argv[1:]))
sys.exit(int(sys.argv[1]))
"""
PACKAGED = """\
# /// script
# dependencies = ["ray", "daywheel @ {wheel}"]
# ///
import ray
import daywheel

@ray.remote
def there() -> str:
    import daywheel
    return daywheel.WORD

print("here", daywheel.WORD, "there", ray.get(there.remote()))
"""


@pytest.fixture(scope="module")
def day() -> Iterator[Day]:
    pytest.importorskip("ray", reason="Ray is not installed here (pip install 'heliostat[local]')")
    with tempfile.TemporaryDirectory(prefix="hd", dir="/tmp", ignore_cleanup_errors=True) as home:
        made = Day(Path(home), DAY_SECRET="hush-hush-hush")
        (made.folder / "helio.yaml").write_text(FILE)
        (made.folder / "script.py").write_text(SCRIPT)
        try:
            yield made
        finally:
            made("down", "--yes", "-q")


def test_a_run_brings_the_cluster_up_and_its_files_back(day: Day) -> None:
    done = day("run", "--env", "GIVEN=2.60", "script.py", "3", "a b", code=3)
    assert done.stdout.endswith("010 2.60 day 14\n")
    assert "failed with exit code 3; 2 files in outputs/" in done.stderr
    (folder,) = (entry for entry in (day.folder / "outputs").iterdir() if entry.is_dir())
    assert (folder / "words.txt").read_text() == "3 a b"
    assert (folder / "results/cwd.txt").read_text().endswith(f"runs/{folder.name}/work")
    assert not (day.folder / "results").exists(), "a run dirties its own copy, not this folder"


def test_the_secret_is_in_no_file_but_its_own_and_in_no_answer_of_rays(day: Day) -> None:
    (head,) = (node for node in day.json("status")["status"]["nodes"] if node["name"] == "head")
    homes = [Path(head["ref"]["facts"]["home"]), Path(f"/tmp/helio-{os.getuid()}")]
    holders = {
        path.name
        for home in homes
        for path in home.rglob("*")
        if path.is_file() and not path.is_symlink() and b"hush-hush" in path.read_bytes()
    }
    assert holders == {"secrets.sh"}
    assert "hush-hush" not in day("jobs", "--json").stdout


def test_packages_of_one_job_alone(day: Day) -> None:
    wheel = day.home / "daywheel-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("daywheel.py", "WORD = 'bright'\n")
        info = "daywheel-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: daywheel\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    (day.folder / "packaged.py").write_text(PACKAGED.format(wheel=wheel.as_uri()))
    assert "here bright there bright" in day("run", "packaged.py").stdout
    (day.folder / "req.txt").write_text(f"{wheel.as_uri()}\n")
    done = day("run", "-r", "req.txt", "--", "python", "-c", "import daywheel; print(daywheel.WORD)")
    assert done.stdout.endswith("bright\n")
    failed = day("run", "--", "python", "-c", "import daywheel", code=1)
    assert "No module named 'daywheel'" in failed.stdout


def test_a_wrong_token_is_told_as_such(day: Day) -> None:
    (head,) = (node for node in day.json("status")["status"]["nodes"] if node["name"] == "head")
    path = Path(head["ref"]["facts"]["token_path"])
    right = path.read_text()
    path.write_text("0" * len(right))
    try:
        refused = day("jobs", code=6)
        ran = day("run", "--no-work", "--", "true", code=6)
    finally:
        path.write_text(right)
    assert "token" in refused.stderr
    assert "token" in ran.stderr
    assert right not in refused.stderr + ran.stderr
    assert day("jobs").returncode == 0


def test_a_worker_is_lost_and_comes_back(day: Day) -> None:
    day("kill", "worker-1", "--yes")
    status = day("status", code=5)
    assert "worker-1  missing" in status.stdout
    day("up", "--yes")
    assert "worker-1  alive" in day("status").stdout
    assert "nothing to do" in day("up").stderr


def test_down_proves_it(day: Day) -> None:
    home = day.json("status")["status"]["nodes"][0]["ref"]["facts"]["home"]
    done = day("down", "--yes")
    assert "proof: 2 listings in a row found nothing" in done.stdout
    assert not Path(home).exists()
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert home not in left
    assert "no cluster day" in day("status", code=5).stdout
