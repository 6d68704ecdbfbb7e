"""What the public suites share: a harness that knows a place, and a scene that tidies up after each check."""

from __future__ import annotations

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from heliostat.core.errors import HelioError
from heliostat.core.owner import Owner
from heliostat.core.plan import reverse_waves, waves
from heliostat.core.resource import HEAD, NODE, Outcome, Ref, Resource
from heliostat.core.spec import Spec
from heliostat.engine.ports import Ground, Identity, Lags, Shell

S = TypeVar("S")
T = TypeVar("T")
RUN = "up-contract-1"  # the run that a scene makes things for, unless a check says otherwise


class Place(Ground, Identity, Protocol):
    """What every ground is."""


class Harness(ABC):
    """How a suite gets at a place. A new one for each check, or (`shared`) one for all."""

    shared = False  # whether the checks of the shell may use one node, because making one is slow
    patience = 60.0  # seconds that anything may take here

    def __init__(self) -> None:
        self.kept: tuple[Owner, Ref] | None = None

    @abstractmethod
    def ground(self) -> Place:
        """The ground as another process would make it: it knows nothing of what others did."""

    @abstractmethod
    def spec(self, cluster: str, workers: int = 1) -> Spec:
        """A small cluster."""

    @abstractmethod
    def changed(self, spec: Spec) -> Spec:
        """The same cluster with a difference on every node for which Ray must be restarted."""

    def unmakeable(self, spec: Spec) -> Spec | None:  # noqa: ARG002  (a place that refuses something looks)
        """The same cluster, asking for something that this place refuses; nothing where there is none."""
        return None

    @abstractmethod
    async def break_node(self, node: Ref) -> None:
        """End all that runs of this node, as a crash would, so that the place can see it."""

    def stranger(self, owner: Owner) -> Owner:
        """Somebody else with a cluster of the same name."""
        return Owner(f"{owner.principal}-stranger", owner.cluster)

    def python(self, node: Ref) -> str:
        """A Python on that node."""
        return node.facts["python"]

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run one check to its end."""
        return asyncio.run(main)

    def close(self) -> None:
        """Remove what was kept for all checks."""

        async def removal() -> None:
            async with Scene(self) as scene:
                scene.owners += [self.kept[0]] if self.kept else []

        self.run(removal())
        self.kept = None


class Scene:
    """The clusters of one check, on one harness; they go when it ends."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.ground = harness.ground()
        self.owners: list[Owner] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for owner in self.owners:
            await self.erase(owner)

    def spec(self, workers: int = 1) -> Spec:
        """A cluster with a name of its own."""
        return self.harness.spec(f"t-{secrets.token_hex(3)}", workers)

    async def owner(self, spec: Spec) -> Owner:
        """We, owning that cluster; what it has goes at the end."""
        return self.owned(Owner(await self.ground.principal(spec), spec.cluster))

    def owned(self, owner: Owner) -> Owner:
        if owner not in self.owners:
            self.owners.append(owner)
        return owner

    async def cluster(self, workers: int = 1) -> tuple[Owner, Spec, dict[str, Ref]]:
        """A cluster of ours that stands."""
        spec = self.spec(workers)
        owner = await self.owner(spec)
        return owner, spec, await self.make(owner, self.ground.want(spec))

    async def make(
        self, owner: Owner, wanted: Iterable[Resource], *, run: str = RUN, ground: Ground | None = None
    ) -> dict[str, Ref]:
        """Create wave by wave, as `up` does; what the place lists then."""
        resources = [replace(one, run=run) for one in wanted]
        for wave in waves(resources):
            for outcome in await outcomes((ground or self.ground).create(owner, wave)):
                if outcome.error:
                    raise outcome.error
        return await self.listed(owner, {one.name for one in resources})

    async def listed(self, owner: Owner, names: set[str]) -> dict[str, Ref]:
        """What is listed once all of these are: at once, but for the lag that the place admits to."""
        refs = await self.refs(owner)
        if isinstance(self.ground, Lags) and self.ground.lag:

            async def there() -> bool:
                return names <= (await self.refs(owner)).keys()

            await self.until(there, f"{sorted(names)} to be listed")
            refs = await self.refs(owner)
        missing = names - refs.keys()
        if missing:
            raise AssertionError(f"made, and not listed: {sorted(missing)}")
        return refs

    async def refs(self, owner: Owner, ground: Ground | None = None) -> dict[str, Ref]:
        """What is listed, by name; a name listed twice is a resource made twice."""
        found = await (ground or self.ground).find(owner)
        names = [ref.name for ref in found]
        doubles = {name for name in names if names.count(name) > 1}
        if owner.cluster and doubles:
            raise AssertionError(f"there are two of {sorted(doubles)}")
        return {ref.name: ref for ref in found}

    async def delete(self, refs: Iterable[Ref]) -> None:
        """Delete in the reverse order of needs, as `down` does, until the place lists them no more."""
        refs = tuple(refs)
        for wave in reverse_waves(refs):
            for outcome in await outcomes(self.ground.delete(wave)):
                if outcome.error:
                    raise outcome.error
            gone = {ref.name for ref in wave}

            async def left(owner: Owner = wave[0].owner, gone: set[str] = gone) -> bool:
                return not gone & (await self.refs(owner)).keys()

            await self.until(left, f"{sorted(gone)} to be gone")

    async def erase(self, owner: Owner) -> None:
        """Everything that this owner has."""
        while refs := await self.ground.find(owner):
            await self.delete(refs)

    async def node(self) -> Ref:
        """A head that stands: a new one, or the one that all checks share."""
        kept = self.harness.kept
        if kept is not None:
            return kept[1]
        owner, _, refs = await self.cluster(workers=0)
        head = refs[f"{NODE}/{HEAD}"]
        if self.harness.shared:
            self.harness.kept = (owner, head)
            self.owners.remove(owner)
        return head

    @asynccontextmanager
    async def shell(self) -> AsyncIterator[Shell]:
        """A shell on that head."""
        async with self.ground.shell(await self.node()) as shell:
            yield shell

    async def until(self, condition: Callable[[], Awaitable[bool]], what: str) -> None:
        """Wait for the place, with a deadline."""
        try:
            async with asyncio.timeout(self.harness.patience):
                while not await condition():  # noqa: ASYNC110  (what is waited for is the place's state)
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"waited {self.harness.patience:g} s for {what}") from None


async def outcomes(stream: AsyncIterator[Outcome]) -> list[Outcome]:
    """All of a create or delete."""
    return [outcome async for outcome in stream]


async def refusal(deed: Awaitable[None]) -> HelioError | None:
    """The error that this ends in, if any; another than ours is a failure."""
    try:
        await deed
    except HelioError as error:
        return error
    return None


def names(things: Sequence[Resource]) -> set[str]:
    return {one.name for one in things}


def check(test: Callable[[S, Scene], Awaitable[None]]) -> Callable[[S, Harness], None]:
    """Turn `async def test_…(self, scene)` into a test for any pytest, with the fixture `harness`."""

    def whole(self: S, harness: Harness) -> None:
        async def play() -> None:
            async with Scene(harness) as scene:
                await test(self, scene)

        harness.run(play())

    whole.__name__, whole.__doc__ = test.__name__, test.__doc__
    return whole
