"""One cluster of containers for all that looks at one: bringing it up costs most."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import boxed
from tests.machine import Machine
from tests.rig import docker
from tests.rig.docker import Engine


@pytest.fixture(scope="session")
def box(engine: Engine) -> Iterator[Machine]:
    """Three nodes, Prometheus, an S3 store and JupyterLab, from images that were built here."""
    for image in (docker.STORE_IMAGE, docker.LAB_IMAGE):
        if not docker.has(engine, image):
            pytest.skip("needs what requirements/images.lock names, which cannot be downloaded")
    with tempfile.TemporaryDirectory() as home:
        made = Machine(Path(home))
        (made.folder / ".env").write_text(f"BOX_SECRET={boxed.SECRET}\n")
        (made.folder / "helio.yaml").write_text(boxed.FILE)
        (made.folder / "hello.py").write_text(boxed.HELLO)
        (made.folder / "s3.py").write_text(boxed.STORED)
        (made.folder / "demo.ipynb").write_text(json.dumps(boxed.NOTEBOOK))
        engine.docker("volume", "create", "food11")
        made("up", "--yes")
        try:
            yield made
        finally:
            made("down", "--yes")
