"""JupyterLab beside the nodes: in their network, with their token and their disk, without any GPU. Pure."""

from __future__ import annotations

import base64
import io
import json
import os
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

from heliostat.core.resource import HEAD
from heliostat.core.spec import Notebook, Spec
from heliostat.grounds.compose import entry
from heliostat.grounds.compose.beside import Beside
from heliostat.grounds.compose.service import PORTS, interpreter
from heliostat.grounds.compose.services import KEYS, store
from heliostat.grounds.compose.texts import text_of
from heliostat.grounds.compose.want import HOME, image_of
from heliostat.ray import program
from heliostat.ray.paths import token_path
from heliostat.shells.docker_images import Recipe, from_dockerfile, named, steps

NOTEBOOK, PORT = "notebook", 8888
LAB = "lab"  # the program of its container
OWN = "/helio/notebook"
WORK = "/work"
INSIDE = "/etc/heliostat/inside.json"
TOKEN = f"{OWN}/token"
# What helio itself imports: its own code is sent along, so that both ends are of one release.
NEEDS = "'jupyterlab>=4.2,<5' click h11 pathspec PyYAML rich"
_PIP = (
    f"PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install --no-cache-dir {NEEDS}"
)
# The version is told without a token, and only once it serves.
_HEALTHY = f"""python3 -I -S -c '
import socket
c = socket.create_connection(("127.0.0.1", {PORT}), 3)
c.sendall(b"GET /api HTTP/1.0\\r\\n\\r\\n")
assert b" 200 " in c.recv(64)'"""
_NOT_OURS = ("heliostat/testing/", "heliostat/grounds/compose/", "heliostat/grounds/local/",
             "heliostat/grounds/ssh/")  # fmt: skip


def notebook(spec: Spec, asked: Notebook) -> Beside:
    """The service, its image built where the file does not name one that has JupyterLab."""
    recipe = recipe_of(spec, asked)
    files = {
        "/etc/heliostat/notebook.json": json.dumps(wiring(spec), sort_keys=True),
        INSIDE: json.dumps(inside(spec), sort_keys=True),
    }
    return Beside(
        key=NOTEBOOK,
        image=recipe.name if recipe else asked.image or "",
        port=PORT,
        argv=("python3", "-I", "-S", "/etc/heliostat/program.py"),
        volume=OWN,
        healthy=_HEALTHY,
        text="JupyterLab, wired to the cluster",
        files=files,
        # An image made for NVIDIA gets every GPU of the machine where nobody says otherwise.
        env={"NVIDIA_VISIBLE_DEVICES": "void"},
        user="0:0",  # the cluster's token may be read by its account alone
        binds={folder(spec, asked): WORK},
        shares={HOME: entry.SHARED, **({KEYS: entry.KEYS} if store(spec) else {})},
        recipe=recipe,
        program=LAB,
    )


def recipe_of(spec: Spec, asked: Notebook) -> Recipe | None:
    """What its image is built from: the file's Dockerfile for it, or the nodes' own image with JupyterLab."""
    if asked.dockerfile:
        return from_dockerfile(spec, asked.dockerfile)
    if asked.image:
        return None
    text = steps(image_of(spec, spec.head), (*spec.setup, _PIP))
    return Recipe(text, "", named(spec, text))


def folder(spec: Spec, asked: Notebook) -> str:
    """The work folder, on the engine's machine."""
    return os.path.normpath(os.path.join(spec.folder or ".", os.path.expanduser(asked.work or spec.work)))


def wiring(spec: Spec) -> dict[str, Any]:
    """What the program of its container is told."""
    env = {
        **spec.env,
        "HELIO_CLUSTER": spec.cluster,
        "HELIO_INSIDE": INSIDE,
        "HELIO_GROUNDS": ",".join(
            f"{name}=heliostat.grounds.inside.ground:InsideGround" for name in ("compose", "local")
        ),
        # A driver in a notebook is a client of the head; jobs are sent to its Jobs API.
        "RAY_ADDRESS": f"ray://{HEAD}:{PORTS['client']}",
        "RAY_API_SERVER_ADDRESS": f"http://{HEAD}:{PORTS['dashboard']}",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    if spec.auth != "token":
        env["RAY_AUTH_MODE"] = "disabled"
    argv = [
        "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=0.0.0.0", f"--port={PORT}",
        "--ServerApp.port_retries=0", f"--ServerApp.root_dir={WORK}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
    ]  # fmt: skip
    return {"env": env, "auth": spec.auth, "store": store(spec), "work": WORK, "argv": argv}


def inside(spec: Spec) -> dict[str, Any]:
    """What helio itself is told there."""
    return {
        "cluster": spec.cluster,
        "home": entry.HOME,
        "python": interpreter(spec.head),
        "gcs": PORTS["gcs"],
        "dashboard": PORTS["dashboard"],
        "token_path": token_path(entry.HOME) if spec.auth == "token" else "",
        "storage": store(spec).get("url", ""),
    }


def lab_text() -> str:
    """The program of its container, whole."""
    bundle = {"digest": program.digest(), "files": program.files(), "client": client()}
    return f"{text_of('entry')}\n\n{_behind(text_of('lab'))}\n\nlab({json.dumps(bundle)})\n"


def _behind(text: str) -> str:
    """One program behind another: what must stand first stands there already."""
    return text.replace("from __future__ import annotations\n", "")


@cache
def client() -> str:
    """Helio's own package, without what cannot be used inside a cluster."""
    root = Path(__file__).parents[2]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        for path in sorted(root.rglob("*.py")):
            name = path.relative_to(root.parent).as_posix()
            if not name.startswith(_NOT_OURS):
                data = path.read_bytes()
                info = tarfile.TarInfo(name)
                info.size, info.mode = len(data), 0o644
                archive.addfile(info, io.BytesIO(data))
    return base64.b64encode(packed.getvalue()).decode()
