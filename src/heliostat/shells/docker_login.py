"""Signing in to private registries: in a folder of this process's own, which goes with it.

The passwords are in no argument and in no file of the person's, and reach no node: the engine gets them
with a pull or a push.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from heliostat.core.spec import Spec
from heliostat.engine.secretstore import secret_values
from heliostat.shells.docker_cli import Docker

_NAME = "helio-login-"
_MEMORY = "/dev/shm"  # noqa: S108  (a folder of our own in it; nothing of it reaches a disk)
# What the `docker` program looks for beside its own file.
_BESIDE = ("contexts", "cli-plugins", "buildx", "machine", "certs.d", "ca.pem", "cert.pem", "key.pem")
_HUB = "https://index.docker.io/v1/"


@contextmanager
def signed_in(docker: Docker, spec: Spec) -> Iterator[Docker]:
    """The same engine, with the file's logins as long as the context; they must have values."""
    if not spec.registry:
        yield docker
        return
    auths = logins(spec)
    _sweep()
    with tempfile.TemporaryDirectory(prefix=f"{_NAME}{os.getpid()}-", dir=_private()) as folder:
        theirs = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
        _lay(Path(folder), theirs, auths)
        yield replace(docker, config=folder)


def logins(spec: Spec) -> dict[str, dict[str, str]]:
    """Docker's own form of them; a password comes from where secrets come from."""
    names = {host: login.password.removeprefix("secret:") for host, login in spec.registry.items()}
    values = secret_values(replace(spec, secrets=tuple(dict.fromkeys(names.values()))))
    made: dict[str, dict[str, str]] = {}
    for host, login in spec.registry.items():
        pair = f"{login.user}:{values[names[host]]}"
        key = _HUB if host in ("docker.io", "index.docker.io") else host
        made[key] = {"auth": base64.b64encode(pair.encode()).decode()}
    return made


def _lay(folder: Path, theirs: Path, auths: Mapping[str, Mapping[str, str]]) -> None:
    """The person's own settings, with these logins in the place of any other for the same registries."""
    try:
        settings: dict[str, Any] = json.loads((theirs / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        settings = {}
    settings["auths"] = {**settings.get("auths", {}), **auths}
    # A program that keeps their passwords would be asked first.
    settings["credHelpers"] = {**settings.get("credHelpers", {}), **dict.fromkeys(auths, "")}
    file = folder / "config.json"
    file.touch(0o600)
    file.write_text(json.dumps(settings), "utf-8")
    for name in _BESIDE:
        if (theirs / name).exists():
            (folder / name).symlink_to((theirs / name).absolute())


def _private() -> str | None:
    """Memory, where there is some to write to; else the usual folder for such things."""
    return _MEMORY if os.path.isdir(_MEMORY) and os.access(_MEMORY, os.W_OK) else None


def _sweep() -> None:
    """Remove what a killed helio of this person left."""
    for folder in Path(_private() or tempfile.gettempdir()).glob(f"{_NAME}*-*"):
        pid = folder.name.removeprefix(_NAME).split("-")[0]
        if pid.isdigit() and not _lives(int(pid)) and folder.owner() == Path.home().owner():
            shutil.rmtree(folder, ignore_errors=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
