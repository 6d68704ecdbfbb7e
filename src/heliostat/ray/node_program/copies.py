"""Copies of a person's files on a machine, at paths of their choice. Standard library only: it is sent there.

A copy is ours when a mark on it (an extended attribute) names our cluster and this very path, and its inode
is the one in our record. Nothing else is ever overwritten or removed. The contents come by the engine's sync,
between `begin` and `finish`: beside the target first, so that no crash leaves what nobody finds.
"""

from __future__ import annotations

import errno
import fcntl
import glob
import hashlib
import json
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from heliostat.ray.node_program.belongings import (
    Data,
    Refusal,
    base,
    home_of,
    private_dir,
    read,
    remove_tree,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "user.heliostat"


def do_copy_begin(order: Data) -> Data:
    """Where the contents may go; refused when something else stands in the way."""
    home, target = home_of(order), place(order["target"])
    refuse_our_own(target)
    mark = mark_of(order, target)
    path = record(home, target)
    before = read(path)
    part = target + ".helio-" + mark
    here = os.path.lexists(target)
    if here and not ours(before, target, mark):
        raise Refusal(
            "conflict",
            f"files: {target} exists already",
            "this cluster did not put it there, so it is neither overwritten nor removed",
            "move it away, or name another path in `files`",
        )
    facts = dict(before.get("facts") or {}, target=target, part=part, mark=mark, host=order["host"])
    if not here:
        make_parents(home, os.path.dirname(target))
    elif os.path.isdir(target) and order["folder"]:
        save(path, order["label"], facts, keep=before)
        return {"home": home, "at": target}
    save(path, order["label"], facts, keep=before)
    if order["folder"]:
        os.makedirs(part, 0o755, exist_ok=True)
        put_mark(part, mark)
    return {"home": home, "at": part}


def do_copy_finish(order: Data) -> Data:
    """What was laid becomes the copy, and the record says so."""
    home, target = home_of(order), place(order["target"])
    path, mark = record(home, target), mark_of(order, target)
    before = read(path)
    facts = dict(before.get("facts") or {})
    part = facts.get("part", "")
    if os.path.lexists(part):
        put_mark(part, mark)
        facts.update(was=facts.get("inode", ""), inode=inode(part))
        save(path, order["label"], facts, keep=before)
        move(part, target, before, mark)
    if not marked(target, mark):
        what = f"files: {target} was taken by something else while it was copied"
        raise Refusal("conflict", what, "what stands there now is left alone", "run this again")
    facts.update(was="", inode=inode(target))
    label = dict(order["label"], run=before.get("run") or order["label"]["run"])
    save(path, label, facts)  # what is brought up to date is still whose it was
    return {}


def move(part: str, target: str, before: Data, mark: str) -> None:
    """Put it under its name: onto nothing, or in the place of what was ours there."""
    if os.path.lexists(target):
        if ours(before, target, mark) and (before.get("facts") or {}).get("inode"):
            if os.path.isdir(target) or os.path.isdir(part):
                remove(target)
            os.rename(part, target)
        else:  # another machine with the same disk was first, or a stranger
            remove(part)
    elif os.path.isdir(part):
        os.rename(part, target)
    else:
        with suppress(FileExistsError):
            os.link(part, target)  # fails where anything has appeared
        os.unlink(part)


def do_copy_drop(order: Data) -> Data:
    """Remove a copy and then its record; what is not ours any more stays."""
    home = home_of(order)
    path = record(home, place(order["target"]))
    label = read(path)
    facts = label.get("facts") or {}
    mark, target = facts.get("mark", ""), facts.get("target", "")
    remove(facts.get("part", ""))
    if ours(label, target, mark):
        remove(target)
    with parents(home) as known:
        for folder in sorted(known, key=len, reverse=True):
            with suppress(OSError):  # somebody uses it by now, or another copy does
                os.rmdir(folder)
        known[:] = [folder for folder in known if os.path.isdir(folder)]
    with suppress(FileNotFoundError):
        os.unlink(path)
    return {}


def listed(home: str) -> list[Data]:
    """Every copy that the cluster has a record of here, and what is wrong with it."""
    found = []
    for path in sorted(glob.glob(os.path.join(glob.escape(home), "files", "*.json"))):
        label = read(path)
        facts = label.get("facts") or {}
        target = facts.get("target", "")
        if label.get("kind") == "files":
            whole = ours(label, target, facts.get("mark", ""))
            why = "" if whole else f"what was copied to {target} is not there any more"
            found.append({"label": label, "why": why})
    return found


# What is ours


def place(target: str) -> str:
    """Where that is: as scp, relative to the account's home."""
    return os.path.normpath(os.path.join(os.path.expanduser("~"), os.path.expanduser(target)))


def mark_of(order: Data, target: str) -> str:
    """The same on every machine of the cluster: their disks may be one."""
    return hashlib.sha256("{}\0{}".format(order["id"], target).encode()).hexdigest()[:16]


def record(home: str, target: str) -> str:
    return os.path.join(home, "files", hashlib.sha256(target.encode()).hexdigest()[:16] + ".json")


def save(path: str, label: Data, facts: Data, keep: Data | None = None) -> None:
    """`keep`: until the copy is whole, the record says of it what it said before."""
    private_dir(os.path.dirname(path))
    made = keep or label
    whole = dict(made, facts=dict(made.get("facts") or {}, **facts))
    write(path, json.dumps(whole, separators=(",", ":"), sort_keys=True))


def marked(path: str, mark: str) -> bool:
    try:
        return bool(mark) and os.getxattr(path, MARK, follow_symlinks=False).decode() == mark
    except OSError:
        return False


def ours(label: Data, path: str, mark: str) -> bool:
    """Whether what stands there is what this cluster made, from here or from a machine with the same disk."""
    facts = label.get("facts") or {}
    known = [one for one in (facts.get("inode"), facts.get("was")) if one]
    return marked(path, mark) and (not known or inode(path) in known)


def put_mark(path: str, mark: str) -> None:
    try:
        os.setxattr(path, MARK, mark.encode(), follow_symlinks=False)
    except OSError as error:
        remove(path)
        if error.errno not in (errno.ENOTSUP, errno.EPERM):
            raise
        raise Refusal(
            "missing",
            f"files: nothing can be copied to {os.path.dirname(path)} safely",
            "its file system cannot mark a file as ours (extended attributes)",
            "choose a path on another disk",
        ) from error


def inode(path: str) -> str:
    found = os.lstat(path)
    return f"{found.st_dev}:{found.st_ino}"


def remove(path: str) -> None:
    """A file or folder of this account; absent is fine."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISDIR(found.st_mode):
        remove_tree(path)
    elif found.st_uid == os.getuid():
        os.unlink(path)


@contextmanager
def parents(home: str) -> Iterator[list[str]]:
    """The folders that were made for copies of this cluster; one process at a time may change the list."""
    path = os.path.join(home, "files", "parents.json")
    private_dir(os.path.dirname(path))
    lock = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = read(path).get("made", [])
        now = list(before)
        yield now
        if now != before:
            write(path, json.dumps({"made": now}))
    finally:
        os.close(lock)


def make_parents(home: str, folder: str) -> None:
    """Make the folders above, and note those that were not there: first noted, so that none is forgotten."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    with parents(home) as known:
        known += [one for one in missing if one not in known]
    for one in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(one, 0o755)


def refuse_our_own(target: str) -> None:
    """A copy over everything that an account has, or among our own things, is a mistake."""
    home = os.path.expanduser("~")
    if os.path.commonpath([target, home]) == target or os.path.commonpath([target, base()]) == base():
        what = f"files: nothing is copied to {target}"
        raise Refusal("conflict", what, "that is more than a copy may take the place of", "name another path")
