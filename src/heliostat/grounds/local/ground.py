"""The local ground: Ray nodes as processes of this machine, detached, on loopback, without root.

Small, because `status` loads it: what makes and removes things comes with the first thing to make or remove.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from heliostat.core.errors import HelioError
from heliostat.core.owner import Owner
from heliostat.core.resource import HEAD, NODE, Outcome, Ref, Resource, State
from heliostat.grounds.local import find as finding
from heliostat.grounds.local.places import principal

if TYPE_CHECKING:
    from heliostat.core.checked import Checked
    from heliostat.core.spec import Spec
    from heliostat.engine.ports import Shell


class LocalGround:
    """Implements Ground and Identity."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The Kinds power."""
        return (finding.DIRECTORY, finding.FILES, NODE)

    async def principal(self, spec: Spec) -> str:  # noqa: ARG002  (other places read the file for it)
        return principal()

    def want(self, spec: Spec) -> tuple[Resource, ...]:
        from heliostat.grounds.local.want import want

        return want(spec)

    async def find(self, owner: Owner) -> tuple[Ref, ...]:
        return finding.listing(owner)

    def glance(self, cluster: str) -> tuple[Ref, ...]:
        """The Glances power: nothing here needs waiting for."""
        return finding.listing(Owner(principal(), cluster))

    async def foresee(self, owner: Owner, spec: Spec, *, everything: bool = False) -> Sequence[Checked]:  # noqa: ARG002
        """The Foresees power; whose it is and what else there is makes no difference here."""
        from heliostat.grounds.local.foresee import foresee

        return tuple(foresee(spec))

    async def create(self, owner: Owner, wanted: Sequence[Resource]) -> AsyncIterator[Outcome]:
        """Directories first, then the head up to its handover, then all workers at once."""
        from heliostat.engine.outcomes import as_they_come
        from heliostat.grounds.local import start

        there = {ref.name: ref for ref in finding.listing(owner)}
        makers = {finding.DIRECTORY: _directory, finding.FILES: _files}
        for one in wanted:
            if one.kind in makers:
                ref = there.get(one.name)
                sound = ref is not None and ref.state is not State.BROKEN and ref.digests == one.digests
                made = makers[one.kind](owner, one)
                if sound:
                    made.close()
                yield Outcome(name=one.name, ref=ref) if sound else await attempt(one.name, made)
        nodes = [one for one in wanted if one.kind == NODE]
        try:
            _check_room([one for one in nodes if one.name not in there])
        except HelioError as error:
            for one in nodes:
                yield Outcome(name=one.name, error=error)
            return
        for one in nodes:
            if one.key == HEAD:
                yield await attempt(one.name, converge(owner, one, ""))
        gcs = start.head_address(finding.listing(owner))
        workers = [attempt(one.name, converge(owner, one, gcs)) for one in nodes if one.key != HEAD]
        async with aclosing(as_they_come(workers)) as outcomes:
            async for outcome in outcomes:
                yield outcome

    async def delete(self, refs: Sequence[Ref]) -> AsyncIterator[Outcome]:
        """All nodes at once, then the directories."""
        from heliostat.engine.outcomes import as_they_come
        from heliostat.grounds.local import stop

        nodes = [_removal(ref, stop.stop_node(ref)) for ref in refs if ref.kind == NODE]
        async with aclosing(as_they_come(nodes)) as outcomes:
            async for outcome in outcomes:
                yield outcome
        for ref in refs:
            if ref.kind == finding.FILES:
                yield await _removal(ref, _drop(ref))
        for ref in refs:
            if ref.kind == finding.DIRECTORY:
                yield await _removal(ref, stop.stop_directory(ref))

    def shell(self, node: Ref) -> AbstractAsyncContextManager[Shell]:
        from heliostat.shells.local import LocalShell

        return nullcontext(LocalShell(home=node.facts.get("home", ""), python=node.facts.get("python", "")))


async def attempt(name: str, work: Coroutine[None, None, Ref]) -> Outcome:
    try:
        return Outcome(name=name, ref=await work)
    except HelioError as error:
        return Outcome(name=name, error=error)


async def _removal(ref: Ref, work: Coroutine[None, None, None]) -> Outcome:
    try:
        await work
    except HelioError as error:
        return Outcome(name=ref.name, error=error)
    return Outcome(name=ref.name, ref=ref)


async def _directory(owner: Owner, wanted: Resource) -> Ref:
    from heliostat.grounds.local.start import make_directory

    return make_directory(owner, wanted)


async def _files(owner: Owner, wanted: Resource) -> Ref:
    import asyncio

    from heliostat.grounds.local.files import make_copy
    from heliostat.grounds.local.locks import held
    from heliostat.grounds.local.start import found

    async with held(owner, f"files-{wanted.key}"):
        await asyncio.to_thread(make_copy, owner, wanted)
    return found(owner, wanted)


async def _drop(ref: Ref) -> None:
    import asyncio

    from heliostat.grounds.local.files import drop_copy

    await asyncio.to_thread(drop_copy, ref)


def _check_room(missing: Sequence[Resource]) -> None:
    from heliostat.grounds.local.machine import check_room

    workers = sum(one.key != HEAD for one in missing)
    if workers > 1:  # one more is always worth a try
        check_room(workers, head=workers < len(missing))


async def converge(owner: Owner, wanted: Resource, gcs: str) -> Ref:
    """Keep the node that is right; end and start again the one that is not; start the one that is missing.

    One process at a time: of two that want the same node, the second finds what the first has made.
    """
    from heliostat.grounds.local.locks import held
    from heliostat.grounds.local.start import start_node, watch_again
    from heliostat.grounds.local.stop import stop_node

    async with held(owner, wanted.key):
        found = next((ref for ref in finding.listing(owner) if ref.name == wanted.name), None)
        sound = found is not None and found.state is not State.BROKEN
        if found is not None and sound and found.digests == wanted.digests and not wanted.again:
            return found
        if found is not None and sound and finding.only_unwatched(found, wanted):
            return await watch_again(owner, wanted)
        if found is not None:
            await stop_node(found)
        if found is not None and sound:
            wanted = replace(wanted, run=found.run)  # a restarted node is still whose it was
        return await start_node(owner, wanted, gcs)
