"""Ray's lists of shell commands as `setup` and `host_setup`; the Ray and the Python that they pin."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from heliostat.core.decode.tree import Mark, Scalar
from heliostat.core.draft import Draft

_PIP = re.compile(r"\b(?:pip3?|conda|mamba)\s+(?:\S+\s+)*?install\b")
_RAY = re.compile(
    r"""(?<![\w./@=-])(?P<quote>['"]?)ray(?:\[(?P<extras>[\w,\s-]*)\])?"""
    r"""(?:\s*(?P<sign>[=<>~!]=|[<>])\s*(?P<version>[0-9][\w.*,<>=]*)|\s*@\s*(?P<url>[^\s'"]+))?"""
    r"""(?P=quote)(?=\s|$)"""
)
_CONDA_PYTHON = re.compile(r"\b(?:conda|mamba)\s+create\b.*?\bpython={1,2}(3\.[0-9]+(?:\.[0-9]+)?)")
_LINKS = re.compile(r"(\s*(?:&&|\|\||;)\s*)")
_LOOKS = re.compile(r"(?:which|command -v|type)\s+ray(?:\s+&?[0-9]?>\s*\S+|\s+2>&1)*|\(?true\)?")
_PYTHONS = re.compile(r"(?:^|[\s;&|(])(?:pip3?|python3?|uv)\s")


@dataclass
class Pins:
    """What the commands of a file pin, each once."""

    draft: Draft
    ray: tuple[str, Mark, str] | None = None
    python: tuple[str, Mark, str] | None = None
    seen: set[tuple[str, Mark]] = field(default_factory=set)

    def pin_ray(self, version: str, mark: Mark, key: str) -> None:
        if self.ray is None:
            self.ray = (version, mark, key)
        elif self.ray[0] != version:
            other = f"{self.ray[0]} by `{self.ray[2]}`"
            self.draft.log.add(mark, f"Ray {version} is installed here, but {other}; all nodes need the same")

    def pin_python(self, version: str, mark: Mark, key: str) -> None:
        if self.python is None:
            self.python = (version, mark, key)
            self.draft.near(
                mark,
                key,
                f"heliostat makes Python {version} itself (`python`), and packages are installed there",
            )


def login_shell(command: str, *, own_python: bool) -> str:
    """The command as Ray's launcher runs it; where heliostat made the Python, that one comes first.

    >>> login_shell("touch ~/a", own_python=True)
    "bash -lic 'touch ~/a'"
    >>> login_shell("pip install x", own_python=True)
    "bash -lic 'PATH=$VIRTUAL_ENV/bin:$PATH; pip install x'"
    """
    first = "PATH=$VIRTUAL_ENV/bin:$PATH; " if own_python and _PYTHONS.search(command) else ""
    return f"bash -lic {shlex.quote(first + command)}"


def setup(commands: Sequence[Scalar], key: str, pins: Pins, *, own_python: bool) -> list[str]:
    """The commands that remain when heliostat installs Ray itself."""
    kept = []
    for command in commands:
        left = _without_ray(command, key, pins)
        found = _CONDA_PYTHON.search(command.text)
        if found and own_python:
            pins.pin_python(found[1], command.mark, key)
        if left:
            kept.append(login_shell(left, own_python=own_python))
    return kept


def on_host(commands: Sequence[Scalar]) -> list[str]:
    """Commands before any container and any Python."""
    return [login_shell(command.text.strip(), own_python=False) for command in commands]


def _without_ray(command: Scalar, key: str, pins: Pins) -> str:
    pieces = _LINKS.split(command.text.strip())
    if not any(_PIP.search(piece) and _RAY.search(piece) for piece in pieces):
        return command.text.strip()
    pieces = [_piece(piece, command.mark, key, pins) for piece in pieces]
    if all(_LOOKS.fullmatch(piece.strip()) for piece in pieces[::2]):
        return ""
    return "".join(pieces)


def _piece(piece: str, mark: Mark, key: str, pins: Pins) -> str:
    """One command of a chain, without the Ray that it installs."""
    found = _RAY.search(piece) if _PIP.search(piece) else None
    if found is None:
        return piece
    _note(found, mark, key, pins)
    extras = {part.strip() for part in (found["extras"] or "").split(",")} - {"", "default"}
    if extras and found["sign"] == "==":
        return piece  # the same Ray again, for what else it brings
    if extras:
        text = (
            f"the extras {', '.join(sorted(extras))} of Ray are left out, for they came without its release"
        )
        pins.draft.lost(mark, key, f"{text}; write them into `setup`")
    left = f"{piece[: found.start()].rstrip()} {piece[found.end() :].lstrip()}"
    words = left.split()
    wanted = [word for word in words[words.index("install") + 1 :] if not word.startswith("-")]
    return left.rstrip() if wanted else "true"


def _note(found: re.Match[str], mark: Mark, key: str, pins: Pins) -> None:
    if found["sign"] == "==" and re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+(?:rc[0-9]+)?", found["version"]):
        pins.pin_ray(found["version"], mark, key)
    elif found["url"]:
        pins.draft.near(
            mark, key, "Ray comes from the key `ray`, not from this wheel; name its release there"
        )
    else:
        pins.draft.near(
            mark, key, "Ray comes from the key `ray`: the release that heliostat was verified with"
        )
