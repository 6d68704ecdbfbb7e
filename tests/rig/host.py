"""One host of the rig, and everything that can go wrong with it."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable
from typing import Any

CLEAN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
NOISE = 'echo "*** Welcome! Quota: 93% used ***"; echo "mesg: ttyname failed: not a tty" >&2\n'
OLD_PYTHON = """#!/bin/sh
# What a host with Python 3.6 answers: its version, and errors for anything newer.
case "$*" in
*version*) echo "Python 3.6.8" ;;
*) echo "SyntaxError: invalid syntax" >&2; exit 1 ;;
esac
"""


class Host:
    def __init__(self, number: int, address: str, say: Callable[..., Any]) -> None:
        self.number = number
        self.name = f"node{number:02}.lab"
        self.address = address
        self.pid = 0  # its first process, as this machine numbers it
        self._say = say

    def enter(self, *command: str) -> list[str]:
        """The command that runs `command` on the host as root, without ssh."""
        return ["nsenter", "-t", str(self.pid), "-m", "-p", "-n", "-u", "-i", "-r", "-w", *command]

    def sh(self, script: str, *, user: str = "root", check: bool = True) -> str:
        """Run a shell script on the host, past ssh: to look, and to break things."""
        command = self.enter("/bin/sh", "-c", script)
        if user != "root":
            command = self.enter(
                "setpriv", "--reuid", user, "--regid", user, "--clear-groups", "sh", "-c", script
            )
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=CLEAN)
        if check and done.returncode != 0:
            raise RuntimeError(f"{self.name}: {script!r} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def processes(self) -> list[str]:
        """Command lines of all that runs there, except what a host itself consists of."""
        own = ("sshd: /usr/sbin/sshd -f", "/bin/dash -c while :;", "sleep infinity", "/bin/sh -c ps", "ps -e")
        lines = self.sh("ps -e -o args=").splitlines()
        return [line for line in lines if not line.startswith(own)]

    def listens(self) -> list[str]:
        """Addresses that something other than sshd listens on."""
        rows = [line.split()[3] for line in self.sh("ss -Hltn").splitlines()]
        return sorted(row for row in rows if not row.endswith(":22"))

    def answers(self) -> bool:
        """Whether its sshd greets."""
        with contextlib.suppress(OSError), socket.create_connection((self.address, 22), timeout=1) as line:
            return line.recv(4) == b"SSH-"
        return False

    # Faults. Each has its opposite where a test needs it.

    def kill(self) -> None:
        """The host dies at once: kill -9 of its first process, and its link goes dark."""
        os.kill(self.pid, signal.SIGKILL)
        self._say(do="kill", number=self.number)

    def cut(self) -> None:
        """The network to it is gone; the host itself lives on."""
        self._say(do="link", number=self.number, state="down")

    def mend(self) -> None:
        self._say(do="link", number=self.number, state="up")

    def stop_sshd(self) -> None:
        """sshd refuses new connections; those that are open stay."""
        self.sh("kill $(cat /run/sshd.pid); while [ -e /run/sshd.pid ]; do :; done")

    def start_sshd(self) -> None:
        self.sh("/usr/sbin/sshd -f /etc/ssh/rig_sshd_config; while [ ! -s /run/sshd.pid ]; do :; done")

    def end_connections(self) -> None:
        """Every open ssh connection breaks, as when a firewall forgets them."""
        self.sh("pkill -KILL -f '^sshd: .*@' || pkill -KILL -f '^sshd: [a-z]' || true")

    def new_host_key(self) -> None:
        """Another machine answers at this address now."""
        self.sh(
            "rm /etc/ssh/rig_host_key*; ssh-keygen -q -t ed25519 -N '' -C '' -f /etc/ssh/rig_host_key;"
            "kill -HUP $(cat /run/sshd.pid)"
        )

    def fill(self, folder: str, size: str = "64k", owner: str = "lab") -> None:
        """A disk that is as good as full is mounted at that folder."""
        at = shlex.quote(folder)
        self.sh(f"mkdir -p {at}; mount -t tmpfs -o size={size},mode=755 full {at}; chown {owner}: {at}")

    def no_python(self) -> None:
        self.sh("rm -f /usr/bin/python3* /usr/local/bin/python3*")

    def old_python(self) -> None:
        self.no_python()
        self.sh(f"cat >/usr/bin/python3 <<'END'\n{OLD_PYTHON}END\nchmod 755 /usr/bin/python3")

    def noise(self, user: str = "lab") -> None:
        """Start-up files that talk, as on many a lab's machines."""
        for file in (".bashrc", ".profile", ".bash_profile"):
            self.start_up(file, NOISE, user)

    def slow_login(self, seconds: float, user: str = "lab") -> None:
        self.start_up(".bashrc", f"sleep {seconds}\n", user)

    def start_up(self, file: str, text: str, user: str = "lab") -> None:
        """Append to one of a user's start-up files."""
        self.sh(f"cat >>~{user}/{file} <<'END'\n{text}END\nchown {user}: ~{user}/{file}")

    def login_shell(self, path: str, user: str = "lab") -> None:
        self.sh(f"usermod -s {shlex.quote(path)} {user}")
