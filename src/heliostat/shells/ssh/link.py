"""One connection to a host: an `ssh` that logs in once and carries every command after that.

It is a child that ends with us, whatever ends us: what it runs on the host reads from a pipe of ours.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import tempfile
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from heliostat.core.errors import HelioError, MissingPart, TimedOut, Unavailable
from heliostat.shells.ssh import lasting
from heliostat.shells.ssh.standing import Standing
from heliostat.shells.ssh.trouble import last_words, translate
from heliostat.shells.ssh.words import Settled, Way, quoted_option, secure, settled

SESSIONS = 8  # at once on one connection; sshd allows ten: one keeps it open, one is the standing command's
OPENING = 32  # logins at once: each costs both ends some milliseconds of arithmetic
SILENT = 20.0  # seconds for which a host that could not be reached is not tried again
LOGIN = 30.0  # seconds for all of a login, slow start-up files included
AGAIN = 3.0  # seconds for a connection that was kept to show that it still leads there
ALIVE = ("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
# A master of ours takes nothing from the configuration that would open ports, ask, or outlive it.
MASTER = (
    *("-T", "-x", "-a"),
    *("-o", "ControlMaster=yes", "-o", "ClearAllForwardings=yes"),
    *("-o", "PermitLocalCommand=no", "-o", "RemoteCommand=none", "-o", "EscapeChar=none"),
)
# Whoever uses it reads no configuration, and must not fall back to a connection of its own.
USER = ("-F", "/dev/null", "-o", "BatchMode=yes", "-o", "ProxyCommand=false", "-o", "EscapeChar=none")
PREFIX = "helio-ssh-"

Told = Callable[[str], None]


def sweep(base: str) -> None:
    """Remove the directories of processes that were killed; their sockets are dead."""
    for folder in Path(base).glob(f"{PREFIX}{os.getuid()}-*"):
        pid = folder.name.split("-")[3]
        with suppress(OSError):
            if pid.isdigit() and not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
                shutil.rmtree(folder)


def private_folder() -> str:
    """Short, because a socket's path may have 104 bytes at most."""
    base = "/tmp"  # noqa: S108  (mkdtemp makes it ours alone; macOS's own is too long)
    sweep(base)
    return tempfile.mkdtemp(prefix=f"{PREFIX}{os.getuid()}-{os.getpid()}-", dir=base)


@dataclass
class Link:
    """A host that was logged in to."""

    way: Way
    found: Settled
    path: str  # of the control socket
    process: subprocess.Popen[bytes]
    errors: str  # the file that its complaints go to
    sessions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SESSIONS))
    pins: str = ""
    standing: Standing | None = None  # the command that stays on it
    kept: lasting.Kept | None = None  # it outlasts this process by some seconds

    def words(self, *more: str) -> list[str]:
        """An `ssh` that uses this connection."""
        return ["ssh", *USER, "-S", self.path, *more]

    def command(self, line: str) -> list[str]:
        """An `ssh` that has the host's login shell run this line."""
        return self.words("-T", "-o", "LogLevel=ERROR", "--", "host", line)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def untaken(self, code: int, said: str) -> Unavailable:
        """The connection stands, and no command can begin."""
        return Unavailable(
            f"{self.way.host} did not take a command",
            why=said or f"its login shell ended with {code} before it",
            fix=f"try `ssh {self.way.host} true`",
        )

    def trouble(self) -> Unavailable:
        """Why it is gone, if it is."""
        error = translate(self.way.host, said(self.errors), pins=self.pins)
        why = getattr(error, "why", "") if said(self.errors).strip() else "the connection broke"
        return Unavailable(
            f"the connection to {self.way.host} was lost", why=why, fix=f"try `ssh {self.way.host}`"
        )

    def close(self) -> None:
        if self.standing is not None:
            self.standing.close()
        end(self.process)
        if self.kept is not None:
            self.kept.release()
            self.kept = None


def said(path: str) -> str:
    with suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace")
    return ""


def end(process: subprocess.Popen[bytes]) -> None:
    """Let go of the pipe, and do not wait for a host that may be dead."""
    if process.stdin:
        with suppress(OSError):
            process.stdin.close()
    if process.poll() is None:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout:
        process.stdout.close()


def _finish(links: dict[str, Link], folder: str, leaving: set[str]) -> None:
    lasting.end(link.path for host, link in links.items() if link.kept and host in leaving)
    for link in links.values():
        with suppress(ProcessLookupError):
            link.process.send_signal(signal.SIGTERM)
    for link in links.values():
        link.close()
    links.clear()
    shutil.rmtree(folder, ignore_errors=True)


class Pool:
    """The connections of one process, made when first needed; they go with it."""

    def __init__(self, pins: Path, told: Told = lambda _text: None) -> None:
        self.pins = pins  # a folder: the host keys of one cluster, a file for each host
        self.told = told
        self._loop: asyncio.AbstractEventLoop | None = None
        self._links: dict[str, Link] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._failed: dict[str, tuple[float, HelioError]] = {}
        self._opening = asyncio.Semaphore(OPENING)
        self._settled: dict[Way, Settled] = {}
        self._end: Callable[[], object] = lambda: None
        self._folder = ""
        self._leaving: set[str] = set()

    def leave(self, host: str) -> None:
        """Keep no connection to that host beyond this process, not even one that was kept before."""
        self._leaving.add(host)

    def close(self) -> None:
        """End every connection; nothing of them stays."""
        self._end()
        self._loop = None

    def _start(self) -> None:
        """Connections belong to one event loop; those of an earlier one are of no use."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        self.close()
        self._loop, self._links, self._locks, self._failed = loop, {}, {}, {}
        self._opening = asyncio.Semaphore(OPENING)
        self._folder = private_folder()
        self._end = weakref.finalize(self, _finish, self._links, self._folder, self._leaving)

    async def settle(self, way: Way) -> Settled:
        """What the person's configuration says about that host."""
        if way not in self._settled:
            words = ["ssh", *way.options, "-G", "--", way.host]
            try:
                process = await asyncio.create_subprocess_exec(*words, stdin=-3, stdout=-1, stderr=-1)
            except FileNotFoundError as error:
                raise MissingPart(
                    "there is no `ssh` here", why="hosts are reached by OpenSSH", fix="install openssh-client"
                ) from error
            out, err = await process.communicate()
            if process.returncode:
                raise translate(way.host, err.decode(errors="replace"))
            self._settled[way] = settled(out.decode(errors="replace"))
        return self._settled[way]

    async def link(self, way: Way) -> Link:
        """The connection to that host; the first who asks logs in, others wait for it."""
        self._start()
        async with self._locks.setdefault(way.host, asyncio.Lock()):
            found = self._links.get(way.host)
            if found is not None and found.alive:
                return found
            if found is not None:
                found.close()
                del self._links[way.host]
            self._known_trouble(way.host)
            try:
                async with self._opening:
                    link = await self._open(way)
            except HelioError as error:
                self._failed[way.host] = (asyncio.get_running_loop().time(), error)
                raise
            self._links[way.host] = link
            return link

    def _known_trouble(self, host: str) -> None:
        """A host that was dead a moment ago must not keep the others waiting once more."""
        at, error = self._failed.get(host, (float("-inf"), None))
        if error is not None and asyncio.get_running_loop().time() < at + SILENT:
            raise type(error)(error.what, why=error.why, fix=error.fix)

    async def _open(self, way: Way) -> Link:
        found = await self.settle(way)
        self.pins.mkdir(mode=0o700, parents=True, exist_ok=True)
        pins = self.pins / way.host.replace("/", "_")
        before = said(str(pins))
        known = secure(found, str(pins))
        lists = (str(pins), *found.known, "/etc/ssh/ssh_known_hosts")
        words = ["ssh", *self._jump(way), *way.options, *known, *ALIVE]
        called = (*words, way.host, repr(found))
        kept = lasting.place(called, lists)
        try:
            link = kept and lasting.there(kept.path) and await self._again(way, found, kept, str(pins))
            link = link or await self._log_in(way, found, words, kept, str(pins))
        except BaseException:
            if kept:
                kept.release()
            raise
        if said(str(pins)) != before:
            self._tell(way.host, pins)
            if link.kept and (now := lasting.place(called, lists)):  # its name tells of the new key, too
                os.rename(link.path, now.path)
                link.kept.release()
                link.path, link.kept = now.path, now
        return link

    def _name(self, way: Way) -> str:
        """Of what belongs to one connection, in a folder that goes with this process."""
        return f"{self._folder}/{hashlib.sha256(way.host.encode()).hexdigest()[:8]}{secrets.token_hex(2)}"

    async def _again(self, way: Way, found: Settled, kept: lasting.Kept, pins: str) -> Link | None:
        """On a connection that an earlier command has left, if it still leads there."""
        errors = f"{self._name(way)}.err"
        words = ["ssh", *USER, "-T", "-o", "LogLevel=ERROR", "-S", kept.path, "--", way.host]
        with suppress(HelioError):
            process = await opened(words, errors, AGAIN)
            if process.poll() is None:
                return Link(way, found, kept.path, process, errors, pins=pins, kept=kept)
            end(process)
        lasting.end([kept.path])
        return None

    async def _log_in(
        self, way: Way, found: Settled, words: list[str], kept: lasting.Kept | None, pins: str
    ) -> Link:
        name = self._name(way)
        path, errors = kept.path if kept else name, f"{name}.err"
        persist = f"ControlPersist={lasting.seconds() if kept else 'no'}"
        process = await opened([*words, "-o", persist, *MASTER, "-S", path, "--", way.host], errors, LOGIN)
        if process.poll() is None:
            return Link(way, found, path, process, errors, pins=pins, kept=kept)
        end(process)
        if not last_words(said(errors)):
            raise Unavailable(
                f"{way.host} lets nobody in",
                why=f"the login worked and ended at once, with exit code {process.returncode}: "
                "is its login shell one that runs commands?",
                fix=f"try `ssh {way.host} true`",
            )
        raise translate(way.host, said(errors), pins=pins)

    def _jump(self, way: Way) -> tuple[str, ...]:
        """Through another host, to which the same rules apply."""
        if not way.jump:
            return ()
        pins = str(self.pins / way.jump.replace("/", "_"))
        through = replace(way, host=way.jump, jump=None, user=None)
        words = [*through.options, *secure(Settled(known=("~/.ssh/known_hosts",)), pins), "-W", "[%h]:%p"]
        plain = [word if word == "[%h]:%p" else quoted_option(word) for word in (*words, way.jump)]
        return ("-o", "ProxyCommand=ssh " + " ".join(plain))

    def _tell(self, host: str, pins: Path) -> None:
        for line in pins.read_text(encoding="utf-8", errors="replace").splitlines():
            print_ = fingerprint(line)
            if print_:
                self.told(f"{host}: host key seen for the first time and pinned for this cluster: {print_}")

    @asynccontextmanager
    async def session(self, way: Way) -> AsyncIterator[Link]:
        """The connection, with the right to one more command on it."""
        link = await self.link(way)
        async with link.sessions:
            yield link


def fingerprint(line: str) -> str:
    """As `ssh-keygen -l` prints it, of a line of known_hosts.

    >>> fingerprint("host ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0h")
    'ED25519 SHA256:xNLnXJ7k5xtm/wRmExM3vRpvUbZRxQqyGK8Tt/uDglo'
    """
    words = line.split()
    if len(words) < 3 or line.startswith(("#", "@")):
        return ""
    with suppress(ValueError):
        digest = hashlib.sha256(base64.b64decode(words[2])).digest()
        kind = words[1].removeprefix("ssh-").split("-")[0].upper()
        return f"{kind} SHA256:{base64.b64encode(digest).decode().rstrip('=')}"
    return ""


async def opened(words: list[str], errors: str, patience: float) -> subprocess.Popen[bytes]:
    """An `ssh` whose session keeps the connection open; one that has ended did not get there."""
    mark = secrets.token_hex(8)
    # Found alike by every login shell; it ends when we do.
    keeper = f"exec sh -c 'echo; echo {mark}; exec cat >/dev/null'"
    with open(errors, "wb") as file:
        process = subprocess.Popen(
            [*words, keeper],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            start_new_session=True,  # it has no terminal to ask at, and Ctrl-C is not for it
            env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"},
        )
    greeting = False
    try:
        greeting = await greeted(process, mark.encode(), patience)
    finally:
        if not greeting:
            end(process)
    return process


async def greeted(process: subprocess.Popen[bytes], mark: bytes, patience: float) -> bool:
    """Whether the login succeeded: its mark came, rather than the end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[bool] = loop.create_future()
    assert process.stdout is not None  # noqa: S101  (it was started with a pipe)
    fd, seen = process.stdout.fileno(), bytearray()

    def take() -> None:
        data = os.read(fd, 65_536)
        seen.extend(data)
        if not done.done() and (not data or mark in seen):
            done.set_result(bool(data))

    loop.add_reader(fd, take)
    try:
        async with asyncio.timeout(patience):
            return await done
    except TimeoutError:
        host = shlex.join(process.args[-2:-1]) if isinstance(process.args, list) else "the host"
        raise TimedOut(
            f"{host} did not finish the login within {patience:.0f} s",
            why="it answers, but its login is slow or hangs (start-up files?)",
            fix=f"try `ssh {host}`",
        ) from None
    finally:
        loop.remove_reader(fd)
