"""What Docker says when it cannot, and what we make of it; a real `docker` without an engine is asked too."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from heliostat.core.errors import (
    Conflict,
    Denied,
    HelioError,
    MissingPart,
    NoCapacity,
    Quota,
    Unavailable,
    UsageError,
)
from heliostat.core.owner import Owner
from heliostat.grounds.compose.ground import ComposeGround
from heliostat.shells.docker_cli import Docker, translate

SAID: tuple[tuple[str, type[HelioError]], ...] = (
    ("Cannot connect to the Docker daemon at unix:///x.sock. Is the docker daemon running?", Unavailable),
    ("permission denied while trying to connect to the Docker daemon socket at unix:///x.sock", Denied),
    ('context "gpu-box" does not exist', UsageError),
    ("docker: 'compose' is not a docker command.", MissingPart),
    ("docker: unknown command: docker compose\n\nRun 'docker --help' for more information", MissingPart),
    ("validating -: configs.head Additional property content is not allowed", MissingPart),
    ('could not select device driver "nvidia" with capabilities: [[gpu]]', MissingPart),
    ("nvidia-container-cli: device error: 7: unknown device: unknown", NoCapacity),
    ('error gathering device information while adding custom device "/dev/kfd": no such file', NoCapacity),
    ("write /var/lib/docker/tmp/x: no space left on device", NoCapacity),
    ("all predefined address pools have been fully subnetted", Quota),
    ("invalid mount config for type bind: bind source path does not exist: /no/such", UsageError),
    ('Conflict. The container name "/box-head" is already in use by container "5f"', Conflict),
    ("pull access denied for lab/ray, repository does not exist or may require 'docker login'", UsageError),
    ("No such image: lab/ray:1", UsageError),
    ("unauthorized: authentication required", Denied),
    ('Get "https://registry.example/v2/": dial tcp: lookup registry.example: no such host', MissingPart),
    ("An image does not exist locally with the tag: lab/ray", UsageError),
    ("something nobody has heard of", Conflict),
)


@pytest.mark.parametrize(("text", "kind"), SAID, ids=[text[:30] for text, _ in SAID])
def test_each_complaint_is_an_error_that_says_what_to_do(text: str, kind: type[HelioError]) -> None:
    error = translate("cannot start containers", f" Container box-head  Creating\n{text}\n")
    assert type(error) is kind
    assert error.what.startswith("cannot start containers")
    assert text.splitlines()[0] in error.why
    assert error.fix


def test_an_engine_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("docker") is None:
        pytest.skip("the docker program is not installed here")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    with pytest.raises(Unavailable, match="the Docker engine does not answer"):
        asyncio.run(ComposeGround().find(Owner("docker:me", "box")))


def test_a_machine_without_docker_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPart, match="no `docker` here"):
        asyncio.run(Docker().run("version"))


def test_cancelling_ends_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "docker"
    program.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid\nexec sleep 100\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    async def story() -> None:
        with pytest.raises(Unavailable, match="did not end within"):
            await Docker().run("ps", patience=1.0)

    asyncio.run(story())
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()
