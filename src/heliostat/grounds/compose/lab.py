"""The program of the notebook's container: it wires JupyterLab to the cluster, and becomes it.

It is sent as text behind that of entry.py, whose functions it uses, with a call of `lab` behind it.
"""

from __future__ import annotations

import base64
import io
import json
import os
import secrets
import shutil
import sys
import tarfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heliostat.grounds.compose.entry import HOME, SHARED, credentials, link, once, write

OWN = "/helio/notebook"  # the notebook's own volume: its token and settings
CLIENT = "/helio/client"  # helio itself, as whoever brought the cluster up has it
NO_NEWS = '{"fetchNews": "false", "checkForUpdates": false}'  # nothing asks the world for news
LAB_TOLD = "/etc/heliostat/notebook.json"


def shim(name: str, text: str) -> None:
    """A program that everybody finds."""
    part = write("/usr/local/bin/" + name, text)
    os.chmod(part, 0o755)  # noqa: S103  (everybody may run it)
    os.replace(part, "/usr/local/bin/" + name)


def wired(told: Mapping[str, Any]) -> dict[str, str]:
    """The variables by which Ray's commands, helio and S3 programs find the cluster."""
    env = {**os.environ, **told["env"]}
    if told["auth"] == "token":
        once(SHARED + "/token", secrets.token_hex(32))
        link("token")
        env |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": HOME + "/token"}
    if told["store"]:
        env |= credentials(told["store"]["endpoint"])
        env["HELIO_STORAGE"] = told["store"]["url"]
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (CLIENT, env.get("PYTHONPATH", ""))))
    once(OWN + "/token", secrets.token_hex(32))
    env["JUPYTER_TOKEN_FILE"] = OWN + "/token"
    for kind in ("settings", "workspaces"):
        env["JUPYTERLAB_" + kind.upper() + "_DIR"] = OWN + "/" + kind
    once(OWN + "/settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings", NO_NEWS)
    return env


def lab(program: Mapping[str, Any]) -> None:
    """`program` is the node program, which lays trees down, and helio's own package."""
    with open(LAB_TOLD, encoding="utf-8") as file:
        told = json.load(file)
    for name in ("store", "runs"):
        os.makedirs(SHARED + "/" + name, mode=0o700, exist_ok=True)
        link(name)
    for name, source in program["files"].items():
        once(HOME + "/program/" + program["digest"] + "/" + name, source)
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(program["client"])), mode="r:xz") as packed:
        packed.extractall(CLIENT)  # noqa: S202  (it is ours)
    shim("helio", f'#!/bin/sh\nexec {sys.executable} -m heliostat "$@"\n')
    if shutil.which("python") is None:
        shim("python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    os.chdir(told["work"])
    os.execve(sys.executable, [sys.executable, *told["argv"]], wired(told))  # noqa: S606  (no shell is wanted)
