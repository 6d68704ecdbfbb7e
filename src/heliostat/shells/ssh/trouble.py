"""What `ssh` says when it cannot, in our errors. Pure, and the only place that reads its messages."""

from __future__ import annotations

import re

from heliostat.core.errors import Denied, HelioError, TimedOut, Unavailable

_NOISE = re.compile(r"^(Warning: Permanently added|debug\d|\*\*|Authorized uses|@+$)", re.MULTILINE)
_OFFENDING = re.compile(r"Offending \S+ key in (.+):(\d+)")
_REMOVE = re.compile(r'ssh-keygen -f "?[^\n]+')
_METHODS = re.compile(r"Permission denied \(([^)]*)\)")

# Words of OpenSSH, and what they mean to somebody who waits for a cluster.
_DOWN: tuple[tuple[str, str], ...] = (
    ("Connection refused", "nothing listens on its SSH port (is sshd running?)"),
    ("Could not resolve hostname", "its name is not known here (a typing mistake?)"),
    ("No route to host", "it is down, or no way leads there"),
    ("Network is unreachable", "no way leads to its network"),
    ("Connection reset", "it broke the connection off"),
    ("Connection closed", "it closed the connection during the login"),
    ("kex_exchange_identification", "it closed the connection before the login"),
    ("not responding", "it stopped answering"),
    ("Broken pipe", "the connection broke"),
)
_LATE = ("timed out", "Operation timed out", "Timeout, server")


class OtherHostKey(Denied):
    """The host shows another key than it did: nothing goes on before somebody has looked."""


def translate(host: str, text: str, *, pins: str = "") -> HelioError:
    """The error that this output of `ssh` is."""
    if "IDENTIFICATION HAS CHANGED" in text or "Host key verification failed" in text:
        return _host_key(host, text, pins)
    if "Permission denied" in text or "Too many authentication failures" in text:
        return _refused(host, text)
    if any(word in text for word in _LATE):
        error: HelioError = TimedOut(
            f"{host} does not answer",
            why="no answer on its SSH port in time: it is down, or something on the way drops packets",
            fix=f"try `ssh {host}`",
        )
        return error
    for word, why in _DOWN:
        if word in text:
            return Unavailable(f"{host} cannot be reached", why=why, fix=f"try `ssh {host}`")
    return Unavailable(
        f"{host} cannot be reached", why=last_words(text) or "`ssh` gave no reason", fix=f"try `ssh {host}`"
    )


def _host_key(host: str, text: str, pins: str) -> Denied:
    offending = _OFFENDING.search(text)
    if "HAS CHANGED" not in text:
        return Denied(
            f"the host key of {host} is not known",
            why="your SSH configuration wants every key to be known beforehand",
            fix=f"log in once by hand (`ssh {host}`) and compare the fingerprint",
        )
    where = offending[1] if offending else pins
    named = _REMOVE.search(text)
    forget = (
        f"rm {pins}" if where == pins else named[0] if named else f"line {offending[2] if offending else 1}"
    )
    fix = f"if the host was really set up anew, forget the old key: {forget}"
    return OtherHostKey(
        f"the host key of {host} has changed: nothing was sent there",
        why=f"another machine may be answering in its place; the key known until now is in {where}",
        fix=fix,
    )


def _refused(host: str, text: str) -> Denied:
    methods = _METHODS.search(text)
    kinds = f" (it accepts: {methods[1]})" if methods else ""
    return Denied(
        f"{host} refuses the login",
        why=f"none of your keys was accepted{kinds}; a key with a passphrase works only through an agent",
        fix=f"try `ssh {host}`; `ssh-add` unlocks a key, `ssh: {{user: …, key: …}}` names another",
    )


def last_words(text: str, lines: int = 3) -> str:
    """The end of what it said, without banners and warnings.

    >>> last_words("Warning: Permanently added 'x' (ED25519) to the list of known hosts.\\nbad port\\n")
    'bad port'
    """
    kept = [line.strip() for line in text.splitlines() if line.strip() and not _NOISE.match(line)]
    return "\n".join(kept[-lines:])
