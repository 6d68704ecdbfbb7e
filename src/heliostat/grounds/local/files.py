"""The file's `files` on this machine: copies at paths outside our home, which may hold somebody's own things.

A copy is ours when the record in the cluster's home and a mark on the copy itself agree (an extended
attribute, and the same inode). Nothing else is ever overwritten or removed, nor copied onto itself.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from heliostat.core.errors import Conflict, HelioError, MissingPart, UsageError
from heliostat.core.owner import Owner
from heliostat.core.resource import Ref, Resource, State
from heliostat.core.trouble import trouble
from heliostat.grounds.local.find import FILES, label_at
from heliostat.grounds.local.places import home_of, private_dir, remove_tree
from heliostat.grounds.local.start import write
from heliostat.ray.label import Label, label_of
from heliostat.shells.local import copy

MARK = "user.heliostat"


def make_copy(owner: Owner, wanted: Resource) -> None:
    """Put the copy where the file wants it, or say what is in the way."""
    source, target = wanted.body["source"], wanted.body["target"]
    path = record_of(owner, wanted.key)
    before = label_at(Path(path))
    private_dir(os.path.dirname(path))
    try:
        if not os.path.exists(source):
            fix = "correct the path; it is relative to the file that names it"
            raise UsageError(
                f"files: {source} does not exist", why=f"{target} is to be a copy of it", fix=fix
            )
        if os.path.realpath(source) == os.path.realpath(target):
            write(path, label_of(owner, wanted, {"target": target}).text())  # it is there: nothing to copy
            return
        _refuse_nested(source, target)
        if before is not None:
            _remove(before)
        if os.path.lexists(target):
            raise Conflict(
                f"files: {target} exists already",
                why="this cluster did not put it there, so it is neither overwritten nor removed",
                fix="move it away, or leave that line of `files` out on this machine",
            )
        _copy(owner, wanted, path, source, target)
    except OSError as error:
        raise _told(error, target) from error


def _told(error: OSError, target: str) -> HelioError:
    return trouble(error, f"files: cannot copy to {target}", instead="leave that line of `files` out here")


def _refuse_nested(source: str, target: str) -> None:
    one, other = os.path.realpath(source), os.path.realpath(target)
    if os.path.commonpath([one, other]) in (one, other):
        what = f"files: {target} and {source} contain one another"
        raise UsageError(what, why="a folder cannot be copied into itself", fix="choose another path")


def _copy(owner: Owner, wanted: Resource, path: str, source: str, target: str) -> None:
    """Beside the target first, under a mark and a record, so that no crash leaves what nobody finds."""
    made = _make_parents(os.path.dirname(target))
    mark = secrets.token_hex(8)
    part = f"{target}.helio-{mark}"
    facts = {"target": target, "part": part, "mark": mark, "parents": json.dumps(made)}
    if os.path.isdir(source):
        os.mkdir(part, 0o755)
    else:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    try:
        os.setxattr(part, MARK, mark.encode())
    except OSError as error:
        (os.rmdir if os.path.isdir(part) else os.unlink)(part)
        if error.errno not in (errno.ENOTSUP, errno.EPERM):
            raise
        raise MissingPart(
            f"files: nothing can be copied to {target} safely",
            why="its file system cannot mark a file as ours (extended attributes)",
            fix="choose a path on another disk",
        ) from error
    facts["inode"] = inode(part)
    write(path, label_of(owner, wanted, facts).text())
    try:
        if os.path.isdir(source):
            copy(source, part)
            os.rename(part, target)  # fails where a folder with something in it has appeared
        else:
            shutil.copyfile(source, part)
            shutil.copymode(source, part)
            os.link(part, target)  # fails where anything has appeared
            os.unlink(part)
    except BaseException:
        _remove(label_of(owner, wanted, facts))
        os.unlink(path)
        raise


def _make_parents(folder: str) -> list[str]:
    """Make the folders above, and return those that were not there, the innermost first."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for one in reversed(missing):
        os.mkdir(one, 0o755)
    return missing


def inode(path: str) -> str:
    found = os.lstat(path)
    return f"{found.st_dev}:{found.st_ino}"


def is_ours(label: Label, path: str) -> bool:
    """Whether what stands there is the very thing that we made."""
    try:
        mark = os.getxattr(path, MARK, follow_symlinks=False).decode()
        return bool(path) and mark == label.facts.get("mark") and inode(path) == label.facts.get("inode")
    except OSError:
        return False


def record_of(owner: Owner, key: str) -> str:
    return f"{home_of(owner)}/files/{key}.json"


def copies(home: Path) -> Iterator[Ref]:
    """Every copy that this cluster has a record of."""
    for path in sorted(home.glob("files/*.json")):
        label = label_at(path)
        if label is None or label.kind != FILES:
            continue
        target = label.facts.get("target", "")
        whole = "mark" not in label.facts or is_ours(label, target)
        why = {} if whole else {"why": f"what was copied to {target} is not there any more"}
        yield label.ref(
            id=str(path),
            state=State.READY if whole else State.BROKEN,
            removal=f"rm -r {target}",
            facts={**label.facts, **why},
        )


def drop_copy(ref: Ref) -> None:
    """Remove a copy of ours and then its record; what is not ours any more stays."""
    label = label_at(Path(ref.id))
    try:
        if label is not None:
            _remove(label)
        Path(ref.id).unlink(missing_ok=True)
    except OSError as error:
        raise _told(error, ref.facts.get("target", ref.id)) from error


def _remove(label: Label) -> None:
    for path in (label.facts.get("part", ""), label.facts.get("target", "")):
        if is_ours(label, path):
            if os.path.isdir(path):
                remove_tree(path)
            else:
                os.unlink(path)
    for folder in json.loads(label.facts.get("parents", "[]")):
        try:
            os.rmdir(folder)
        except OSError:  # somebody uses it by now, or it is gone
            break
