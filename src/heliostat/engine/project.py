"""Which file is meant, and reading it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from heliostat.core.errors import FileError, Problem, UsageError
from heliostat.core.owner import UNWRITTEN

if TYPE_CHECKING:
    from heliostat.core.spec import Decoded

NAME = "helio.yaml"
OTHER_NAME = "helio.yml"
MAX_BYTES = 4_000_000  # as many as the characters that a file may have can take


def find_file(start: Path, given: str | None = None) -> Path | None:
    """The file that was given, else the nearest helio.yaml upwards, else none: the default cluster."""
    if given is not None:
        return _given(start / Path(given).expanduser(), given)
    for folder in (start, *start.parents):
        candidate = folder / NAME
        try:
            if candidate.is_file():
                return candidate
        except PermissionError:  # a folder of somebody else's is none of ours
            break
    return None


def unwritten(
    given: str | None = None, *, sets: Sequence[str] = (), cwd: Path | None = None
) -> tuple[str, str] | None:
    """The cluster and its place where no word about them is written anywhere: nothing needs decoding then."""
    start = Path(os.path.abspath(cwd)) if cwd else here()
    if given is not None or sets or find_file(start) is not None or (start / OTHER_NAME).is_file():
        return None
    return UNWRITTEN


def here() -> Path:
    """Where the person stands."""
    try:
        return Path(os.path.abspath(Path.cwd()))
    except OSError as error:
        raise UsageError(
            "the folder you are in is not there any more, or not for you",
            why=str(error.strerror),
            fix="cd to another one",
        ) from error


def load(
    given: str | None = None,
    *,
    sets: Sequence[str] = (),
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    makes: bool = True,
) -> Decoded:
    """Read and decode the file that is meant, with `--set KEY=VALUE` laid over it; `makes` as in decode."""
    from heliostat.core.decode import decode, default_cluster

    start = Path(os.path.abspath(cwd)) if cwd else here()
    env = os.environ if env is None else env
    file = find_file(start, given)
    if file is None:
        decoded = default_cluster(str(start), env=env, sets=sets)
        return replace(decoded, notes=(*decoded.notes, *_overlooked(start)))
    shown, text = _text(file, start)
    folder = str(file.parent)
    decoded = decode(text, source=shown, folder=folder, env=env, sets=sets, makes=makes)
    if decoded.spec.where == "ssh":
        from heliostat.engine.inventory import as_sets, named_in

        if (known := as_sets(decoded.spec)) is not None:  # once more: their number decides about workers
            named = decoded.spec.ssh.hosts
            decoded = decode(text, source=shown, folder=folder, env=env, sets=(*sets, known), makes=makes)
            decoded = replace(decoded, origins=tuple(named_in(decoded.origins, named)))
    return replace(decoded, spec=replace(decoded.spec, source=str(file)))


def read_file(given: str, *, cwd: Path | None = None) -> tuple[Path, str, str]:
    """A file that was named, whoever it was written for: where it is, how a person calls it, its text."""
    start = Path(os.path.abspath(cwd)) if cwd else here()
    file = _given(start / Path(given).expanduser(), given)
    return (file, *_text(file, start))


def _text(file: Path, start: Path) -> tuple[str, str]:
    from heliostat.core.decode import decode_bytes

    shown = _shown(file, start)
    return shown, decode_bytes(_read(file, shown), shown)


def _given(file: Path, given: str) -> Path:
    try:
        inside = file.is_dir() and (file / NAME).is_file()
        if not inside and file.is_dir():
            raise UsageError(
                f"{given} is a directory without a {NAME}",
                fix=f"name a file, or write one there: helio init {given}",
            )
        file.stat()
    except FileNotFoundError:
        raise UsageError(
            f"there is no file {given}", why=_similar(file), fix="helio init writes one"
        ) from None
    except OSError as error:
        raise UsageError(f"{given} cannot be reached", why=str(error.strerror)) from error
    return Path(os.path.abspath(file / NAME if inside else file))


def _similar(file: Path) -> str:
    """Name the file of that folder that was probably meant."""
    from difflib import get_close_matches

    try:
        names = [entry.name for entry in file.parent.iterdir() if entry.is_file()]
    except OSError:
        return f"the folder {file.parent} is not there either, or not readable"
    close = get_close_matches(file.name, names, n=1)
    return f"did you mean {close[0]}?" if close else ""


def _read(file: Path, shown: str) -> bytes:
    try:
        with open(file, "rb", opener=_without_waiting) as stream:
            data = stream.read(MAX_BYTES + 1)  # a device or a video must not fill the memory
    except PermissionError:
        raise UsageError(f"{shown} may not be read", fix=f"allow it: chmod u+r {shown}") from None
    except OSError as error:
        raise UsageError(f"{shown} cannot be read", why=str(error.strerror)) from error
    if len(data) > MAX_BYTES:
        raise FileError(
            [Problem(f"the file is larger than {MAX_BYTES:,} bytes; is it the right one?", shown)]
        )
    return data


def _without_waiting(path: str, flags: int) -> int:
    """Open it even if it is a pipe that nobody writes to, which then reads as an empty file."""
    if not hasattr(os, "O_NONBLOCK"):
        return os.open(path, flags)
    fd = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(fd, True)  # one that somebody writes to, as with -f <(command), is read to its end
    return fd


def _shown(file: Path, start: Path) -> str:
    """The file's name as a person would type it here."""
    return str(file.relative_to(start)) if file.is_relative_to(start) else str(file)


def _overlooked(start: Path) -> tuple[str, ...]:
    other = start / OTHER_NAME
    return (f"{other.name} is not read; rename it to {NAME}",) if other.is_file() else ()
