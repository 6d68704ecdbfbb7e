"""Where a run's words point: the folder that is sent, where the job starts, and its script inside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heliostat.core.errors import UsageError
from heliostat.core.run import RunAsk
from heliostat.core.spec import Spec


@dataclass(frozen=True, slots=True)
class Target:
    """The words as the job sees them from where it starts."""

    command: tuple[str, ...]
    cwd: str | None = None  # relative to the folder that is sent; None: that folder
    work: str | None = None  # a folder instead of the file's; "": none; None: the file's


def target(
    spec: Spec,
    words: Sequence[str],
    *,
    file: bool,
    here: Path,
    work: str | None = None,
    cwd: str | None = None,
) -> Target:
    """Resolve the words of somebody who stands at `here`; `work` and `cwd` are what they said, if anything.

    The job starts where its caller stands, when that is inside; FILE is found as the caller sees it.
    """
    if not words or not words[0].strip():
        raise UsageError("nothing to run", fix="helio run FILE [ARGS…], or: helio run -- COMMAND…")
    root = _root(spec, here, work)
    if root is None:
        return Target(tuple(words), cwd, "")
    start = _start(root, here, cwd)
    first, *rest = words
    if file:
        first = _script(first, root, here, start)
    inside = os.path.relpath(start, root)
    return Target((first, *rest), None if inside == "." else inside, str(root) if work else None)


def run_ask(
    spec: Spec,
    words: Sequence[str],
    *,
    file: bool,
    here: Path,
    work: str | None = None,
    cwd: str | None = None,
    **rest: Any,
) -> RunAsk:
    """What the engine is asked by somebody who stands at `here`: a FILE with its words, or a command."""
    aim = target(spec, words, file=file, here=here, work=work, cwd=cwd)
    python = file and aim.command[0].endswith(".py")
    command = aim.command if python or not file else _program(aim.command)
    return RunAsk(command=command, file=python, cwd=aim.cwd, work=aim.work, **rest)


def _program(command: Sequence[str]) -> tuple[str, ...]:
    """A FILE that is no Python: by what runs it, or itself."""
    first, *rest = command
    if first.endswith((".sh", ".bash")):
        return ("bash" if first.endswith(".bash") else "sh", first, *rest)
    return (first if "/" in first else f"./{first}", *rest)


def _root(spec: Spec, here: Path, work: str | None) -> Path | None:
    """The folder that is sent, if one is."""
    if work == "" or (work is None and spec.work is None):
        return None
    if work is not None:
        root = (here / Path(work).expanduser()).resolve()
        if not root.is_dir():
            raise UsageError(f"there is no folder {work} to send", why=f"looked for {root}")
        return root
    return (Path(spec.folder) / (spec.work or ".")).resolve()


def _start(root: Path, here: Path, cwd: str | None) -> Path:
    if cwd is None:
        return here if here.is_relative_to(root) else root
    start = (root / cwd).resolve()
    if not start.is_relative_to(root) or not start.is_dir():
        raise UsageError(f"there is no folder {cwd} to start in", why=f"looked for {start}, inside {root}")
    return start


def _script(word: str, root: Path, here: Path, start: Path) -> str:
    for base in (here, start, root):
        path = Path(os.path.abspath(base / word))
        if path.is_file():
            break
    else:
        raise UsageError(
            f"there is no file {word} here",
            why=f"it is looked for in {here}" + (f" and in {root}" if root != here else ""),
            fix=f"for a command, put it after --: helio run -- {word}",
        )
    inside = path if path.is_relative_to(root) else path.resolve()
    if not inside.is_relative_to(root):
        raise UsageError(
            f"{word} is not in the folder that is sent",
            why=f"only {root} goes to the cluster",
            fix=f"send its folder: helio run --work {path.parent} {word}",
        )
    name = os.path.relpath(inside, start)
    return f"./{name}" if name.startswith("-") else name  # no option of Python's
