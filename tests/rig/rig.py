"""The rig as tests see it: `with Rig() as rig: host = rig.host(1)`."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from tests.rig import ray_python
from tests.rig.host import Host
from tests.rig.proxy import Proxy

USER = "lab"  # the account that tests log in with
OTHER = "guest"  # a second person on the same hosts
CHECKOUT = Path(__file__).resolve().parents[2]
RANGE = "198.18"  # set aside for tests by RFC 2544: never routed
PREFIX = "helio-rig-"


def missing() -> str:
    """What this machine lacks for a rig, by name; empty when nothing."""
    if os.geteuid() != 0:
        return "root (namespaces, mounts)"
    parts = {
        "/usr/sbin/sshd": "openssh-server",
        "/usr/bin/nsenter": "util-linux",
        "/bin/dash": "dash",
        "/usr/bin/python3": "python3",
    }
    lacking = [name for path, name in parts.items() if not Path(path).exists()]
    lacking += [name for name in ("ip", "ssh", "ssh-keygen") if shutil.which(name) is None]
    return ", ".join(lacking)


class Rig:
    """Hosts node01.lab … on a bridge of their own; no way out of it."""

    def __init__(self, *, shares: Sequence[str] = ()) -> None:
        sweep()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        shares = [*shares, *ray_python.shares(self.folder / "ray")]
        self.key = self.folder / "key"
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "rig", "-f", str(self.key)]
        subprocess.run(keygen, check=True)
        self.config = self.folder / "ssh_config"
        self.hosts: dict[int, Host] = {}
        self.proxies: list[Proxy] = []
        spaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"]
        program = [sys.executable, "-I", str(Path(__file__).with_name("keeper.py"))]
        self._keeper = subprocess.Popen(
            [*spaces, *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/"
        )
        try:
            self.base = self._plug()
            self._say(
                base=self.base,
                users=[USER, OTHER],
                public_key=self.key.with_suffix(".pub").read_text(),
                mask=str(CHECKOUT),
                shares=list(shares),
            )
        except BaseException:
            self.close()
            raise

    def _plug(self) -> str:
        """Lay a cable from this machine into the rig; whoever holds the link's name holds the addresses."""
        for number in range(250):
            name, base = f"hrig{number}", f"{RANGE}.{number}"
            add = ["ip", "link", "add", name, "type", "veth", "peer", "name", "up0"]
            done = subprocess.run(
                [*add, "netns", str(self._inner())], capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                text = f"addr add {base}.1/24 dev {name}\nlink set {name} up\n"
                subprocess.run(["ip", "-b", "-"], input=text, text=True, check=True)
                return base
            if "File exists" not in done.stderr:
                raise RuntimeError(f"no link into the rig: {done.stderr.strip()}")
        raise RuntimeError("250 rigs are up already")

    def _inner(self) -> int:
        """The process inside: `unshare` itself may still be on its way into the namespaces."""
        children = Path(f"/proc/{self._keeper.pid}/task/{self._keeper.pid}/children")
        wait_until(lambda: bool(children.read_text().split()), "the keeper started")
        return int(children.read_text().split()[0])

    def _say(self, **order: object) -> Any:
        keeper = self._keeper
        if keeper.stdin is None or keeper.stdout is None:
            raise RuntimeError("the keeper has no pipes")
        keeper.stdin.write(json.dumps(order) + "\n")
        keeper.stdin.flush()
        line = keeper.stdout.readline()
        if not line:
            raise RuntimeError(f"the rig's keeper died at {order}")
        return json.loads(line)

    def host(self, number: int) -> Host:
        """Host `number`, started when it is not there yet."""
        return self.many([number])[0]

    def many(self, numbers: Iterable[int]) -> list[Host]:
        """Several hosts at once."""
        wanted = list(numbers)
        new = [number for number in wanted if number not in self.hosts]
        if new:
            self._say(do="make", numbers=new)
            for number in new:
                self.hosts[number] = Host(number, f"{self.base}.{10 + number}", self._say)
            self.boot(new)
            self.write_config()
        return [self.hosts[number] for number in wanted]

    def new(self, count: int = 1) -> list[Host]:
        """Hosts that no test has touched: what a test breaks, it breaks for itself."""
        first = max(self.hosts, default=0) + 1
        return self.many(range(first, first + count))

    def slow(self, host: Host, delay: float = 0.0) -> Proxy:
        """A second name for a host, behind a link that can be slow, cut or silent."""
        proxy = Proxy((host.address, 22), delay)
        proxy.name = f"slow{len(self.proxies)}-{host.name}"
        self.proxies.append(proxy)
        self.write_config()
        return proxy

    def boot(self, numbers: Sequence[int]) -> None:
        for number, pid in self._say(do="boot", numbers=list(numbers)).items():
            self.hosts[int(number)].pid = pid
        for number in numbers:
            answers = self.hosts[number].answers
            wait_until(answers, f"sshd of host {number} answers")

    def write_config(self) -> None:
        """What a person would have in ~/.ssh/config for these hosts."""
        lines = [f"Host {h.name}\n  HostName {h.address}\n" for h in self.hosts.values()]
        lines += [f"Host {p.name}\n  HostName 127.0.0.1\n  Port {p.port}\n" for p in self.proxies]
        lines.append(f"Host *\n  User {USER}\n  IdentityFile {self.key}\n  IdentitiesOnly yes\n")
        lines.append(f"  UserKnownHostsFile {self.folder}/known_hosts\n")
        self.config.write_text("".join(lines))

    def close(self) -> None:
        for proxy in self.proxies:
            proxy.close()
        if self._keeper.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._keeper.stdin.close()
        try:
            self._keeper.wait(10)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        if self._keeper.stdout:
            self._keeper.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def sweep() -> None:
    """Remove the key folders of rigs whose process was killed; the kernel has taken the rest already."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        pid = folder.name.removeprefix(PREFIX).split("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def wait_until(true: Callable[[], bool], what: str, deadline: float = 15.0) -> None:
    """Ask again until it is so; `what` names it when it never is."""
    end = time.monotonic() + deadline
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {deadline:.0f} s in vain: {what}")
        time.sleep(0.01)  # between two looks at a condition, not instead of one
