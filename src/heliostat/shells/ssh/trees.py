"""Files and folders as a tar stream; under its name a file always stands whole."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from heliostat.core.errors import Denied, UsageError

# Lays a tar from standard input at "$1" ($2: the name of a single file, or empty): first all of it beside
# its place, then moved into it, a folder at a time, so that thousands of files need few processes.
UNPACK = r"""
set -e
to=$1
if [ -n "$2" ]; then
    if [ -d "$to" ]; then name=$2; else name=$(basename -- "$to"); to=$(dirname -- "$to"); fi
fi
mkdir -p -- "$to"
to=$(cd -- "$to" && pwd)
part=$(mktemp -d "$to/.helio-part-XXXXXX")
trap 'rm -rf -- "$part"' EXIT
trap 'exit 143' HUP INT TERM
tar -xpof - -C "$part"
if [ -n "$2" ]; then
    mv -f -- "$part/$2" "$to/$name"
    exit 0
fi
cd -- "$part"
find . -type d -print0 | xargs -0 sh -c '
    for at; do
        mkdir -p -- "$0/$at" || exit
        find "$at" -mindepth 1 -maxdepth 1 ! -type d -exec mv -f -t "$0/$at" -- {} + || exit
    done' "$to"
"""

PACK = r"""
if [ -d "$1" ]; then
    echo folder
    cd -- "$1" && exec tar -cf - .
elif [ -e "$1" ] || [ -L "$1" ]; then
    echo file
    cd -- "$(dirname -- "$1")" && exec tar -cf - "./$(basename -- "$1")"
fi
echo "$1: there is no such file or folder" >&2
exit 3
"""


def write(source: Path, stream: IO[bytes]) -> None:
    """A folder's contents, or one file, as a tar; sockets and the like stay here."""
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as tar:
        if not source.is_dir():
            _add(tar, source, source.name)
            return
        for folder, folders, names in os.walk(source):
            inside = os.path.relpath(folder, source)
            for name in sorted((*folders, *names)):
                _add(tar, Path(folder, name), os.path.normpath(os.path.join(inside, name)))


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    with suppress(FileNotFoundError):  # it went away while we walked
        info = tar.gettarinfo(path, arcname=f"./{name}")
        if info is None:
            return
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        if info.isreg():
            with path.open("rb") as file:
                tar.addfile(info, file)
        else:
            tar.addfile(info)


def read(stream: IO[bytes], target: Path) -> None:
    """Lay what `PACK` sent at that path, as `cp` would."""
    kind = stream.readline().strip()
    if kind not in (b"folder", b"file"):
        return  # there is nothing: the other side says why
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        if kind == b"folder":
            target.mkdir(parents=True, exist_ok=True)
            for member in tar:
                if (inside := _inside(member.name)) != ".":
                    _lay(tar, member, target, target / inside)
        else:
            for member in tar:
                at = target / Path(member.name).name if target.is_dir() else target
                at.parent.mkdir(parents=True, exist_ok=True)
                _lay(tar, member, at.parent, at)


def _inside(name: str) -> str:
    clean = os.path.normpath(name)
    if os.path.isabs(clean) or ".." in clean.split("/"):
        raise Denied(f"the node sent {name}", why="it leads out of the folder that was asked for")
    return clean


def _lay(tar: tarfile.TarFile, member: tarfile.TarInfo, root: Path, at: Path) -> None:
    """One member, whole or not at all; nothing is written through a link that leads elsewhere."""
    if os.path.commonpath([at.parent.resolve(), root.resolve()]) != str(root.resolve()):
        raise Denied(f"the node sent {member.name}", why="a link on its way leads out of the folder")
    if member.isdir():
        at.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            at.chmod((member.mode & 0o777) | 0o700)
        return
    if not (member.isreg() or member.issym() or member.islnk()):
        return
    handle, part = tempfile.mkstemp(dir=at.parent, prefix=f".{at.name[:100]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            if member.isreg():
                content = tar.extractfile(member)
                if content is not None:
                    shutil.copyfileobj(content, file, 1 << 18)
        if member.issym():
            os.unlink(part)
            os.symlink(member.linkname, part)
        elif member.islnk():
            shutil.copy2(root / _inside(member.linkname), part)
        else:
            os.chmod(part, member.mode & 0o777)
            os.utime(part, (member.mtime, member.mtime))
        os.replace(part, at)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part)
        raise


def must_exist(source: Path) -> None:
    if not source.exists():
        raise UsageError(f"{source} does not exist", why="there is nothing to copy", fix="check the path")
