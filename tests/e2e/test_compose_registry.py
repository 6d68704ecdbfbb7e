"""Logins of private registries: used for a push and a pull, and seen nowhere else."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliostat.core.event import Event, Progress
from heliostat.core.owner import Owner
from heliostat.core.resource import SERVICE, Resource
from heliostat.core.spec import Login, Spec
from heliostat.grounds.compose.create import Making
from heliostat.shells.docker_cli import Docker
from heliostat.shells.docker_login import signed_in
from tests.machine import Machine
from tests.rig import registry
from tests.rig.docker import Engine

pytestmark = [pytest.mark.docker, pytest.mark.slow]

WORD = "open-sesame-for-images"
HOST = "127.0.0.1:5000"
NAME = f"{HOST}/lab/small:1"
FILE = f"""\
cluster: own
where: compose
image: {NAME}
registry: {{ "{HOST}": {{ user: me, password: secret:LAB_WORD }} }}
workers: 0
"""
# Before the real `docker`: what it is called with, and who may read its settings.
SHIM = """#!/bin/sh
echo "$@" >>{log}
test -z "$DOCKER_CONFIG" || stat -c "%a %n" "$DOCKER_CONFIG" "$DOCKER_CONFIG/config.json" >>{log}
exec {docker} "$@"
"""


@pytest.fixture(scope="module")
def shop(engine: Engine) -> Iterator[None]:
    """A registry on the engine's machine, and an image that is to go there."""
    words = [sys.executable, str(registry.__file__), "5000", "me", WORD]
    inside = ["setpriv", "--pdeathsig", "KILL", "nsenter", f"--net=/proc/{engine.pid}/ns/net"]
    server = subprocess.Popen([*inside, *words], stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        info = tarfile.TarInfo("hello")
        info.size = 5
        archive.addfile(info, io.BytesIO(b"hello"))
    done = engine.try_("import", "-", NAME, stdin=packed.getvalue())
    assert done.returncode == 0, done.stderr
    yield
    server.kill()
    server.wait()
    server.stdout.close()


def left() -> list[Path]:
    folders = ("/dev/shm", tempfile.gettempdir())
    return [path for folder in folders for path in Path(folder).glob("helio-login-*")]


@pytest.fixture
def person(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    (made.folder / "helio.yaml").write_text(FILE)
    shims = tmp_path / "bin"
    shims.mkdir()
    real = subprocess.run(["which", "docker"], capture_output=True, text=True, check=True).stdout.strip()
    (shims / "docker").write_text(SHIM.format(log=tmp_path / "log", docker=real))
    (shims / "docker").chmod(0o755)
    made.env |= {"PATH": f"{shims}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    return made


def test_a_push_signs_in_by_a_secret_that_no_argument_and_no_file_shows(shop: None, person: Machine) -> None:
    lacking = person("image", "push", code=2)
    assert "a secret has no value: LAB_WORD" in lacking.stderr
    person.env["LAB_WORD"] = WORD
    done = person("image", "push")
    assert f"{NAME} is pushed" in done.stdout
    assert WORD not in done.stdout + done.stderr
    calls = (person.home / "log").read_text()
    assert f"push {NAME}" in calls
    assert WORD not in calls
    modes = {line.split()[0] for line in calls.splitlines() if "helio-login-" in line}
    assert modes == {"700", "600"}
    assert left() == []
    assert not (person.home / ".docker").exists()


def test_a_pull_signs_in_and_says_how_far_it_is(
    engine: Engine, shop: None, person: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.env["LAB_WORD"] = WORD
    person("image", "push")
    engine.docker("image", "rm", "-f", NAME)
    monkeypatch.setenv("LAB_WORD", WORD)
    spec = Spec(cluster="own", registry={HOST: Login(user="me", password="secret:LAB_WORD")})
    events: list[Event] = []
    one = Resource(kind=SERVICE, key="x", body={"image": NAME, "pull": "missing"})

    async def story() -> None:
        making = Making(Docker(), Owner("me", "own"), events.append, spec)
        with signed_in(Docker(), spec) as docker:
            await making._pulled(docker, [one])
            await making._pulled(docker, [one])  # it is there now

    asyncio.run(story())
    assert [(each.done, each.total) for each in events if isinstance(each, Progress)][-1] == (1, 1)
    assert engine.try_("image", "inspect", NAME).returncode == 0
    assert left() == []
