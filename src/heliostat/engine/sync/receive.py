"""Write down what a node sends: whole files only, and nothing outside of one folder, whatever it says."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from heliostat.core.errors import Conflict, HelioError, Unavailable
from heliostat.core.trouble import trouble

PARTS = ".helio-parts"  # in the folder that receives, while something is on its way
LONGEST = 1 << 20  # bytes of one line


def parts_of(into: Path) -> dict[str, dict[str, Any]]:
    """The beginnings of files that an earlier transfer left, by path."""
    found: dict[str, dict[str, Any]] = {}
    for about in (into / PARTS).glob("*.about"):
        try:
            told = json.loads(about.read_bytes())
            size = about.with_suffix("").stat().st_size
            found[told["path"]] = {"size": size, "mark": told["mark"]}
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


class Receiver:
    """Fed with bytes as they come. `single`: the one file that was asked for goes to exactly that place."""

    def __init__(self, into: Path, node: str, taken: frozenset[str], moved: Callable[[int], None]) -> None:
        self.into = into
        self.node = node
        self.taken = taken  # names that another node's files have here
        self.moved = moved
        self.single: Path | None = None
        self.names: list[str] = []
        self.outside: list[str] = []
        self.end: dict[str, Any] | None = None
        self.moved_files = self.moved_bytes = self.size = 0
        self.said = b""
        self._held = bytearray()
        self._step: Callable[[], bool] = self._line
        self._left = 0
        self._file: BinaryIO | None = None
        self._about: dict[str, Any] = {}
        self._whole = hashlib.sha256()
        self._modes: list[tuple[Path, int]] = []

    def feed(self, stream: str, data: bytes) -> None:
        if stream != "stdout":
            self.said = (self.said + data)[-4000:]
            return
        self._held += data
        try:
            while self._step():
                continue
        except OSError as error:
            raise trouble(error, f"cannot write into {self.into}") from error

    def close(self) -> None:
        """After the last byte, or a cut: what is not whole stays aside for the next time."""
        if self._file is not None:
            self._file.close()
            self._file = None
        for path, mode in reversed(self._modes):
            path.chmod(mode)
        folder = self._parts()
        try:
            folder.rmdir()
        except OSError:
            return  # not empty, or never made

    def _take_line(self) -> bytes | None:
        end = self._held.find(b"\n")
        if end < 0:
            if len(self._held) > LONGEST:
                raise self._nonsense("a line without an end")
            return None
        line = bytes(self._held[:end])
        del self._held[: end + 1]
        return line

    def _line(self) -> bool:
        line = self._take_line()
        if line is None:
            return False
        try:
            told = json.loads(line)
            if "errno" in told:
                error = OSError(told["errno"], told["strerror"], told["filename"])
                raise trouble(error, f"{self.node} cannot read", wanted="readable")
            if told.get("end"):
                self.end = told
                return True
            self._thing(told)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._nonsense(f"{type(error).__name__}: {error}") from error
        return True

    def _thing(self, told: dict[str, Any]) -> None:
        name, kind = str(told["path"]), told["kind"]
        if kind != "d" and name in self.taken and not told.get("same"):
            name = f"{self.node}/{name}"  # another node has brought a different one
        place = self._place(name)
        if kind == "d":
            self._folder(place, int(told["mode"]))
        elif kind == "l":
            self._link(place, name, str(told["target"]))
        elif kind == "f":
            self.size += int(told["size"])
            self.names.append(name or place.name)
            if not told.get("same"):
                self._open(told, place)
        else:
            raise ValueError(f"{kind!r} is no kind")

    def _place(self, name: str) -> Path:
        """Where that is here; never outside, never through a link."""
        if not name:
            return self.single or self.into
        parts = name.split("/")
        odd = os.name == "nt" and any(letter in name for letter in '\\:*?"<>|')
        if odd or "\0" in name or any(part in ("", ".", "..") for part in parts) or parts[0] == PARTS:
            raise self._nonsense(f"a file cannot be called {name!r}")
        at = self.into
        for part in parts[:-1]:
            at = at / part
            if at.is_symlink():
                raise self._through(at, name)
            at.mkdir(parents=True, exist_ok=True)
        return at / parts[-1]

    def _through(self, link: Path, name: str) -> HelioError:
        why = f"{name} would be written through it"
        return Conflict(f"{link} is a link here", why=why, fix="move the link away")

    def _folder(self, place: Path, mode: int) -> None:
        if place.is_symlink() and place != self.into:
            raise self._through(place, place.name)
        place.mkdir(parents=True, exist_ok=True)
        if place != self.into and os.name == "posix" and place.stat().st_mode & 0o777 != mode & 0o777:
            place.chmod(mode & 0o777 | 0o700)
            if mode & 0o700 != 0o700:
                self._modes.append((place, mode & 0o777))

    def _link(self, place: Path, name: str, target: str) -> None:
        goal = os.path.normpath(os.path.join(os.path.dirname(place), target))
        if os.path.isabs(target) or not Path(goal).is_relative_to(os.path.normpath(self.into)):
            self.outside.append(name)
            return
        self._clear(place)
        os.symlink(target, place)
        self.names.append(name)

    def _clear(self, place: Path) -> None:
        if place.is_dir() and not place.is_symlink():
            raise Conflict(f"{place} is a folder here", why="it is none on the node", fix="move it away")
        place.unlink(missing_ok=True)

    def _open(self, told: dict[str, Any], place: Path) -> None:
        """The file grows beside its place; what is there of it already is counted in."""
        name, offset = str(told["path"]), int(told["offset"])
        folder = self._parts()
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / hashlib.sha256(os.fsencode(name)).hexdigest()[:24]
        mark = f"{told['size']}-{told['mtime']}"
        if offset == 0:
            part.unlink(missing_ok=True)
        part.with_suffix(".about").write_text(json.dumps({"path": name, "mark": mark}))
        self._file = part.open("r+b" if offset else "wb")
        self._whole = hashlib.sha256()
        left = offset
        while left and (data := self._file.read(min(left, 1 << 20))):
            self._whole.update(data)
            left -= len(data)
        if left:
            raise self._nonsense("it goes on from where nothing is")
        self._file.truncate(offset)
        self._about = {"part": part, "place": place, "mode": int(told["mode"]), "mtime": int(told["mtime"])}
        self._step = self._length

    def _length(self) -> bool:
        line = self._take_line()
        if line is None:
            return False
        if not line.isdigit():
            raise self._nonsense("a length that is none")
        self._left = int(line)
        self._step = self._data if self._left else self._last
        return True

    def _data(self) -> bool:
        assert self._file is not None  # noqa: S101 - it is open in this step
        data = bytes(self._held[: self._left])
        if not data:
            return False
        del self._held[: len(data)]
        self._file.write(data)
        self._whole.update(data)
        self._left -= len(data)
        self.moved_bytes += len(data)
        self.moved(len(data))
        if not self._left:
            self._step = self._length
        return True

    def _last(self) -> bool:
        """The digest of the whole: only then the file gets its name."""
        line = self._take_line()
        if line is None:
            return False
        assert self._file is not None  # noqa: S101 - it is open in this step
        self._file.close()
        self._file = None
        part, place = self._about["part"], self._about["place"]
        good = json.loads(line).get("digest") == self._whole.hexdigest()
        part.with_suffix(".about").unlink(missing_ok=True)
        if not good:
            part.unlink()
            raise Unavailable(f"{place} arrived with other bytes than were sent", fix="run this again")
        if place.is_dir() and not place.is_symlink():
            self._clear(place)
        if os.name == "posix":
            part.chmod(self._about["mode"] & 0o777)
        os.utime(part, ns=(self._about["mtime"], self._about["mtime"]))
        place.parent.mkdir(parents=True, exist_ok=True)
        part.replace(place)
        self.moved_files += 1
        self._step = self._line
        return True

    def cut(self) -> HelioError:
        """The stream had no end."""
        said = self.said.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else "it stopped before the end; what has arrived is kept"
        return Unavailable(f"files from {self.node} did not all arrive", why=why, fix="run this again")

    def _parts(self) -> Path:
        return (self.single.parent if self.single else self.into) / PARTS

    def _nonsense(self, why: str) -> HelioError:
        return Unavailable(f"{self.node} sent what cannot be read", why=why, fix="run this again")
