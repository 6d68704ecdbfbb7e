"""Run one Ray node: start its daemons, keep them alive, end every one of them.

Copied to nodes, so the standard library is all it may use. It leads a session of its own and is the subreaper
of all that it starts: whatever a daemon or a job leaves behind becomes its child and ends with it. What it is
can be read by its user from its environment (HELIO_LABEL); what it does, from `state.json` in its folder.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from heliostat.ray.node_program.ports import fill, take_ports
from heliostat.ray.node_program.processes import LABEL, family, look, name_of, reap, tell, wait_gone
from heliostat.ray.node_program.watch import SPAWNED, Daemon, Strangers, left_running, whole

# What daemons and jobs get of the environment in which the node was started; the rest is the file's business.
# fmt: off
KEPT = (
    "HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
    "CUDA_HOME", "CUDA_PATH", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy",
    "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "PIP_CERT",
    "PIP_INDEX_URL", "UV_INDEX_URL",
)
# fmt: on
AGAIN = ("gcs_server", "dashboard", "monitor", "log_monitor", "ray_client_server")  # respawned alone
ENDS, WITHIN = 4, 60.0  # so many ends of one daemon within so many seconds: the node is broken
SLOW = 25.0  # seconds after which a failed start was one of Ray's own limits, of 30, and not a mistake
GRACE = 2.0  # seconds from TERM to KILL, for jobs and what they started
SIGN_OFF = 0.5  # the same for Ray's own: they have nothing to lose, and some never go by themselves
SERVICES = ("ray-dashboard", "ray::DashboardA", "ray::RuntimeEnv")  # Ray's own, beside its daemons
KILLED = 10.0  # seconds for killed processes to be gone
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


@dataclass
class Node:
    """The node program's whole memory."""

    config: Mapping[str, Any]
    label: bytes
    ports: dict[str, int] = field(default_factory=dict)
    held: list[socket.socket] = field(default_factory=list)
    daemons: dict[int, Daemon] = field(default_factory=dict)
    strangers: Strangers = field(default_factory=Strangers)  # daemons that another program started
    ends: dict[str, list[float]] = field(default_factory=dict)
    launcher: subprocess.Popen[bytes] | None = None  # or what runs the setup
    deadline: float = 0.0  # of either
    phase: str = "starting"  # or setup before it; then up, broken, stopping, stopped
    why: str = ""
    umask: int = 0o077  # of whoever started this
    began: float = 0.0  # the launcher
    retried: bool = False
    asked: bool = False  # to stop

    def path(self, name: str) -> str:
        return os.path.join(self.config["dir"], name)


def say(node: Node, text: str) -> None:
    """One line for the log of boots, which is this program's stderr."""
    with suppress(OSError):  # a full disk must not end a running node
        sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {node.config['name']}: {text}\n")
        sys.stderr.flush()


def write_state(node: Node) -> None:
    """Tell what this node is doing; readers believe it only while this very process lives."""
    me = look(os.getpid())
    state = {
        "pid": os.getpid(),
        "start": me.start if me else 0,
        "phase": node.phase,
        "why": node.why,
        "ports": node.ports,
        "daemons": {daemon.role: daemon.pid for daemon in node.daemons.values()},
        "time": time.time(),
    }
    try:
        with open(node.path("state.json.new"), "w", encoding="utf-8") as file:
            json.dump(state, file)
        os.replace(node.path("state.json.new"), node.path("state.json"))
    except OSError as error:
        say(node, f"cannot write state.json: {error}")


def environment(node: Node) -> dict[str, str]:
    """What the daemons, and through them the jobs, find in their environment."""
    config = node.config
    env = {key: os.environ[key] for key in os.environ if key in KEPT or key.startswith("LC_")}
    bin_dir = os.path.dirname(config["python"])
    env["PATH"] = os.pathsep.join([bin_dir, env.get("PATH", os.defpath)])
    if os.path.exists(os.path.join(bin_dir, os.pardir, "pyvenv.cfg")):
        env["VIRTUAL_ENV"] = os.path.dirname(bin_dir)  # that of the node, not of whoever started it
    proxied = env.get("no_proxy") or env.get("NO_PROXY")
    near = ["localhost,127.0.0.1", config["ip"], *config.get("peers", ())]
    env["no_proxy"] = env["NO_PROXY"] = ",".join(filter(None, [proxied, *dict.fromkeys(near)]))
    env |= {key: fill(value, node.ports) for key, value in config["env"].items()}
    env[LABEL] = node.label.decode()
    return env


def begin(node: Node) -> None:
    """The setup, if there is one, then the daemons."""
    config = node.config
    if not config.get("setup"):
        boot(node)
        return
    patience = config["setup"]["patience"]
    node.phase, node.why, node.deadline = "setup", "", time.monotonic() + patience
    node.launcher = subprocess.Popen(
        [config["python"], "-I", "-S", sys.path[0], "setup", node.path("config.json")],
        stdin=subprocess.DEVNULL,
        env=environment(node),
        cwd=config["home"],
        umask=node.umask,  # what is installed is not only ours to read
    )
    say(node, f"setup: {' && '.join(config['setup']['commands'])}")
    write_state(node)


def prepared(node: Node, code: int) -> None:
    """The setup has ended."""
    node.launcher = None
    if code == 0:
        boot(node)
        return
    try:
        with open(node.path("setup.json"), encoding="utf-8") as file:
            found = json.load(file)
        say(node, f"all that the setup said is in {found['log']}")
        why = f"`{found['command']}` ended with exit code {found['code']}:\n{found['said']}"
        give_up(node, f"setup failed: {why}".rstrip(":\n"))
    except (OSError, ValueError):
        give_up(node, f"setup ended with {code}:\n{last_lines(node.path('boot.log'))}")


def boot(node: Node) -> None:
    """Hand the start of the daemons to the launcher, which ends when Ray's `start` command does."""
    config = node.config
    for name in (whole(node.path(SPAWNED)), node.path(SPAWNED)):
        with suppress(FileNotFoundError):
            os.unlink(name)
    node.phase, node.why, node.daemons = "starting", "", {}
    node.began = time.monotonic()
    node.deadline = node.began + config["patience"]
    order = {
        "args": [fill(word, node.ports) for word in config["args"]],
        "loopback": config["loopback"],
        "head": config["gcs"],
        "spawned": node.path(SPAWNED),
        "private": config["private"],
        "patience": config["patience"],
    }
    program = sys.path[0]  # the folder that this was started from
    node.launcher = subprocess.Popen(
        [config["python"], "-u", program, "launch", json.dumps(order)],
        stdin=subprocess.DEVNULL,
        env=environment(node),
        cwd=config["home"],
    )
    say(node, f"ray start {' '.join(order['args'])}")
    write_state(node)


def adopt(node: Node) -> None:
    """The launcher has ended well: its daemons are our children now."""
    with open(node.path(SPAWNED), encoding="utf-8") as file:
        daemons = [Daemon(**json.loads(line)) for line in file]
    node.daemons = {daemon.pid: daemon for daemon in daemons}
    node.launcher, node.phase = None, "up"
    say(node, "up: " + ", ".join(f"{daemon.role} {daemon.pid}" for daemon in daemons))
    write_state(node)
    for daemon in daemons:
        if look(daemon.pid) is None:
            lost(node, node.daemons.pop(daemon.pid), "while Ray started")


def take_up(node: Node) -> bool:
    """Watch over what a program that was killed had started: nothing of it is touched."""
    daemons, before = left_running(node.config["dir"], node.label)
    if not daemons or not node.strangers.take(daemons):
        return False
    node.daemons = {daemon.pid: daemon for daemon in daemons}
    node.ports, node.phase = before["ports"], "up"
    say(node, "watches over what another program started: " + ", ".join(d.role for d in daemons))
    write_state(node)
    return True


def ended(node: Node, pid: int, status: int) -> None:
    """A child is gone: the launcher, a daemon, or something that a job left behind."""
    code = os.waitstatus_to_exitcode(status)
    if node.launcher and pid == node.launcher.pid:
        node.launcher.returncode = code
        if node.phase == "setup":
            prepared(node, code)
        elif code == 0:
            adopt(node)
        else:
            node.launcher = None
            if time.monotonic() - node.began > SLOW and not node.retried:
                say(node, "Ray gave up waiting for itself, which happens on a busy machine: once more")
                node.retried = True
                clear(node)
                boot(node)
                return
            give_up(node, f"Ray's start command ended with {code}:\n{last_lines(node.path('boot.log'))}")
    elif pid in node.daemons:
        lost(node, node.daemons.pop(pid), f"signal {-code}" if code < 0 else f"exit code {code}")


def lost(node: Node, daemon: Daemon, how: str) -> None:
    """Bring a daemon back, alone where Ray can bear it, else with the whole node."""
    say(node, f"{daemon.role} {daemon.pid} ended ({how})")
    now = time.monotonic()
    ends = [at for at in node.ends.get(daemon.role, []) if now - at < WITHIN] + [now]
    node.ends[daemon.role] = ends
    if len(ends) >= ENDS:
        give_up(node, f"{daemon.role} ended {len(ends)} times within {WITHIN:.0f} s, the last time by {how}")
    elif daemon.role in AGAIN and (daemon.role != "gcs_server" or node.config["durable"]):
        again(node, daemon)
    else:
        clear(node)
        boot(node)


def again(node: Node, daemon: Daemon) -> None:
    """Start one daemon again with its own arguments, on its own port."""
    if daemon.role == "dashboard":  # its modules outlive it for a while, and hold its sockets
        below = family(os.getpid(), node.label)
        tell([one for one in below if name_of(one.pid).startswith("ray-dashboard")], signal.SIGKILL)
    started = subprocess.Popen(
        daemon.argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=daemon.env,
        cwd=node.config["home"],
    )
    started.returncode = 0  # collected in tend(), never by this object
    node.daemons[started.pid] = Daemon(daemon.role, daemon.argv, daemon.env, started.pid)
    say(node, f"{daemon.role} started again as {started.pid}")
    write_state(node)


def give_up(node: Node, why: str) -> None:
    node.why, node.phase = why, "broken"
    say(node, f"broken: {why}")


def clear(node: Node) -> None:
    """End everything below this process, politely first, and see it gone."""
    below = family(os.getpid(), node.label)
    work = [one for one in below if one.pid not in node.daemons and not name_of(one.pid).startswith(SERVICES)]
    node.daemons = {}
    node.strangers.drop()
    if node.launcher:
        node.launcher.returncode = 0
        node.launcher = None
    tell(below, signal.SIGTERM)
    wait_gone(below, SIGN_OFF)
    wait_gone(work, GRACE - SIGN_OFF)
    deadline = time.monotonic() + KILLED
    while (left := family(os.getpid(), node.label)) and time.monotonic() < deadline:
        tell(left, signal.SIGKILL)
        wait_gone(left, 1.0)
        reap()
    reap()


def arm() -> socket.socket:
    """Turn signals into something to wait for; the handlers themselves do nothing but exist."""
    read, write = socket.socketpair()
    read.setblocking(False)
    write.setblocking(False)
    signal.set_wakeup_fd(os.dup(write.fileno()), warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    return read


def wait(node: Node, signals: socket.socket) -> None:
    """Sleep until a daemon ends, somebody asks to stop, or the launcher's time is over."""
    limit = max(0.0, node.deadline - time.monotonic()) if node.launcher else None
    ready = select.select([signals.fileno(), *node.strangers.handles], [], [], limit)[0]
    if signals.fileno() in ready:
        node.asked = node.asked or signal.SIGTERM in signals.recv(4096)
    for handle in ready:
        if handle in node.strangers.handles and (pid := node.strangers.ended(handle)) in node.daemons:
            lost(node, node.daemons.pop(pid), "nobody saw how")
    if ready:
        return
    if node.launcher and node.phase == "setup":
        give_up(node, f"setup did not end within {node.config['setup']['patience']:.0f} s")
    elif node.launcher:
        waited = node.config["patience"]
        give_up(node, f"Ray did not start within {waited:.0f} s:\n{last_lines(node.path('boot.log'))}")


def tend(node: Node) -> None:
    """The whole life of the node: until it is told to stop, or breaks."""
    signals = arm()
    if node.phase != "up":
        begin(node)
    while not node.asked and node.phase != "broken":
        wait(node, signals)
        for pid, status in [] if node.asked else reap():
            if node.phase != "broken":
                ended(node, pid, status)
    if node.asked:
        node.phase, node.why = "stopping", "told to stop"
    write_state(node)
    clear(node)
    if node.asked:
        node.phase = "stopped"
        write_state(node)
    say(node, f"{node.phase}; nothing of it runs any more")


def last_lines(path: str, count: int = 12) -> str:
    """The end of the log of boots."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 16_384))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(line for line in lines[-count:] if line.strip())


def port_file(config: Mapping[str, Any]) -> str:
    """Outside of the node's own folder: a head that is made again must be where its workers look for it."""
    folder = os.path.join(config["home"], "ports")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return os.path.join(folder, f"{config['name']}.json")


def main(arguments: Sequence[str]) -> int:
    with open(arguments[0], encoding="utf-8") as file:
        config = json.load(file)
    if os.getpid() != os.getsid(0):
        os.setsid()
    umask = os.umask(0o077)
    ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, 1, 0, 0, 0)
    node = Node(config, os.environ.get(LABEL, "").encode(), umask=umask)
    if take_up(node):
        tend(node)
        return 1 if node.phase == "broken" else 0
    try:
        node.held, node.ports = take_ports(config["ip"], config["ports"], port_file(config))
    except OSError as error:
        give_up(node, f"a port of this node cannot be had: {error}")
        write_state(node)
        return 1
    write_state(node)
    tend(node)
    return 1 if node.phase == "broken" else 0
