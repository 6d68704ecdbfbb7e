"""What is asked of a machine that carries nodes, done there: list, make, start, stop, remove.

It is sent to the machine, obeys for as long as somebody asks, and leaves nothing of itself behind. Standard
library only, and any Python from 3.8 on: it runs with what the machine has. Orders come as lines of JSON and
answers go as lines of JSON.

A cluster's home on a machine is `BASE/<owner id>/<name of the machine>`: home directories may be shared.
"""

from __future__ import annotations

import fcntl
import glob
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from heliostat.ray.node_program.belongings import (
    Data,
    Refusal,
    address,
    base,
    filled,
    home_of,
    private_dir,
    read,
    remove_tree,
    tail,
    temp_base,
    temp_of,
    write,
)
from heliostat.ray.node_program.copies import do_copy_begin, do_copy_drop, do_copy_finish, listed
from heliostat.ray.node_program.processes import (
    LABEL,
    Process,
    family,
    label_of,
    look,
    reap,
    tell,
    wait_gone,
)

if TYPE_CHECKING:
    from typing import BinaryIO, TextIO

LABEL_FILE = "owner.json"
HANDOVER = 15.0  # seconds for a node program to say its first word
PATIENCE = 8.0  # for a node program to end what it started; then its processes are killed from here
KILLED = 10.0  # for killed processes to be gone


# What there is


def parse(raw: bytes | None) -> Data:
    try:
        data = json.loads(raw or b"")
    except ValueError:
        return {}
    return data if isinstance(data, dict) and data.get("kind") == "node" else {}


def is_supervisor(pid: int) -> bool:
    """Whether this process runs the node program itself, and has not only inherited its label.

    It leads a session; what it has just forked looks like it until it becomes another program.
    """
    try:
        if os.getsid(pid) != pid:
            return False
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return False
    return (
        len(words) > 4
        and words[1:3] == [b"-I", b"-S"]
        and b"/program/" in words[3]
        and words[4].endswith(b"/config.json")
    )


def owned(label: Data, order: Data) -> bool:
    """Whether it belongs to whom is asked for, and was made under this machine's name."""
    facts = label.get("facts") or {}
    return (
        label.get("principal") == order["principal"]
        and order.get("cluster") in (None, label.get("cluster"))
        and facts.get("host", order["host"]) == order["host"]
    )


def living(order: Data) -> dict[tuple[str, str], Data]:
    """Every node with a living process, by (cluster, key)."""
    found: dict[tuple[str, str], Data] = {}
    uid, me = os.getuid(), os.getpid()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == me:
            continue
        pid = int(name)
        with suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid != uid:
                continue
            raw = label_of(pid)
            label = parse(raw)
            process = look(pid)
            if not label or process is None or not owned(label, order):
                continue
            one = found.setdefault(
                (label["cluster"], label["key"]), {"label": label, "raws": set(), "all": []}
            )
            one["raws"].add(raw)
            one["all"].append(process)
            if is_supervisor(pid):
                one["supervisor"], one["label"] = process, label
    return found


def node_folder(home: str, key: str) -> str:
    return os.path.join(home, "nodes", key)


def node(one: Data) -> Data:
    """One node as it is now: a label, a state, and why."""
    label = one["label"]
    state = read(os.path.join(node_folder(label["facts"]["home"], label["key"]), "state.json"))
    process = one.get("supervisor")
    told: Data = {"label": label, "ports": {}, "why": "", "phase": "broken"}
    if process is None:
        told["why"] = "its node program is gone, and left processes of Ray behind"
    elif [state.get("pid"), state.get("start")] != list(process.identity):
        told["phase"] = "starting"
    else:
        told.update(phase=state.get("phase", ""), why=state.get("why", ""), ports=state.get("ports", {}))
    told["ip"] = read(os.path.join(node_folder(label["facts"]["home"], label["key"]), "config.json")).get(
        "ip", ""
    )
    return told


def dead(home: str, alive: dict[tuple[str, str], Data]) -> list[Data]:
    """Nodes whose folder is there and whose processes are not."""
    found = []
    for folder in sorted(glob.glob(os.path.join(glob.escape(home), "nodes", "*"))):
        made = read(os.path.join(folder, LABEL_FILE))
        if made.get("kind") != "node" or (made.get("cluster"), made.get("key")) in alive:
            continue
        state = read(os.path.join(folder, "state.json"))
        why = state.get("why") if state.get("phase") == "broken" else ""
        why = why or "none of its processes is there any more (killed, or the machine was restarted)"
        found.append({"label": made, "ports": {}, "why": why, "phase": "broken"})
    return found


def do_list(order: Data) -> Data:
    """Everything of this owner on this machine, and which machines its clusters know of."""
    alive = living(order)
    answer: Data = {
        "python": sys.executable,
        "nodes": [node(one) for one in alive.values()],
        "directories": [],
        "files": [],
        "hosts": [],
    }
    for home in homes(order):
        label = read(os.path.join(home, LABEL_FILE))
        if label and not owned(label, order):
            continue
        made = os.lstat(home).st_mtime
        answer["directories"].append(
            {"path": home, "label": label, "made": made, "id": home.split(os.sep)[-2]}
        )
        answer["hosts"] += read(os.path.join(home, "hosts.json")).get("hosts", [])
        answer["files"] += [one for one in listed(home) if owned(one["label"], order)]
        answer["nodes"] += dead(home, alive)
    return answer


def homes(order: Data) -> list[str]:
    if order.get("id"):
        wanted = [home_of(order)]
    else:
        wanted = sorted(glob.glob(os.path.join(base(), "*", glob.escape(order["host"]))))
    return [path for path in wanted if os.path.isdir(path) and os.lstat(path).st_uid == os.getuid()]


# What is changed


def do_make(order: Data) -> Data:
    """The home with its token; of two that make it, the first has made it."""
    home = home_of(order)
    for path in (home, temp_base(), temp_of(home)):
        private_dir(path)
    for name in ("nodes", "store", "runs", "program", "locks"):
        private_dir(os.path.join(home, name))
    path = os.path.join(home, LABEL_FILE)
    write(path, order["label"], once=True)
    before, now = read(path), json.loads(order["label"])
    if before["live"] != now["live"]:  # other tags, say: all else is as it was
        write(path, json.dumps(dict(before, live=now["live"], facts=now["facts"])))
    if order["token"]:
        write(os.path.join(home, "token"), order["token"], once=True)
    known = read(os.path.join(home, "hosts.json")).get("hosts", [])
    every = sorted({*known, *order["hosts"]})
    if every != known:
        write(os.path.join(home, "hosts.json"), json.dumps({"hosts": every}))
    return {}


def do_converge(order: Data) -> Data:
    """Keep the node that is right, end and start again the one that is not, start the one that is missing."""
    home, key = home_of(order), order["key"]
    if not os.path.isdir(os.path.join(home, "locks")):
        raise Refusal("conflict", f"{home} is gone", "something removed it meanwhile", "run this again")
    lock = os.open(os.path.join(home, "locks", key), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = next((one for one in do_list(order)["nodes"] if one["label"]["key"] == key), None)
        sound = found is not None and found["phase"] != "broken"
        label = dict(order["label"])
        names = ("live", "restart", "replace")
        if found and sound and not order["again"] and all(found["label"][n] == label[n] for n in names):
            return {}
        if found:
            stop(order, key)
        if found and sound:
            label["run"] = found["label"]["run"]  # a restarted node is still whose it was
        start(order, label, home)
        return {}
    finally:
        os.close(lock)


def start(order: Data, label: Data, home: str) -> None:
    """Hand the node over to its program and wait until that has taken it."""
    temp = temp_of(home)
    config = filled(order["config"], {"home": home, "temp": temp, "ip": address()})
    label["facts"] = filled(label["facts"], {"home": home, "temp": temp})
    text = json.dumps(label, separators=(",", ":"), sort_keys=True)
    folder = os.path.join(home, "program", order["program"]["digest"])
    for name, source in order["program"]["files"].items():
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            private_dir(os.path.dirname(path))
            write(path, source, once=True)
    for path in (config["dir"], temp_base(), temp, os.path.join(temp, "t")):
        private_dir(path)
    write(os.path.join(config["dir"], LABEL_FILE), text)
    write(os.path.join(config["dir"], "config.json"), json.dumps(config))
    state = os.path.join(config["dir"], "state.json")
    with suppress(FileNotFoundError):
        os.unlink(state)
    log = os.path.join(config["dir"], "boot.log")
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
        process = subprocess.Popen(
            [config["python"], "-I", "-S", folder, os.path.join(config["dir"], "config.json")],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd=home,
            env=dict(os.environ, **{LABEL: text}),
            start_new_session=True,
        )
    deadline = time.monotonic() + HANDOVER
    while not os.path.exists(state):
        if process.poll() is not None:
            write(os.path.join(config["dir"], "probe"), " " * 65536)  # says so when the disk is full
            what = "the node program of {} ended with {}".format(config["name"], process.returncode)
            raise Refusal("unavailable", what, tail(log), f"the whole log is {log} there")
        if time.monotonic() > deadline:
            what = f"the node program of {config['name']} did not say a word within {HANDOVER:.0f} s"
            raise Refusal("timeout", what, tail(log) or "the machine may be overloaded", "run this again")
        time.sleep(0.005)
    process.returncode = 0  # it is its own from now on: nothing here waits for it


def do_stop(order: Data) -> Data:
    stop(order, order["key"])
    return {}


def stop(order: Data, key: str) -> None:
    """Ask the node program to end, finish what it leaves, and remove the node's folders."""
    home = home_of(order)
    which = (order["cluster"], key)
    seen = living(order).get(which)
    if seen and seen.get("supervisor"):
        tell([seen["supervisor"]], signal.SIGTERM)
        wait_gone([seen["supervisor"]], PATIENCE)
    deadline = time.monotonic() + KILLED
    left = remains(order, which)
    while left:
        if time.monotonic() > deadline:
            numbers = ", ".join(str(one.pid) for one in left)
            why = f"they were killed and are still there: {numbers}"
            what = f"{len(left)} processes of {key} do not end"
            raise Refusal("left", what, why, "they hang in the kernel")
        tell(left, signal.SIGKILL)
        wait_gone(left, 1.0)
        left = remains(order, which)
    remove_tree(node_folder(home, key))
    remove_tree(temp_of(home))


def remains(order: Data, which: tuple[str, str]) -> list[Process]:
    """Every living process with this node's label, and what descends from them without another."""
    seen = living(order).get(which)
    if seen is None:
        return []
    found = {process.pid: process for process in seen["all"]}
    for raw in seen["raws"]:
        found.update({process.pid: process for process in family(None, raw)})
    found.pop(os.getpid(), None)
    return list(found.values())


def do_remove(order: Data) -> Data:
    """The home and the short directory, and what held only them."""
    home = home_of(order)
    remove_tree(temp_of(home))
    remove_tree(home)
    for path in (temp_base(), os.path.dirname(home), base(), os.path.dirname(base())):
        with suppress(OSError):
            os.rmdir(path)
    return {}


def refused(error: OSError, order: Data) -> Data:
    place = f" ({error.filename})" if error.filename else ""
    return {"errno": error.errno or 0, "why": f"{error.strerror or error}{place}", "do": order["do"]}


def obey(orders: list[Data]) -> list[Data]:
    """Each in turn; what one of them comes to says nothing about the next."""
    deeds = {
        "list": do_list,
        "make": do_make,
        "copy-begin": do_copy_begin,
        "copy-finish": do_copy_finish,
        "copy-drop": do_copy_drop,
        "converge": do_converge,
        "stop": do_stop,
        "remove": do_remove,
    }
    answers: list[Data] = []
    for order in orders:
        try:
            answers.append(dict(deeds[order["do"]](order), ok=True))
        except Refusal as refusal:
            answers.append({"ok": False, "refusal": refusal.data})
        except OSError as error:
            answers.append({"ok": False, "system": refused(error, order)})
    return answers


def serve(questions: BinaryIO, answers: TextIO) -> None:
    """Until nobody asks any more."""
    for line in questions:
        json.dump(obey(json.loads(line)), answers)
        answers.write("\n")
        answers.flush()
        reap()  # a node program that was started here and has ended
