"""Four hosts with sshd: all alive, `up` with nothing to do, exec, push, down; beside Ray's own launcher.

The limit is what these hosts allow: `ray start` given on all four at once over ssh, with the head's port
fixed beforehand. The hosts share the cores of this machine: ratios count, not seconds.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bench.row import Cost, Row, Sample, clock, program
from tests.rig import ray_python
from tests.rig.host import Host
from tests.rig.rig import Rig, wait_until

COUNT = 4
NEVER = 40.0  # seconds after which a worker that did not come will not
SIZES = ("--num-cpus=1", "--memory=300000000", "--object-store-memory=100000000")
LIMIT = f"`ray start` on all {COUNT} at once over ssh, until Ray lists all"
ALIVE = (
    "import json, sys, urllib.request as u; "
    "h = {'Authorization': 'Bearer ' + sys.argv[1]}; "
    "q = u.Request('http://127.0.0.1:8265/api/v0/nodes?limit=99', headers=h); "
    "rows = json.load(u.urlopen(q, timeout=5))['data']['result']['result']; "
    "print(sum(r['state'] == 'ALIVE' for r in rows))"
)


def rows(runs: int) -> Iterator[Row]:
    if lacking := ray_python.missing():
        raise SystemExit(f"the bench of hosts needs {lacking}")
    if shutil.which("rsync") is None:
        raise SystemExit("Ray's own launcher needs rsync")
    taken: dict[str, list[Cost]] = defaultdict(list)
    with Rig() as rig:
        hosts = rig.new(COUNT)
        for _ in range(runs):
            _ours(rig, hosts, taken)
            _limit(rig, hosts, taken)
            _theirs(rig, hosts, taken)
            print({name: round(costs[-1].wall, 2) for name, costs in taken.items()}, file=sys.stderr)
        second = _second(rig, hosts)
    seen = {name: Sample(tuple(costs)) for name, costs in taken.items()}
    pairs = "; ".join(
        f"{o.wall:.1f}:{p.wall:.1f}:{q.wall:.1f}"
        for o, p, q in zip(taken["up"], taken["limit"], taken["ray up"], strict=True)
    )
    yield Row(
        name=f"up, {COUNT} hosts over ssh, to verified",
        ours=seen["up"].wall,
        theirs=seen["ray up"].wall,
        peer="ray up, autoscaler v1, until all are alive",
        limit=seen["limit"].wall,
        limit_name=LIMIT,
        note=f"medians of {runs}, ours:limit:ray up {pairs}; {second}",
    )
    for name, theirs, peer, note in (
        ("no-op up", "ray up again", "ray up again, until all are alive", ""),
        ("exec on the head", "ray exec", "ray exec", "`exit 7` ends with 7 here, with 1 there"),
        ("push of 1 file to all", "ray rsync-up of 1", "ray rsync-up to the head alone", ""),
        ("push of 1,000 files to all", "ray rsync-up", "ray rsync-up to the head alone", ""),
        ("down", "ray down", "ray down, which visits the head alone", "with proof on every host"),
    ):
        ours, peers = seen[name].wall, seen[theirs].wall
        yield Row(name=f"{name}, {COUNT} hosts", ours=ours, theirs=peers, peer=peer, note=note)


class Lab:
    """A folder of ours about the rig's hosts."""

    def __init__(self, rig: Rig, hosts: list[Host]) -> None:
        self.rig, self.hosts = rig, hosts
        self.folder = Path(tempfile.mkdtemp(prefix="hs", dir="/tmp"))
        self.tree = self.folder / "tree"
        self.tree.mkdir()
        for number in range(1000):
            (self.tree / f"{number}.txt").write_text(f"{number}\n" * 8)

    @property
    def env(self) -> dict[str, str]:
        own = {f"HELIO_{what.upper()}": str(self.folder / what) for what in ("state", "cache", "data")}
        return {**os.environ, **own, "HELIO_SSH_CONFIG": str(self.rig.config), "HOME": str(self.folder)}

    def run(self, *words: str, code: int | None = 0) -> str:
        done = subprocess.run(
            words,
            env=self.env,
            cwd=self.folder,
            stdin=-3,
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
        if code is not None and done.returncode != code:
            raise AssertionError(
                f"{' '.join(words)} ended with {done.returncode}: {(done.stdout + done.stderr)[-800:]}"
            )
        return done.stdout

    def timed(self, *words: str, code: int | None = 0) -> Cost:
        return clock(lambda: self.run(*words, code=code))

    def ssh(self, host: Host, command: str) -> subprocess.Popen[bytes]:
        known = f"UserKnownHostsFile={self.folder}/known"
        argv = ["ssh", "-F", str(self.rig.config), "-o", "StrictHostKeyChecking=accept-new", "-o", known]
        return subprocess.Popen([*argv, host.name, command], env=self.env, stdin=-3, stdout=-3, stderr=-3)

    def alive(self, token: str) -> int:
        """How many nodes Ray lists as alive."""
        done = subprocess.run(
            self.hosts[0].enter(ray_python.PYTHON, "-c", ALIVE, token),
            capture_output=True,
            text=True,
            check=False,
        )
        return int(done.stdout.strip() or 0)

    def clear(self) -> None:
        for host in self.hosts:
            host.sh("pkill -KILL -u lab || true; rm -rf /tmp/* /dev/shm/* ~lab/.local")
            wait_until(lambda host=host: not host.processes(), f"nothing runs on {host.name}")  # type: ignore[misc]
        shutil.rmtree(self.folder, ignore_errors=True)


def _ours(rig: Rig, hosts: list[Host], taken: dict[str, list[Cost]]) -> None:
    lab = Lab(rig, hosts)
    names = ", ".join(host.name for host in hosts)
    sizes = "{ cpus: 1, memory: 300 MB, shm: 100 MB }"
    (lab.folder / "helio.yaml").write_text(
        f"cluster: b{secrets.token_hex(3)}\nwhere: ssh\npython: {ray_python.PYTHON}\n"
        f"ssh: {{ hosts: [{names}] }}\nhead: {sizes}\nworkers: {sizes}\n"
    )
    helio = program("helio")
    try:
        taken["up"].append(lab.timed(helio, "up", "--yes"))
        taken["no-op up"].append(lab.timed(helio, "up"))
        taken["exec on the head"].append(lab.timed(helio, "exec", "--", "echo", "hi"))
        lab.run(helio, "exec", "--", "exit 7", code=7)
        one = lab.timed(helio, "push", str(lab.tree / "1.txt"), "/tmp/one.txt", "--all")
        taken["push of 1 file to all"].append(one)
        taken["push of 1,000 files to all"].append(
            lab.timed(helio, "push", str(lab.tree), "/tmp/tree", "--all")
        )
        for host in hosts:
            assert host.sh("ls /tmp/tree /tmp/one.txt | wc -l").strip() == "1003", "all is everywhere"
        taken["down"].append(lab.timed(helio, "down", "--yes"))
        for host in hosts:
            wait_until(lambda host=host: not host.processes(), f"down was true of {host.name}")  # type: ignore[misc]
            assert host.listens() == [], "no port is open"
    finally:
        lab.clear()


def _limit(rig: Rig, hosts: list[Host], taken: dict[str, list[Cost]]) -> None:
    lab, token = Lab(rig, hosts), secrets.token_hex(16)
    ray = f"RAY_AUTH_MODE=token RAY_AUTH_TOKEN={token} {ray_python.PYTHON} -m ray.scripts.scripts start"
    rest = " ".join(SIZES)

    def start() -> None:
        head = f"{ray} --head --port=6379 --node-ip-address={hosts[0].address} {rest}"
        join = f"{ray} --address={hosts[0].address}:6379 {rest}"
        started = [lab.ssh(host, join if number else head) for number, host in enumerate(hosts)]
        wait_until(lambda: lab.alive(token) == COUNT, "all are alive", 120)
        del started[:]

    try:
        taken["limit"].append(clock(start))
    finally:
        lab.clear()


def _ray_yaml(rig: Rig, hosts: list[Host], lab: Lab, version: int) -> None:
    """The file for `ray up`, with that version of its autoscaler."""
    there, small = f"{ray_python.PYTHON} -m ray.scripts.scripts", " ".join(SIZES)
    first = f"{there} start --head --port=6379 --autoscaling-config=~/ray_bootstrap_config.yaml {small}"
    config = {
        "cluster_name": "bench",
        "provider": {
            "type": "local",
            "head_ip": hosts[0].address,
            "worker_ips": [h.address for h in hosts[1:]],
        },
        "auth": {"ssh_user": "lab", "ssh_private_key": str(rig.key)},
        "min_workers": COUNT - 1,
        "max_workers": COUNT - 1,
        "head_start_ray_commands": [f"{there} stop", f"RAY_enable_autoscaler_v2={version - 1} {first}"],
        "worker_start_ray_commands": [f"{there} stop", f"{there} start --address=$RAY_HEAD_IP:6379 {small}"],
    }
    (lab.folder / "ray.yaml").write_text(json.dumps(config))


def _second(rig: Rig, hosts: list[Host]) -> str:
    """What the default autoscaler, v2, comes to."""
    lab = Lab(rig, hosts)
    _ray_yaml(rig, hosts, lab, 2)
    try:
        cost = lab.timed(program("ray"), "up", "-y", "--no-config-cache", "ray.yaml")
        with suppress(TimeoutError):
            wait_until(lambda: lab.alive("") == COUNT, "never", NEVER)
        said = f"ray up with v2: exit code 0 after {cost.wall:.1f} s"
        return f"{said}, {lab.alive('')} of {COUNT} alive {NEVER:.0f} s later"
    finally:
        lab.clear()


def _theirs(rig: Rig, hosts: list[Host], taken: dict[str, list[Cost]]) -> None:
    lab, ray = Lab(rig, hosts), program("ray")
    _ray_yaml(rig, hosts, lab, 1)

    def up() -> None:
        lab.run(ray, "up", "-y", "--no-config-cache", "ray.yaml")
        wait_until(lambda: lab.alive("") == COUNT, "all of Ray's are alive", 120)

    try:
        taken["ray up"].append(clock(up))
        taken["ray up again"].append(clock(up))
        taken["ray exec"].append(lab.timed(ray, "exec", "ray.yaml", "echo hi"))
        lab.run(ray, "exec", "ray.yaml", "exit 7", code=1)
        one = lab.timed(ray, "rsync-up", "ray.yaml", str(lab.tree / "1.txt"), "/tmp/one.txt")
        taken["ray rsync-up of 1"].append(one)
        taken["ray rsync-up"].append(lab.timed(ray, "rsync-up", "ray.yaml", f"{lab.tree}/", "/tmp/tree/"))
        taken["ray down"].append(lab.timed(ray, "down", "-y", "ray.yaml"))
    finally:
        lab.clear()
