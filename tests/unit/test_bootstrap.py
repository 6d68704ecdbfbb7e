"""The bootstrap script: the same text for the same wish, clean in the eyes of shellcheck, and it works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from heliostat.ray.bootstrap import NOTHING_FITS, Wanted, script

WANTED = Wanted(ray="9.9.9", python=f"{sys.version_info.major}.{sys.version_info.minor}")


def run(home: Path, wanted: Wanted = WANTED, path: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-s"],
        input=script(wanted),
        env={"HOME": str(home), "PATH": path or f"{Path(sys.executable).parent}:{os.defpath}"},
        capture_output=True,
        text=True,
        check=False,
    )


def wheel(folder: Path) -> None:
    """A package that calls itself Ray, as small as can be."""
    folder.mkdir(parents=True)
    info = "ray-9.9.9.dist-info"
    with zipfile.ZipFile(folder / "ray-9.9.9-py3-none-any.whl", "w") as file:
        file.writestr("ray/__init__.py", "__version__ = '9.9.9'\n")
        file.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: ray\nVersion: 9.9.9\nProvides-Extra: default\n"
        )
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")


def test_parameters_are_data() -> None:
    nasty = script(Wanted(ray="1'; touch /tmp/x; '", python="$(id)"))
    assert "ray='1'\\''; touch /tmp/x; '\\'''" in nasty
    assert "python='$(id)'" in nasty
    assert script(WANTED) == script(WANTED)
    assert WANTED.digest != Wanted(ray="9.9.8", python=WANTED.python).digest


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed here")
def test_shellcheck_has_nothing_to_say(tmp_path: Path) -> None:
    (tmp_path / "bootstrap.sh").write_text(script(WANTED))
    done = subprocess.run(
        ["shellcheck", "bootstrap.sh"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


@pytest.mark.slow
def test_an_environment_is_made_once_from_wheels_that_were_brought(tmp_path: Path) -> None:
    wheel(tmp_path / ".cache/heliostat/wheels")
    first = run(tmp_path)
    assert first.returncode == 0, first.stderr
    *steps, last = first.stdout.splitlines()
    python = last.removeprefix("helio-python ")
    assert [line.split()[1] for line in steps] == ["making", "installing"]
    assert (
        subprocess.check_output([python, "-c", "import ray; print(ray.__version__)"], text=True) == "9.9.9\n"
    )
    again = run(tmp_path)
    assert again.stdout == f"helio-python {python}\n"
    # Cut short half-way, it is made anew.
    (Path(python).parent.parent / ".ready").unlink()
    assert run(tmp_path).stdout.splitlines()[-1] == last


@pytest.mark.slow
def test_a_failure_says_what_was_done_and_shows_the_log(tmp_path: Path) -> None:
    (tmp_path / ".cache/heliostat/wheels").mkdir(parents=True)
    done = run(tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "helio-step installing Ray 9.9.9"
    assert "ray[default]==9.9.9" in done.stderr, "in the words of pip or of uv"


def test_without_any_python_it_says_so(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "mkdir", "rm", "date", "tail", "flock"):
        (tools / name).symlink_to(str(shutil.which(name)))
    done = run(tmp_path, Wanted(ray="9.9.9", python="3.77"), path=str(tools))
    assert done.returncode == NOTHING_FITS
    assert "found neither uv nor a Python 3.77" in done.stdout
