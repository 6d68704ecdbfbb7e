"""The words that travel: options for `ssh`, and the little script around every command. Pure.

The command line that the host sees is a constant, so that any login shell (bash, zsh, fish, csh) reads it
alike and nothing of a command or its environment stands in anybody's process list. The script itself comes
first on standard input; what the command reads comes after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heliostat.core.errors import UsageError

KILLED = range(129, 160)  # what a POSIX shell makes of a signal: 128 and its number


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a host is reached; what is not said, ~/.ssh/config says."""

    host: str
    user: str | None = None
    key: str | None = None
    jump: str | None = None
    config: str | None = None  # a file instead of ~/.ssh/config

    @property
    def options(self) -> tuple[str, ...]:
        """As `ssh` takes them."""
        words: list[str] = []
        for flag, value in (("-F", self.config), ("-l", self.user), ("-i", self.key)):
            words += [flag, value] if value else []
        return tuple(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What OpenSSH itself makes of a Way and the person's configuration (`ssh -G`)."""

    user: str = ""
    address: str = ""
    strict: bool = False  # the person wants every key to be known beforehand
    known: tuple[str, ...] = ()  # the person's own lists of host keys
    timeout: bool = False  # the person has a connection timeout of their own


def settled(text: str) -> Settled:
    """Read the answer of `ssh -G`.

    >>> settled("user me\\nhostname 10.0.0.7\\nstricthostkeychecking ask\\nconnecttimeout none\\n").user
    'me'
    """
    found = dict(line.partition(" ")[::2] for line in text.splitlines())
    return Settled(
        user=found.get("user", ""),
        address=found.get("hostname", ""),
        strict=found.get("stricthostkeychecking", "") in ("true", "yes"),
        known=tuple(found.get("userknownhostsfile", "").split()),
        timeout=found.get("connecttimeout", "none") not in ("none", "0"),
    )


def secure(found: Settled, pins: str) -> tuple[str, ...]:
    """Options that no configuration may weaken: nothing asks, and a host key is pinned when first seen.

    A key that differs from what is known, in our list or the person's, is always refused.
    """
    known = " ".join(f'"{path}"' if " " in path else path for path in (pins, *found.known))
    pairs = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes" if found.strict else "accept-new",
        "UserKnownHostsFile": known,
        "HashKnownHosts": "no",
        "UpdateHostKeys": "no",
        "PasswordAuthentication": "no",
        **({} if found.timeout else {"ConnectTimeout": "6"}),
    }
    return tuple(word for name, value in pairs.items() for word in ("-o", f"{name}={value}"))


def quoted_option(word: str) -> str:
    """A word of a ProxyCommand, which a local shell reads; `%` is OpenSSH's own.

    >>> quoted_option("it's 5%")
    "'it'\\\\''s 5%%'"
    """
    return quote(word).replace("%", "%%")


def quote(text: str) -> str:
    """One word for a POSIX shell, whatever is in it.

    >>> quote("it's")
    "'it'\\\\''s'"
    """
    if "\0" in text:
        raise UsageError("a command cannot contain a NUL character", why="no shell can pass it on")
    return "'" + text.replace("'", "'\\''") + "'"


def place(path: str) -> str:
    """A path on the host for its shell; `~/` is the home of whoever logs in.

    >>> place("~/a b"), place("~"), place("/tmp/x")
    ('"$HOME"/\\'a b\\'', '"$HOME"', "'/tmp/x'")
    """
    if path == "~":
        return '"$HOME"'
    return '"$HOME"/' + quote(path[2:]) if path.startswith("~/") else quote(path)


def script(
    mark: str,
    command: str,
    *,
    env: Mapping[str, str] | None = None,
    path: str = "",
    cwd: str = "",
) -> bytes:
    """Marks on both streams, the command, and its exit code behind a mark on stderr.

    A start-up file may print before the first mark: that is nobody's output. In one group, so that a script
    which arrives cut short is not run at all.
    """
    lines = ["{", f"printf '%s\\n' {mark}", f"printf '%s %s\\n' {mark} $$ >&2"]
    if path:
        lines.append(f'PATH={place(path)}:"$PATH"; export PATH')
    lines += [f"{name}={quote(value)}; export {name}" for name, value in (env or {}).items()]
    # The shell's own words about signals are not the command's: they go nowhere.
    lines.append("exec 3>&2 2>/dev/null")
    run = f"( {command} ) 2>&3 3>&-\nhelio_code=$?"
    if cwd:
        run = f"if cd -- {place(cwd)} 2>&3; then\n{run}\nelse helio_code=126; fi"
    lines += [run, f"printf '%s=%s\\n' {mark} $helio_code >&3", "exit 0", "}"]
    return "\n".join(lines).encode() + b"\n"


def command(words: Sequence[str]) -> str:
    """A program and its arguments; `exec`, so that a shell's own words are no programs."""
    if not words:
        raise UsageError("there is no command to run", why="the command line is empty")
    return "exec " + " ".join(quote(word) for word in words)


def remote(size: int) -> str:
    """What the host's login shell is told: read that many bytes, and obey them."""
    return f"exec sh -c 'eval \"$(dd bs=1 count={size} 2>/dev/null)\"'"


def result_code(code: int) -> int:
    """As our callers count: negative when a signal ended it.

    >>> result_code(137), result_code(7), result_code(255)
    (-9, 7, 255)
    """
    return 128 - code if code in KILLED else code
