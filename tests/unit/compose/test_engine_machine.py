"""Which GPUs a machine has, and to whom they go: the other side is a program and a folder of devices."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SMI = """#!/bin/sh
test "$*" = "--query-gpu=index,uuid,name --format=csv,noheader" || exit 9
echo "0, GPU-8f1c, Tesla T4"
echo "1, GPU-77aa, Tesla T4"
"""
# An engine that answers, with nothing on it but what stands in `ps`.
ENGINE = """#!/bin/sh
case "$1 $2" in
"context inspect") echo unix:///var/run/docker.sock ;;
"ps --format") cat "{folder}/ps" ;;
esac
"""
FILE = "cluster: box\nwhere: compose\nworkers: {{ count: {count}, gpus: {gpus} }}\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder first on PATH, with a `docker` and an `nvidia-smi`."""
    for name, text in (("docker", ENGINE.format(folder=tmp_path)), ("nvidia-smi", SMI)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "ps").write_text("")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    return tmp_path


def helio(folder: Path, text: str, *words: str, before: tuple[str, ...] = ()) -> tuple[int, str]:
    (folder / "helio.yaml").write_text(text)
    argv = [*before, sys.executable, "-m", "heliostat", *words, "-f", "helio.yaml"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_doctor_deals_out_what_there_is(machine: Path) -> None:
    _, said = helio(machine, FILE.format(count=2, gpus=1), "doctor")
    assert "2 on the engine's machine" in said
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "ok worker-1 NVIDIA GPU 0: Tesla T4" in lines
    assert "ok worker-2 NVIDIA GPU 1: Tesla T4" in lines


def test_a_file_that_asks_for_more_is_refused_before_anything_is_made(machine: Path) -> None:
    code, said = helio(machine, FILE.format(count=3, gpus=1), "plan")
    assert (code, "worker-3: no NVIDIA GPU 2 for it" in said) == (4, True), said
    assert "has 0 (Tesla T4), 1 (Tesla T4)" in said
    assert helio(machine, FILE.format(count=3, gpus=1), "up", "--yes")[0] == 4
    code, said = helio(machine, FILE.format(count=3, gpus=1), "doctor")
    assert (code, "bad" in said) == (2, True)


def test_devices_are_found_by_their_uuid(machine: Path) -> None:
    asked = FILE.format(count=1, gpus='{ devices: ["GPU-77aa"] }')
    assert "NVIDIA GPU GPU-77aa: Tesla T4" in helio(machine, asked, "doctor")[1]
    code, said = helio(machine, FILE.format(count=1, gpus='{ devices: ["GPU-none"] }'), "plan")
    assert (code, "no NVIDIA GPU GPU-none" in said) == (4, True), said


def test_amd_devices_are_those_of_the_machine(machine: Path) -> None:
    """With a /dev of its own, where two render nodes of a driver for computing are."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a /dev of one's own needs root and unshare")
    make = (
        'mkdir "$0/dev" && mount -t tmpfs none "$0/dev" && cd "$0/dev" && mknod null c 1 3 && '
        "mknod urandom c 1 9 && mkdir dri && touch kfd dri/card0 dri/renderD128 dri/renderD129 && "
        'mount --bind "$0/dev" /dev && cd "$0" && exec "$@"'
    )
    before = ("unshare", "--mount", "sh", "-c", make, str(machine))
    asked = FILE.format(count=2, gpus="{ count: 1, vendor: amd }")
    _, said = helio(machine, asked, "doctor", before=before)
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "ok worker-2 AMD GPU 1: renderD129" in lines, said
    shutil.rmtree(machine / "dev")
    code, said = helio(machine, asked.replace("count: 2", "count: 3"), "plan", before=before)
    assert (code, "no AMD GPU 2" in said) == (4, True), said


def test_a_port_of_another_project_is_named(machine: Path) -> None:
    (machine / "ps").write_text("grafana-1\tcourse\t0.0.0.0:8265->8265/tcp, :::8265->8265/tcp\n")
    asked = "cluster: box\nwhere: compose\nexpose: { dashboard: 10.0.0.0/8 }\n"
    code, said = helio(machine, asked, "plan")
    assert code != 0
    assert "port 8265, for the dashboard, is taken by the container grafana-1 of the project course" in said
