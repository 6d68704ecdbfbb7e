"""Send the folder that a run works in."""

from __future__ import annotations

import asyncio
import os
import secrets
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heliostat.core import tree as trees
from heliostat.core.errors import Unavailable, UsageError
from heliostat.core.event import Level, Note, Progress
from heliostat.core.resource import Ref
from heliostat.core.sync import Sent
from heliostat.engine.ports import Emit, Shell, Site
from heliostat.engine.sync.call import order
from heliostat.engine.sync.digests import TRIES, changing
from heliostat.engine.sync.feed import ChangedMeanwhileError, pieces, portions
from heliostat.engine.sync.scan import Scan, cache_file, scan
from heliostat.engine.sync.sending import INLINE, Line
from heliostat.engine.sync.spreading import spread
from heliostat.engine.sync.stores import distinct

MOST = 2 * 10**9  # bytes that go without being asked for
OUTPUTS = "outputs"  # a run's folder for what it makes, there and here


def run_dir(ref: Ref, run: str) -> str:
    """The directory of a run on a node: `work/` and `outputs/` are inside."""
    return f"{ref.facts['home']}/runs/{run}"


async def send_work(site: Site, nodes: Sequence[Ref], folder: Path, run: str, *, force: bool = False) -> Sent:
    """Lay a private, writable copy of the folder at <home>/runs/<run>/work on every disk of these nodes."""
    folder = folder.resolve()
    refuse_everything(folder, force=force)
    changed = b""
    for _ in range(TRIES):
        found = await asyncio.to_thread(scan, folder)
        refuse_much(folder, found, force=force)
        parcel = await asyncio.to_thread(Parcel.of, folder, found)
        try:
            moved = await _everywhere(site, distinct(nodes), parcel, run)
        except ChangedMeanwhileError as error:
            changed = error.path
            continue
        await asyncio.to_thread(parcel.remember)
        return _sent(site, found, parcel, moved)
    raise changing(changed)


def refuse_everything(folder: Path, *, force: bool) -> None:
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", why="there is nothing to send", fix="check --work")
    if not force and folder in (Path.home().resolve(), Path(folder.anchor)):
        raise UsageError(
            f"{folder} is not sent as a work folder",
            why="that is all that you have here",
            fix="start in the project's folder, or name one: --work FOLDER",
        )


def refuse_much(folder: Path, found: Scan, *, force: bool) -> None:
    if force or found.size <= MOST:
        return
    big = max(found.tree.items(), key=lambda each: (trees.content(each[1]) or (b"", 0))[1])
    raise UsageError(
        f"{folder} holds {found.size / 10**9:.1f} GB in {found.files:,} files",
        why=f"more than {MOST // 10**9} GB are only sent on purpose; the largest is {os.fsdecode(big[0])}",
        fix=f"leave something out in .helioignore, or say so: --work {folder}",
    )


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is to be there, and how it differs from what was sent last."""

    folder: Path
    root: bytes
    tree: dict[bytes, bytes]
    encoded: bytes
    digest: str
    base: str  # the digest of what was sent last from this folder
    changes: dict[bytes, bytes]

    @classmethod
    def of(cls, folder: Path, found: Scan) -> Parcel:
        try:
            last = cache_file(folder, "sent").read_bytes()
            before = trees.decode(last)
        except (OSError, ValueError):
            last, before = b"", {}
        base, changes = trees.digest(last), trees.difference(before, found.tree)
        if not changes:
            return cls(folder, found.root, found.tree, last, base, base, {})
        encoded = trees.encode_changed(before, changes)
        return cls(folder, found.root, found.tree, encoded, trees.digest(encoded), base, changes)

    def remember(self) -> None:
        """For the next time; failing to only costs time then."""
        if self.base == self.digest:
            return
        path = cache_file(self.folder, "sent")
        part = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            part.write_bytes(self.encoded)
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)


async def _everywhere(site: Site, nodes: Sequence[Ref], parcel: Parcel, run: str) -> list[Line]:
    """The head first; the others from it where the place can do that, else from here, all at once."""
    session = f"run-{secrets.token_hex(8)}"
    first, others = nodes[0], nodes[1:]
    lines = [await _one(site, first, parcel, run, session)]
    if lines[0].moved_bytes > INLINE:
        await spread(site.ground, first, others, session)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_one(site, ref, parcel, run, session)) for ref in others]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return lines + [task.result() for task in tasks]


async def _one(site: Site, ref: Ref, parcel: Parcel, run: str, session: str) -> Line:
    async with site.ground.shell(ref) as shell:
        line = Line(shell, ref, session, reporter(site.emit, f"files to {ref.key}"))
        await _lay(line, parcel, run, shell)
        return line


@dataclass(slots=True)
class reporter:  # noqa: N801 - used like a function
    """Tells how much has moved."""

    emit: Emit
    what: str
    done: int = 0

    def __call__(self, size: int) -> None:
        self.done += size
        self.emit(Progress(what=self.what, done=self.done, total=None, unit="bytes"))


async def _lay(line: Line, parcel: Parcel, run: str, shell: Shell) -> None:
    """One order when the node has what was sent last and little has changed; else what it lacks, and then."""
    about = {"run": run, "tree": parcel.digest, "session": line.session, "files": len(parcel.tree)}
    changes, inline = await asyncio.to_thread(_inline, parcel)
    packed = zlib.compress(trees.encode(changes), 1) if inline is not None else b""
    ask = {**about, "base": parcel.base, "whole": inline is not None, "length": len(packed)}
    answer = await order(shell, line.ref, "begin", ask, packed + (inline or b""))
    if answer["done"]:
        if inline and answer["how"] != "there":
            line.moved_files, line.moved_bytes = len(trees.contents(changes)), len(inline)
            line.report(len(inline))
        return
    lacks = "lacks" in answer
    based = not lacks and answer["base"]
    part = parcel.changes if based else parcel.tree
    await line.deliver(parcel.root, part, empty=not lacks and answer["empty"])
    packed = await asyncio.to_thread(zlib.compress, trees.encode(part), 1)
    ask = {**about, "base": parcel.base if based else "", "length": len(packed)}
    answer = await order(shell, line.ref, "lay", ask, packed)
    if not answer["done"]:
        raise Unavailable(
            f"{line.ref.key} lost files while they arrived", why=answer["lacks"], fix="run this again"
        )


def _inline(parcel: Parcel) -> tuple[dict[bytes, bytes], bytes | None]:
    """The changes with all of their contents, when that is little."""
    wanted = trees.contents(parcel.changes)
    if not parcel.base or sum(wanted.values()) > INLINE:
        return parcel.changes, None
    starts = dict.fromkeys(wanted, 0)
    data = b"".join(part for part, _ in portions(parcel.root, pieces(parcel.changes, starts)))
    return parcel.changes, data


def _sent(site: Site, found: Scan, parcel: Parcel, lines: Sequence[Line]) -> Sent:
    tell_odd(site.emit, found)
    return Sent(
        files=found.files,
        size=found.size,
        moved_files=sum(line.moved_files for line in lines),
        moved_bytes=sum(line.moved_bytes for line in lines),
        left_out=tuple(sorted(map(os.fsdecode, found.secrets))),
        outside=tuple(sorted(map(os.fsdecode, [*found.outside, *found.special, *found.own]))),
        digest=parcel.digest,
    )


def tell(emit: Emit, found: Scan) -> None:
    """What was left out, and how to take it on purpose."""
    if found.secrets:
        text = f"left out, they look like credentials: {_few(found.secrets)}"
        emit(Note(text=f"{text} (to send one: a line !NAME in .helioignore)", level=Level.WARN))
    tell_odd(emit, found)


def tell_odd(emit: Emit, found: Scan) -> None:
    """What cannot be sent as it is."""
    if found.outside:
        emit(Note(text=f"left out, links that lead elsewhere: {_few(found.outside)}", level=Level.WARN))
    if found.own:
        emit(Note(text=f"left out, heliostat's own folders: {_few(found.own)}", level=Level.WARN))
    if found.special:
        emit(Note(text=f"left out, no files or folders: {_few(found.special)}", level=Level.WARN))


def _few(paths: Sequence[bytes]) -> str:
    shown = ", ".join(os.fsdecode(path) for path in sorted(paths)[:8])
    return f"{shown} and {len(paths) - 8} more" if len(paths) > 8 else shown
