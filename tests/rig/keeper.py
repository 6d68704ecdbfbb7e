"""The keeper: PID 1 of the rig's own namespaces. Takes one JSON order a line, answers with one line each.

It ends when its input ends, so that not even `kill -9` of the tests leaves anything behind.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

DISKS = Path("/run/rig")
HOST_SCRIPT = Path(__file__).with_name("host.sh").read_text()
SSHD = """\
HostKey /etc/ssh/rig_host_key
PidFile /run/sshd.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
Subsystem sftp /usr/lib/openssh/sftp-server
UseDNS no
UsePAM no
"""


def ip(*lines: str) -> None:
    """One `ip` for many orders: starting a program for each link would be most of the time."""
    subprocess.run(["ip", "-b", "-"], input="\n".join(lines) + "\n", text=True, check=True)


class Keeper:
    def __init__(self, base: str, users: list[str], public_key: str, mask: str, shares: list[str]) -> None:
        self.base = base  # 198.18.7
        self.users = users
        self.public_key = public_key
        self.mask = mask
        self.shares = shares
        self.running: dict[int, subprocess.Popen[str]] = {}
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "rig", "/run"], check=True)
        DISKS.mkdir()
        ip("link set lo up", "link add br0 type bridge", "link set br0 up", "link set up0 master br0 up")

    def make(self, numbers: list[int]) -> None:
        """Links, addresses and disks of new hosts."""
        orders = []
        for number in numbers:
            orders += [
                f"netns add n{number}",
                f"link add n{number} type veth peer name eth0 netns n{number}",
                f"link set n{number} master br0 up",
            ]
        ip(*orders)
        for number in numbers:
            netns = ["ip", "-n", f"n{number}", "-b", "-"]
            text = f"addr add {self.base}.{10 + number}/24 dev eth0\nlink set eth0 up\n"
            subprocess.run(netns, input=text, text=True, check=True)
            self.disk(number)

    def disk(self, number: int) -> None:
        """What is on a host's own disk before it first boots."""
        etc = DISKS / f"n{number}/upper/etc"
        (etc / "ssh").mkdir(parents=True)
        names = "".join(f"{self.base}.{10 + n} node{n:02}.lab node{n:02}\n" for n in range(1, 201))
        (etc / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        (etc / "hostname").write_text(f"node{number:02}\n")
        (etc / "ssh/rig_sshd_config").write_text(SSHD)
        key = str(etc / "ssh/rig_host_key")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
        accounts = {name: Path("/etc", name).read_text() for name in ("passwd", "shadow", "group")}
        homes = [("root", 0, DISKS / f"n{number}/root")]
        for index, user in enumerate(self.users):
            uid = 2000 + index
            accounts["passwd"] += f"{user}:x:{uid}:{uid}::/home/{user}:/bin/bash\n"
            accounts["shadow"] += f"{user}:*:19000:0:99999:7:::\n"
            accounts["group"] += f"{user}:x:{uid}:\n"
            homes.append((user, uid, DISKS / f"n{number}/upper/home/{user}"))
        for name, text in accounts.items():
            (etc / name).write_text(text)
        (etc / "shadow").chmod(0o600)
        for _, uid, home in homes:
            (home / ".ssh").mkdir(parents=True)
            (home / ".ssh/authorized_keys").write_text(self.public_key)
            for path in (home, home / ".ssh", home / ".ssh/authorized_keys"):
                shutil.chown(path, uid, uid)
                path.chmod(0o600 if path.is_file() else 0o700)

    def boot(self, numbers: list[int]) -> dict[int, int]:
        """Start hosts; their first processes, as PIDs of the machine."""
        ip(*(f"link set n{number} up" for number in numbers))
        for number in numbers:
            spaces = ["nsenter", f"--net=/run/netns/n{number}"]
            spaces += ["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]
            script = ["/bin/dash", "-c", HOST_SCRIPT, "host.sh"]
            args = [str(DISKS / f"n{number}"), f"node{number:02}", self.mask, *self.shares]
            self.running[number] = subprocess.Popen(
                [*spaces, *script, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
            )
        return {number: self.pid(number) for number in numbers}

    def pid(self, number: int) -> int:
        out = self.running[number].stdout
        line = out.readline() if out else ""
        if not line:
            raise RuntimeError(f"host {number} did not boot")
        return int(line)

    def kill(self, number: int) -> None:
        """Power off: nothing of it runs, and nothing answers for it."""
        ip(f"link set n{number} down")
        process = self.running.pop(number)
        process.kill()
        process.wait()

    def link(self, number: int, state: str) -> None:
        ip(f"link set n{number} {state}")


def main() -> None:
    keeper = Keeper(**json.loads(sys.stdin.readline()))
    print("{}", flush=True)
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        answer = getattr(keeper, order.pop("do"))(**order)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
