"""The first program of a node's container: it lays the node program down, and runs it.

It runs with the image's own Python, standard library only, and is sent as text with a call of `main` behind
it. What all nodes of a cluster share lies in one volume; the rest is the container's own and goes with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

HOME = "/helio"
SHARED = HOME + "/shared"  # the volume
KEYS = HOME + "/keys"  # another volume, where the cluster has a store of its own
CONFIG = "/etc/heliostat/node.json"
NOT_OURS = ("HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_")


def write(path: str, text: str) -> str:
    """A private file beside its place; its name."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    part = path + "." + secrets.token_hex(4)
    with open(part, "x", encoding="utf-8", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
        file.write(text)
    return part


def once(path: str, text: str) -> None:
    """A private file, whole; of two that write it, the first has written it."""
    if not os.path.exists(path):
        part = write(path, text)
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
        os.unlink(part)


def link(name: str) -> None:
    """What the nodes share, where a node looks for it."""
    if not os.path.lexists(HOME + "/" + name):
        os.symlink(SHARED + "/" + name, HOME + "/" + name)


def credentials(endpoint: str) -> dict[str, str]:
    """Of the cluster's own store, made by whichever node is first; where S3 programs look for them."""
    made = {"accessKey": secrets.token_hex(10), "secretKey": secrets.token_hex(20)}
    jobs = {"name": "jobs", "credentials": [made], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
    once(KEYS + "/s3.json", json.dumps({"identities": [jobs]}))
    with open(KEYS + "/s3.json", encoding="utf-8") as file:
        known = json.load(file)["identities"][0]["credentials"][0]
    return {
        "AWS_ACCESS_KEY_ID": known["accessKey"],
        "AWS_SECRET_ACCESS_KEY": known["secretKey"],
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


def watch(argv: list[str], log: str) -> int:
    """Run it to its end; what it says goes to the container's log and to a file, where others look for it."""
    read, written = os.pipe()
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=written, stderr=written)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child.pid, signal.SIGTERM))
    os.close(written)
    copying = threading.Thread(target=copy, args=(read, log), daemon=True)
    copying.start()
    while True:
        pid, status = os.wait()  # also whatever a `docker exec` has left behind
        if pid == child.pid:
            copying.join(1.0)
            return os.waitstatus_to_exitcode(status)


def copy(source: int, log: str) -> None:
    with open(log, "ab", buffering=0) as file:
        while data := os.read(source, 65536):
            os.write(1, data)
            file.write(data)


def main(program: Mapping[str, Any]) -> None:
    """`program` is what to lay down: its digest, and its files by relative path."""
    with open(CONFIG, encoding="utf-8") as file:
        text = file.read()
    told = json.loads(text)
    share = max(1, (os.cpu_count() or 1) // told["nodes"])
    known = {
        "ip": socket.gethostbyname(socket.gethostname()),
        "python": sys.executable,
        "cpus": str(share),
        "container": secrets.token_hex(4),  # what is set up in this one is set up in no other
    }
    for word, value in known.items():
        text = text.replace("{helio-" + word + "}", value)
    config = json.loads(text)["node"]
    # An image's own variables are meant for what runs in it, and the file's go before them.
    config["env"] = {**{k: v for k, v in os.environ.items() if k not in NOT_OURS}, **config["env"]}
    if told["store"]:
        config["env"] = {**credentials(told["store"]["endpoint"]), **config["env"]}
    for name in ("store", "runs", "gcs"):
        os.makedirs(SHARED + "/" + name, mode=0o700, exist_ok=True)
        link(name)
    if config["env"].get("RAY_AUTH_MODE") == "token":
        once(SHARED + "/token", secrets.token_hex(32))
        link("token")
    folder = HOME + "/program/" + program["digest"]
    for name, source in program["files"].items():
        once(folder + "/" + name, source)
    if shutil.which("python") is None:  # some images have no such name, and jobs are typed with it
        part = write("/usr/local/bin/python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        os.chmod(part, 0o755)  # noqa: S103  (everybody may run it)
        os.replace(part, "/usr/local/bin/python")
    os.makedirs(config["temp"], mode=0o700, exist_ok=True)
    at = config["dir"] + "/config.json"
    os.replace(write(at, json.dumps(config)), at)
    sys.exit(watch([sys.executable, "-I", "-S", folder, at], config["dir"] + "/boot.log"))
