"""Make directories and start nodes on this machine."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from heliostat.core.errors import Conflict, TimedOut, UsageError
from heliostat.core.owner import Owner
from heliostat.core.resource import HEAD, NODE, Ref, Resource
from heliostat.core.spec import Gpus, Node
from heliostat.grounds.local.find import LABEL_FILE, label_at, listing
from heliostat.grounds.local.gpus import dealt
from heliostat.grounds.local.machine import share
from heliostat.grounds.local.places import home_of, private_dir, short, temp_base, temp_of, trouble
from heliostat.grounds.local.python import interpreter, ray_version
from heliostat.ray import program
from heliostat.ray.label import label_of
from heliostat.ray.node_config import Setup, Site, node_config
from heliostat.ray.node_program.processes import LABEL
from heliostat.ray.paths import node_dir, token_path

PATIENCE = 120.0  # seconds for Ray's start command, the head's answer included
HANDOVER = 10.0  # seconds for a node program to say its first word


def write(path: str, text: str) -> None:
    """Write a private file whole, or not at all."""
    os.replace(_written(path, text), path)


def write_once(path: str, text: str) -> None:
    """The same, unless it is there already: of two that write it, the first has written it."""
    new = _written(path, text)
    try:
        os.link(new, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(new)


def _written(path: str, text: str) -> str:
    new = f"{path}.{secrets.token_hex(4)}"
    with open(new, "x", encoding="utf-8", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
        file.write(text)
    return new


def make_directory(owner: Owner, resource: Resource) -> Ref:
    """The home with its token, or the short directory for sockets."""
    home = resource.key == "home"
    path = home_of(owner) if home else temp_of(owner)
    if not home:
        private_dir(temp_base())
    private_dir(path)
    try:
        tags = {f"tag:{name}": value for name, value in resource.body.get("tags", {}).items()}
        label = label_of(owner, resource, tags)
        before = label_at(Path(path, LABEL_FILE))
        if before is None:
            write_once(f"{path}/{LABEL_FILE}", label.text())
        elif before.live != label.live:  # other tags: all else is as it was
            changed = replace(before, live=label.live, facts=label.facts)
            write(f"{path}/{LABEL_FILE}", changed.text())
        if home:
            for name in ("nodes", "store", "runs", "program", "locks"):
                private_dir(f"{path}/{name}")
            write_once(token_path(path), secrets.token_hex(32))
    except OSError as error:
        raise trouble(error, f"cannot write into {path}") from error
    return found(owner, resource)


def found(owner: Owner, resource: Resource) -> Ref:
    """What was made, as any other shell would list it."""
    for ref in listing(owner):
        if ref.name == resource.name:
            return ref
    raise Conflict(
        f"{resource.name} vanished while it was made", why="something else removed it", fix="run this again"
    )


async def start_node(owner: Owner, resource: Resource, gcs: str) -> Ref:
    """Hand a node over to its program and return as soon as that has taken it."""
    body, home = resource.body, home_of(owner)
    python = interpreter(body["python"])
    version = await ray_version(python, body["ray"])
    if resource.key != HEAD:
        same_ray(resource.key, python, version, listing(owner))
    config = config_of(owner, resource, python, gcs)
    facts = {
        "auth": body["auth"],
        "ray": version,
        "home": home,
        "python": python,
        "program": program_folder(home),
        "group": body["group"],
        "log": f"{config['dir']}/boot.log",
        **({} if resource.key == HEAD else {"joins": gcs}),
    }
    label = label_of(owner, resource, facts).text()
    try:
        private_dir(f"{home}/nodes")
        for folder in (config["dir"], temp_of(owner), config["temp"]):
            private_dir(folder)
        write(f"{config['dir']}/{LABEL_FILE}", label)
        write(f"{config['dir']}/config.json", json.dumps(config))
        Path(config["dir"], "state.json").unlink(missing_ok=True)
        process = spawn(lay_program(home), config, label)
    except OSError as error:
        raise trouble(error, f"cannot start {resource.key} in {config['dir']}") from error
    await handed_over(process, config)
    return found(owner, resource)


async def watch_again(owner: Owner, resource: Resource) -> Ref:
    """A program for a node whose own was killed: it takes up what lives there, and touches nothing."""
    folder = Path(node_dir(home_of(owner), resource.key))
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        label = (folder / LABEL_FILE).read_text(encoding="utf-8")
        process = spawn(lay_program(home_of(owner)), config, label)
    except OSError as error:
        raise trouble(error, f"cannot watch over {resource.key} again") from error
    await handed_over(process, config)
    return found(owner, resource)


def config_of(owner: Owner, resource: Resource, python: str, gcs: str) -> dict[str, Any]:
    """What the node program is told."""
    body, home, head = resource.body, home_of(owner), resource.key == HEAD
    node = dealt(node_of(body["node"]), resource.key, body["turn"])
    node = share(node, resource.key, body["count"])
    site = Site(home=home, temp=f"{temp_of(owner)}/{short(resource.key)}", python=python, gcs=gcs)
    setup = setup_of(body, python)
    # Where nodes set themselves up first, one that is ready waits for the head's setup too.
    patience = PATIENCE + (setup.patience if body["prepares"] else 0)
    return node_config(resource.key, node, site, head=head, auth=body["auth"], patience=patience, setup=setup)


def setup_of(body: Mapping[str, Any], python: str) -> Setup:
    """The commands, in the folder of the file; run again when they, or files that they name, change."""
    commands, folder = tuple(body["setup"]), body["folder"] or os.getcwd()
    text = json.dumps([commands, python, folder, body["inputs"]])
    return Setup(commands=commands, cwd=folder, id=hashlib.sha256(text.encode()).hexdigest()[:12])


def same_ray(name: str, python: str, version: str, refs: Iterable[Ref]) -> None:
    """Ray itself refuses a node with another release than the head's, late and in many lines."""
    for ref in refs:
        head = ref.facts.get("ray") if ref.kind == NODE and ref.key == HEAD else None
        if head and head != version:
            raise UsageError(
                f"{name} would run Ray {version}, but the head runs Ray {head}",
                why=f"{python} has another Ray than {ref.facts.get('python')}; all nodes need the same",
                fix=f"{python} -m pip install 'ray[default]=={head}'",
            )


def node_of(data: Mapping[str, Any]) -> Node:
    """A node from the plain data of a resource's body."""
    gpus = data["gpus"]
    return Node(**{**data, "gpus": Gpus(**gpus) if gpus else None})


def program_folder(home: str) -> str:
    """Where this version of the node program lies."""
    return f"{home}/program/{program.digest()}"


def lay_program(home: str) -> str:
    """Put the node program into the home; what runs keeps its own copy even if this package is upgraded."""
    folder = program_folder(home)
    for name, text in program.files().items():
        path = Path(folder, name)
        if not path.exists():
            private_dir(str(path.parent))
            write_once(str(path), text)
    return folder


def spawn(folder: str, config: Mapping[str, Any], label: str) -> subprocess.Popen[bytes]:
    """Start it detached: a session of its own, its log in its own file."""
    with open(f"{config['dir']}/boot.log", "ab", opener=lambda p, flags: os.open(p, flags, 0o600)) as log:
        return subprocess.Popen(
            program.argv(config["python"], folder, f"{config['dir']}/config.json"),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=config["home"],
            env={**os.environ, LABEL: label},
            start_new_session=True,
        )


async def handed_over(process: subprocess.Popen[bytes], config: Mapping[str, Any]) -> None:
    """Wait until the node program has written its state, which it does once it holds its ports."""
    deadline = time.monotonic() + HANDOVER
    state = Path(config["dir"], "state.json")
    while not wrote(state, process.pid):
        if process.poll() is not None:
            raise Conflict(
                f"the node program of {config['name']} ended with {process.returncode}",
                why=tail(f"{config['dir']}/boot.log"),
                fix=f"the whole log is {config['dir']}/boot.log",
            )
        if time.monotonic() > deadline:
            raise TimedOut(
                f"the node program of {config['name']} did not say a word within {HANDOVER:.0f} s",
                why="this machine may be overloaded",
                fix="run this again",
            )
        await asyncio.sleep(0.005)
    process.returncode = 0  # it is its own from now on: nothing here waits for it


def wrote(state: Path, pid: int) -> bool:
    """Whether this is the state of that program, and not of one before it."""
    try:
        return bool(json.loads(state.read_bytes())["pid"] == pid)
    except FileNotFoundError:
        return False


def tail(path: str, lines: int = 5) -> str:
    try:
        return "\n".join(Path(path).read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


def head_address(refs: tuple[Ref, ...]) -> str:
    """Where the workers of this cluster join."""
    for ref in refs:
        if ref.kind == NODE and ref.key == HEAD and ref.facts.get("gcs"):
            return ref.facts["gcs"]
    return ""
