"""The commands of Ray's file, run by a real shell: as Ray's launcher runs them, in the right Python."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.unit.rayyaml.support import spec

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


def run(commands: list[str], home: Path, image: str = "") -> list[str]:
    """What they write into ~/said, one after another."""
    whole = {
        "cluster_name": "demo",
        "provider": {"type": "local", "head_ip": "a", "worker_ips": ["b"]},
        "setup_commands": commands,
        **({"docker": {"image": image}} if image else {}),
    }
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "VIRTUAL_ENV": str(home / "venv")}
    for line in spec(yaml.safe_dump(whole)).setup:
        done = subprocess.run(
            ["sh", "-c", line], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    return (home / "said").read_text().splitlines()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose profile sets PATH anew, as most do, with a `pip` of its own that is the wrong one."""
    for folder, name in (("venv/bin", "right"), ("wrong", "wrong")):
        (tmp_path / folder).mkdir(parents=True)
        pip = tmp_path / folder / "pip"
        pip.write_text(f'#!/bin/sh\necho {name} "$@" >> ~/said\n')
        pip.chmod(0o755)
    (tmp_path / ".bash_profile").write_text("PATH=$HOME/wrong:/usr/bin:/bin\n. ~/.bashrc\n")
    (tmp_path / ".bashrc").write_text("")
    return tmp_path


def test_each_is_a_login_shell_of_its_own_and_bashrc_carries_over(home: Path) -> None:
    commands = [
        "shopt -q login_shell && case $- in *i*) echo login >> ~/said;; esac",
        "X=1; echo 'export Y=2' >> ~/.bashrc",
        'echo "${X:-gone} $Y" >> ~/said',
    ]
    assert run(commands, home) == ["login", "gone 2"]


def test_packages_go_to_the_python_that_heliostat_made(home: Path) -> None:
    assert run(["true && pip install 'x<2'"], home) == ["right install x<2"]


def test_in_a_container_its_own_python_is_the_one(home: Path) -> None:
    assert run(["pip install x"], home, image="lab/x:1") == ["wrong install x"]
