"""Copy files to nodes and from nodes, as a person asks."""

from __future__ import annotations

import asyncio
import os
import secrets
import stat
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heliostat.core import tree as trees
from heliostat.core.errors import Unavailable, UsageError
from heliostat.core.resource import Ref
from heliostat.core.sync import Copied
from heliostat.engine.ports import Emit, Site
from heliostat.engine.sync.call import order
from heliostat.engine.sync.digests import SECRET, TRIES, changing, read
from heliostat.engine.sync.feed import ChangedMeanwhileError
from heliostat.engine.sync.fetch import receive
from heliostat.engine.sync.receive import Receiver
from heliostat.engine.sync.scan import Scan, scan
from heliostat.engine.sync.sending import Line
from heliostat.engine.sync.spreading import Reaching, spread
from heliostat.engine.sync.stores import distinct
from heliostat.engine.sync.work import OUTPUTS, Parcel, reporter, run_dir, tell


async def push(
    site: Site, nodes: Sequence[Ref], local: Path, remote: str, *, delete: bool = False
) -> tuple[Copied, ...]:
    """Copy a file, or a folder's contents, to that path on these nodes; `delete` what is not here."""
    if not os.path.lexists(local):
        raise UsageError(f"{local} does not exist", why="there is nothing to copy", fix="check the path")
    changed = b""
    for _ in range(TRIES):
        try:
            async with asyncio.TaskGroup() as group:
                source = asyncio.ensure_future(asyncio.to_thread(source_of, local))
                refs = distinct(nodes)
                ways = Ways(site.ground, site.emit, refs)
                tasks = [group.create_task(push_to(ways, ref, source, remote, delete=delete)) for ref in refs]
        except BaseExceptionGroup as errors:
            if not isinstance(errors.exceptions[0], ChangedMeanwhileError):
                raise errors.exceptions[0] from None
            changed = errors.exceptions[0].path
            continue
        parcel = source.result()
        tell(site.emit, parcel.found)
        if not parcel.file:
            await asyncio.to_thread(parcel.parcel.remember)
        return tuple(task.result() for task in tasks)
    raise changing(changed)


@dataclass(frozen=True, slots=True)
class Source:
    """What is to be copied: a folder, or a file by its name."""

    found: Scan
    parcel: Parcel
    file: str = ""
    mode: int = 0o755


def source_of(local: Path) -> Source:
    """Look at what is to be copied."""
    folder = local.resolve()
    if folder.is_dir():
        found = scan(folder, git=False)
        return Source(found, Parcel.of(folder, found), mode=stat.S_IMODE(folder.stat().st_mode))
    full = os.fsencode(folder)
    for _ in range(TRIES):
        value = read(full)[0].removeprefix(SECRET)  # named by its own name: on purpose
        if value:
            break
    else:
        raise changing(full)
    tree = {b"": value}
    found = Scan(full, tree, files=1, size=(trees.content(value) or (b"", 0))[1])
    return Source(found, Parcel(folder, full, tree, b"", "", "", tree), file=local.name)


class Ways:
    """How each node comes by contents: the first from here, the others from it, what is missing from here."""

    def __init__(self, ground: Reaching, emit: Emit, refs: Sequence[Ref]) -> None:
        self.ground, self.emit = ground, emit
        self.session = f"push-{secrets.token_hex(8)}"
        self._first, self._count = refs[0], len(refs)
        self._needs: dict[str, Ref | None] = {}
        self._all_known, self._there = asyncio.Event(), asyncio.Event()

    async def bring(
        self, line: Line, root: bytes, tree: dict[bytes, bytes], needs: bool, empty: bool
    ) -> None:
        """Have there what is needed there, if it is; every node of them comes here once."""
        self._needs[line.ref.key] = line.ref if needs else None
        if len(self._needs) == self._count:
            self._all_known.set()
        if line.ref.key == self._first.key:
            if needs:
                await line.deliver(root, tree, empty=empty)
                await self._all_known.wait()
                others = [ref for key, ref in self._needs.items() if ref and key != self._first.key]
                await spread(self.ground, self._first, others, self.session)
            self._there.set()
        elif needs:
            await self._there.wait()
            await line.deliver(root, tree)


async def push_to(
    ways: Ways, ref: Ref, coming: asyncio.Future[Source], remote: str, *, delete: bool
) -> Copied:
    """Look there while it is looked here; send what differs; lay it."""
    async with ways.ground.shell(ref) as shell:
        line = Line(shell, ref, ways.session, reporter(ways.emit, f"files to {ref.key}"))
        seen = await order(shell, ref, "glance", {"remote": remote})
        source = await asyncio.shield(coming)
        if source.file:
            missing = not seen["kind"]
            changes, based = source.parcel.tree if missing else await _differs(line, source, remote), False
        else:
            if seen["kind"] == "file":
                raise UsageError(f"{remote} is a file on {ref.key}", why="a folder is to go there")
            changes, based = await _difference(line, source, remote, seen)
        sent = {path: value for path, value in changes.items() if value}
        gone = [path for path in changes if path not in sent] if delete else []
        little = line.little(source.found.root, sent) if seen["empty"] else None
        needs = bool(sent) and little is None
        await ways.bring(line, source.found.root, sent, needs=needs, empty=bool(seen["empty"]))
        if changes or not (based or source.file):
            packed = await asyncio.to_thread(zlib.compress, trees.encode(changes), 1)
            ask = {
                "remote": remote, "session": line.session, "delete": delete, "mode": source.mode,
                "tree": source.parcel.digest, "base": based, "length": len(packed),
                "file": ("/" if remote.endswith("/") else "") + source.file if source.file else "",
            }  # fmt: skip
            answer = await order(shell, ref, "lay_target", ask, packed + (little or b""))
            line.refuse_wrong(sent, answer)
            if "lacks" in answer:
                what = f"{ref.key} lost files while they arrived"
                raise Unavailable(what, why=answer["lacks"], fix="run this again")
        return Copied(
            node=ref.key, files=source.found.files, size=source.found.size,
            moved_files=line.moved_files, moved_bytes=line.moved_bytes, deleted=len(gone),
            left_out=tuple(sorted(map(os.fsdecode, source.found.secrets))),
        )  # fmt: skip


async def _differs(line: Line, source: Source, remote: str) -> dict[bytes, bytes]:
    name = ("/" if remote.endswith("/") else "") + source.file
    body = zlib.compress(trees.encode(source.parcel.tree), 1)
    answer = await order(line.shell, line.ref, "compare", {"remote": remote, "file": name}, body)
    return source.parcel.tree if answer["differ"] else {}


async def _difference(
    line: Line, source: Source, remote: str, seen: dict[str, object]
) -> tuple[dict[bytes, bytes], bool]:
    """What there must become what, and whether the node knows the rest of it by itself."""
    tree, parcel = source.found.tree, source.parcel
    if not seen["kind"]:
        return dict(tree), False
    if seen["tree"] and seen["tree"] == parcel.base:
        changes, extra = dict(parcel.changes), _paths(seen["extra"])
        changes.update((path, tree[path]) for path in _paths(seen["dirty"]) if path in tree)
        based = True
    else:
        body = await asyncio.to_thread(zlib.compress, trees.encode(tree), 1)
        answer = await order(line.shell, line.ref, "compare", {"remote": remote}, body)
        changes = {path: tree[path] for path in _paths(answer["differ"])}
        extra, based = _paths(answer["extra"]), False
    # What was left out on purpose stands here, too: it is not what `delete` means.
    root = source.found.root
    changes.update((path, trees.GONE) for path in extra if not os.path.lexists(root + b"/" + path))
    return changes, based


def _paths(names: object) -> list[bytes]:
    assert isinstance(names, list)  # noqa: S101 - an answer of our own program
    return [name.encode("utf-8", "surrogateescape") for name in names]


async def pull(site: Site, nodes: Sequence[Ref], remote: str, into: Path) -> tuple[str, ...]:
    """Bring a file or a folder from these nodes; from several, each into a folder of its name."""
    return tuple(name for copied in await bring(site, nodes, remote, into) for name in copied.names)


async def bring(site: Site, nodes: Sequence[Ref], remote: str, into: Path) -> tuple[Copied, ...]:
    """The same, with what it took. RUN:PATH is a path of a run's work or outputs, RUN: all its outputs."""
    several = distinct(nodes)
    brought = []
    for ref in several:
        to = into / ref.key if len(several) > 1 else into
        brought.append(await _bring_from(site, ref, remote, to, folder=len(several) > 1))
    return tuple(brought)


async def _bring_from(site: Site, ref: Ref, remote: str, to: Path, *, folder: bool) -> Copied:
    run, colon, path = remote.partition(":")
    in_run = bool(colon) and "/" not in run
    roots = [(remote, "", "")]
    if in_run and not path:
        return await _all_outputs(site, ref, run, to)
    if in_run:
        inside = os.path.normpath(path or ".").lstrip("/")
        at = run_dir(ref, run)
        if inside.startswith(".."):
            raise UsageError(f"{path} leads out of the run's folder", fix="name a path inside of it")
        roots = [(f"{at}/work/{inside}", "", ""), (f"{at}/outputs/{inside}", "", "")]
    kinds = await _kinds(site, ref, [root[0] for root in roots])
    if not any(kinds):
        raise UsageError(
            f"there is no {path if in_run else remote} on {ref.key}",
            why=f"looked for {' and '.join(root[0] for root in roots)}",
            fix=f"look there: helio ssh {ref.key} ls",
        )
    odd = [kind for kind in kinds if kind not in ("d", "f", "")]
    if odd and not {"d", "f"} & set(kinds):
        raise UsageError(
            f"{remote} on {ref.key} is a {odd[0]}",
            why="only files and folders can be brought",
            fix="name a file or a folder",
        )
    single = None
    if "d" not in kinds:
        name = os.path.basename(os.path.normpath(path if in_run else remote))
        single = to / name if folder or to.is_dir() else to
    return _copied(ref, await receive(site, ref, roots, to, single=single))


async def _all_outputs(site: Site, ref: Ref, run: str, to: Path) -> Copied:
    """What the file calls outputs, and whatever the run laid into HELIO_OUTPUTS."""
    at = run_dir(ref, run)
    if await _kinds(site, ref, [at]) != ["d"]:
        raise UsageError(
            f"there is no run {run} on {ref.key}", why=f"looked for {at}", fix="see `helio jobs`"
        )
    roots = [*((f"{at}/work", pattern, "") for pattern in site.spec.outputs), (f"{at}/{OUTPUTS}", "", "")]
    return _copied(ref, await receive(site, ref, roots, to))


def _copied(ref: Ref, came: Receiver) -> Copied:
    return Copied(
        node=ref.key, files=len(came.names), size=came.size, moved_files=came.moved_files,
        moved_bytes=came.moved_bytes, names=tuple(came.names),
    )  # fmt: skip


async def _kinds(site: Site, ref: Ref, paths: Sequence[str]) -> list[str]:
    """Whether each is a folder (d), a file (f), something odd (its word), or not there."""
    async with site.ground.shell(ref) as shell:
        answer = await order(shell, ref, "kinds", {"paths": list(paths)})
    kinds: list[str] = answer["kinds"]
    return kinds
