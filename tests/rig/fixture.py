"""The pytest fixture `rig`, given to all tests by tests/conftest.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rig import docker
from tests.rig.rig import Rig, missing


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    """Hosts in namespaces; each test takes fresh ones by `rig.new()`."""
    lacking = missing()
    if lacking:
        pytest.skip(f"the rig needs: {lacking}")
    with Rig() as made:
        yield made


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.Engine]:
    """A Docker engine of its own with all images that tests ask for; each test uses names of its own."""
    lacking = docker.missing()
    if lacking:
        pytest.skip(f"a Docker engine needs: {lacking}")
    pytest.importorskip("ray", reason="Ray is not installed here (pip install 'heliostat[local]')")
    with docker.Engine() as made, pytest.MonkeyPatch.context() as patch:
        docker.images(made)
        patch.setenv("DOCKER_HOST", made.host)
        yield made
