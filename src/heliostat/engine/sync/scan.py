"""A folder of this machine as a tree: what goes, what is left out, and what has been read before."""

from __future__ import annotations

import gc
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from heliostat.core import tree
from heliostat.core.credentials import by_name
from heliostat.core.ignore import Rules
from heliostat.core.trouble import trouble
from heliostat.engine.home import cache_dir
from heliostat.engine.sync.digests import SECRET, Known, signature
from heliostat.engine.sync.own import LABEL_FILE, is_labelled, own_dirs

GIT, OWN = b".gitignore", b".helioignore"
Count = Callable[[int], None]


@dataclass(slots=True)
class Scan:
    """What was found."""

    root: bytes
    tree: dict[bytes, bytes] = field(default_factory=dict)
    secrets: list[bytes] = field(default_factory=list)  # credential-looking: left out
    outside: list[bytes] = field(default_factory=list)  # links that lead out of the folder: left out
    special: list[bytes] = field(default_factory=list)  # sockets, pipes, devices: left out
    own: list[bytes] = field(default_factory=list)  # where heliostat keeps clusters and its notes: left out
    files: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Level:
    """The ignore files that hold in a folder, the innermost first, each with the length of its own path."""

    git: tuple[tuple[int, Rules], ...] = ()
    own: tuple[tuple[int, Rules], ...] = ()


def cache_file(folder: Path, kind: str) -> Path:
    """Where what is known of a folder is kept."""
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
    made = cache_dir() / "sync"
    made.mkdir(mode=0o700, exist_ok=True)
    return made / f"{name}.{kind}"


def scan(folder: Path, *, git: bool = True, count: Count | None = None) -> Scan:
    """Look at every file, and read those that are not known. `git`: its ignore files hold, .git stays."""
    known = Known.of(cache_file(folder, "files"))
    walker = Walker(Scan(os.fsencode(folder)), known, git, count)
    collecting = gc.isenabled()
    gc.disable()  # a hundred thousand new records and no cycle: looking for one takes longer than the scan
    try:
        walker.walk()
    except OSError as error:
        raise trouble(
            error,
            f"cannot look into {folder}",
            instead="leave it out: name it in .helioignore",
            wanted="readable",
        ) from error
    finally:
        if collecting:
            gc.enable()
    known.save()
    return walker.found


class Walker:
    """One pass over a folder."""

    def __init__(self, found: Scan, known: Known, git: bool, count: Count | None) -> None:
        self.found = found
        self.known = known
        self.git = git
        self.count = count
        self.above = b""  # from git's own root to the folder, with a slash
        here = os.path.realpath(found.root).rstrip(b"/") + b"/"
        self.own = {path[len(here) :] for path in own_dirs() if path.startswith(here)}

    def walk(self) -> None:
        todo = [(b"", self._above() if self.git else Level())]
        while todo:
            folder, level = todo.pop()
            with os.scandir(self.found.root + b"/" + folder if folder else self.found.root) as listing:
                entries = list(listing)
            names = {entry.name for entry in entries}
            if folder and self._ours(folder, names):
                self.found.own.append(folder + b"/")
                del self.found.tree[folder]
                continue
            if OWN in names or (self.git and GIT in names):
                level = self._deeper(folder, level, names)
            todo += [(path, level) for path in self._entries(entries, folder, level)]
            if self.count is not None:
                self.count(self.found.files)

    def _ours(self, folder: bytes, names: set[bytes]) -> bool:
        if folder in self.own:
            return True
        return LABEL_FILE in names and is_labelled(self.found.root + b"/" + folder)

    def _entries(self, entries: list[os.DirEntry[bytes]], folder: bytes, level: Level) -> list[bytes]:
        """Take all of a folder in; the folders to walk. The short way is for files that are as they were."""
        prefix, below = folder + b"/" if folder else b"", []
        tree, new = self.found.tree, self.known.new
        # Where a rule may leave it out, and what was secret, must be looked at by name.
        old = {} if level.git or level.own else self.known.old
        files = size = 0
        for entry in entries:
            path = prefix + entry.name
            seen = entry.stat(follow_symlinks=False)
            known = old.get(path)
            if known is not None and known[0] == signature(seen) and known[1][:1] != SECRET:
                new[path] = known
                tree[path] = known[1]
                files += 1
                size += seen.st_size
            elif self._entry(entry, seen, path, level):
                below.append(path)
        self.found.files += files
        self.found.size += size
        return below

    def _entry(self, entry: os.DirEntry[bytes], seen: os.stat_result, path: bytes, level: Level) -> bool:
        """Take one in; whether it is a folder to walk."""
        kind = stat.S_IFMT(seen.st_mode)
        folder = kind == stat.S_IFDIR
        chosen = self._ignored(path, entry.name, folder, level) if level.git or level.own else None
        if chosen or (self.git and entry.name == b".git"):
            return False
        if chosen is None and by_name(entry.name, folder):
            self.found.secrets.append(path + b"/" if folder else path)
            return False
        if folder:
            self.found.tree[path] = tree.folder(seen.st_mode if os.name == "posix" else 0o755)
            return True
        if kind == stat.S_IFREG:
            self._file(path, entry.path, seen, on_purpose=chosen is False)
        elif kind == stat.S_IFLNK:
            self._link(path, entry.path)
        else:
            self.found.special.append(path)
        return False

    def _file(self, path: bytes, full: bytes, seen: os.stat_result, *, on_purpose: bool) -> None:
        if seen.st_size and seen.st_ino == 0:  # Windows: a listing has neither the number nor all times
            seen = os.stat(full, follow_symlinks=False)
        value = self.known.value(path, full, seen)
        if value[:1] == SECRET:
            if not on_purpose:
                self.found.secrets.append(path)
                return
            value = value[1:]
        if on_purpose:
            self.known.new.pop(path, None)  # what is known skips the look at names
        self.found.tree[path] = value
        self.found.files += 1
        self.found.size += seen.st_size

    def _link(self, path: bytes, full: bytes) -> None:
        """A link stays one, when it leads to somewhere inside."""
        target = os.readlink(full)
        at = os.path.dirname(full)
        root = self.found.root
        goal = os.path.normpath(os.path.join(at, target))
        if goal != root and not goal.startswith(root.rstrip(b"/") + b"/"):
            self.found.outside.append(path)
            return
        if os.path.isabs(target):
            target = os.path.relpath(goal, at)
        self.found.tree[path] = tree.link(target.replace(os.fsencode(os.sep), b"/"))

    def _ignored(self, path: bytes, name: bytes, folder: bool, level: Level) -> bool | None:
        """True: left out. False: taken on purpose, by .helioignore. None: nobody leaves it out."""
        for start, rules in level.own:
            said = rules.ignores(path[start:], name, folder)
            if said is not None:
                return said
        whole = self.above + path
        for start, rules in level.git:
            said = rules.ignores(whole[start:], name, folder)
            if said is not None:
                return said or None
        return None

    def _deeper(self, folder: bytes, level: Level, names: set[bytes]) -> Level:
        start = len(folder) + 1 if folder else 0
        git, own = level.git, level.own
        at = self.found.root + b"/" + folder
        if self.git and GIT in names:
            git = ((len(self.above) + start, _rules(os.path.join(at, GIT))), *git)
        if OWN in names:
            own = ((start, _rules(os.path.join(at, OWN))), *own)
        return Level(git, own)

    def _above(self) -> Level:
        """The ignore files between here and the top of git's work tree hold here, too."""
        folders = list(_up_to_git(self.found.root))
        if not folders:
            return Level()
        top = folders[-1]
        inside = os.path.relpath(self.found.root, top).replace(os.fsencode(os.sep), b"/")
        self.above = b"" if inside == b"." else inside + b"/"
        exclude = os.path.join(top, b".git", b"info", b"exclude")
        git = [(0, _rules(exclude))] if os.path.isfile(exclude) else []
        for at in reversed(folders[1:]):
            if os.path.isfile(os.path.join(at, GIT)):
                below = os.path.relpath(at, top)
                git.insert(0, (0 if below == b"." else len(below) + 1, _rules(os.path.join(at, GIT))))
        return Level(tuple(git))


def _up_to_git(root: bytes) -> Iterator[bytes]:
    """This folder and those above it, to the one that has .git; nothing when none has."""
    at, folders = root, []
    while True:
        folders.append(at)
        if os.path.exists(os.path.join(at, b".git")):
            yield from folders
            return
        up = os.path.dirname(at)
        if up == at:
            return
        at = up


def _rules(path: bytes) -> Rules:
    with open(path, "rb") as file:
        return Rules(file.read())
