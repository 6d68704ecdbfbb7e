"""Make networks, volumes and containers on an engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace

from heliostat.core.errors import Conflict, HelioError
from heliostat.core.event import Progress, Step
from heliostat.core.owner import Owner
from heliostat.core.resource import NODE, SERVICE, Outcome, Ref, Resource, State
from heliostat.core.spec import Spec
from heliostat.engine import filelock
from heliostat.engine.home import state_dir
from heliostat.engine.ports import Emit
from heliostat.grounds.compose import entry
from heliostat.grounds.compose.file import compose_file, dump
from heliostat.grounds.compose.find import listing
from heliostat.grounds.compose.marks import EXTERNAL, PREFIX, marks
from heliostat.grounds.compose.service import Names, interpreter, node_of
from heliostat.grounds.compose.want import HOME, NETWORK, VOLUME
from heliostat.ray import program
from heliostat.ray.paths import node_dir
from heliostat.shells.docker_cli import Docker, translate
from heliostat.shells.docker_images import Recipe, build, pull, steps_of, there
from heliostat.shells.docker_login import signed_in


@asynccontextmanager
async def held(owner: Owner) -> AsyncIterator[None]:
    """One maker of a cluster's containers at a time, of those on this machine."""
    path = state_dir() / f"compose-{owner.id}.lock"
    with path.open("ab") as file:
        # Whoever holds it has a deadline of its own for each thing that it waits for.
        while not filelock.try_lock(file.fileno()):  # noqa: ASYNC110  (another process lets go)
            await asyncio.sleep(0.02)
        yield


def label_words(labels: Mapping[str, str]) -> list[str]:
    return [word for name, value in labels.items() for word in ("--label", f"{name}={value}")]


class Making:
    """One `create` on one engine."""

    def __init__(
        self,
        docker: Docker,
        owner: Owner,
        emit: Emit = lambda _event: None,
        spec: Spec | None = None,
    ) -> None:
        self._emit = emit
        self._spec = spec  # whose logins are used
        self._docker = docker
        self._owner = owner
        self._names = Names(owner.id)

    async def all(self, wanted: Sequence[Resource]) -> AsyncGenerator[Outcome, None]:
        """What is right already stays; outcomes as they come."""
        async with held(self._owner):
            there = {ref.name: ref for ref in await listing(self._docker, self._owner)}
            plain = [one for one in wanted if one.kind in (NETWORK, VOLUME)]
            for outcome in await self._plain(plain, there):
                yield outcome
            containers = [one for one in wanted if one.kind in (NODE, SERVICE)]
            for outcome in await self._containers(containers, there):
                yield outcome

    async def _plain(self, wanted: Sequence[Resource], there: Mapping[str, Ref]) -> list[Outcome]:
        """Networks and volumes. Their labels cannot change: other tags wait for another life."""
        new = [one for one in wanted if one.name not in there]
        errors = dict(zip(new, await asyncio.gather(*map(self._simple, new)), strict=True))
        refs = {ref.name: ref for ref in await listing(self._docker, self._owner)} if new else there
        outcomes = []
        for one in wanted:
            error = errors.get(one)
            if error is None and one.name not in refs:
                error = Conflict(f"{one.name} vanished while it was made", why="something else removed it")
            outcomes.append(Outcome(name=one.name, ref=None if error else refs[one.name], error=error))
        return outcomes

    async def _simple(self, one: Resource) -> HelioError | None:
        """Make one; its error, if any."""
        try:
            await (self._network if one.kind == NETWORK else self._volume)(one)
        except HelioError as error:
            return error
        return None

    async def _network(self, one: Resource) -> None:
        labels = marks(self._owner, one, created=time.time())
        words = [*label_words(labels), "--driver", "bridge", self._names.network]
        await self._docker.ask("cannot make the cluster's network", "network", "create", *words)

    async def _volume(self, one: Resource) -> None:
        """Under our own name; where the engine has one of that very name, ours only stands for it."""
        facts = {}
        if one.key != HOME:
            other = await self._docker.inspect("volume", [one.key])
            if other and not (other[0].get("Labels") or {}).get(f"{PREFIX}kind"):
                facts[EXTERNAL] = one.key
        labels = marks(self._owner, one, created=time.time(), facts=facts)
        words = [*label_words(labels), self._names.own_volume(one.key)]
        await self._docker.ask(f"cannot make the volume {one.key}", "volume", "create", *words)

    async def _containers(self, wanted: Sequence[Resource], there: Mapping[str, Ref]) -> list[Outcome]:
        """All containers that are to be made, by one Compose; those that are right stay."""
        outcomes, todo, old = [], [], []
        for one in wanted:
            found = there.get(one.name)
            if found is not None and is_right(found, one):
                outcomes.append(Outcome(name=one.name, ref=found))
                continue
            old += [found] if found is not None else []
            kept = found is not None and found.state is not State.BROKEN
            # A restarted node is still whose it was.
            todo.append(replace(one, run=found.run) if found is not None and kept else one)
        if not todo:
            return outcomes
        names = Names(self._owner.id, externals(there.values()))
        try:
            if old:
                await self._docker.ask("cannot replace a container", "rm", "-fv", *(ref.id for ref in old))
            with signed_in(self._docker, self._spec) if self._spec else nullcontext(self._docker) as docker:
                await self._built(docker, todo)
                await self._pulled(docker, todo)
                error = await self._up(docker, todo, names)
        except HelioError as trouble:
            return [*outcomes, *(Outcome(name=one.name, error=trouble) for one in todo)]
        return [*outcomes, *await self._verdicts(todo, error)]

    async def _built(self, docker: Docker, wanted: Sequence[Resource]) -> None:
        """The file's own images, where the engine does not have them yet."""
        for one in wanted:
            if not one.body.get("recipe"):
                continue
            recipe = Recipe(**one.body["recipe"])
            if await there(docker, recipe.name):
                continue
            self._emit(Step(subject="image", state="building", detail=recipe.name))
            try:
                await build(docker, recipe, self._follower(recipe.name))
            except HelioError as error:
                if one.kind == SERVICE and not recipe.context:
                    error.fix = "name an image that has JupyterLab: `notebook: { image: … }`"
                raise
            self._emit(Step(subject="image", state="built", detail=recipe.name, done=True))

    def _follower(self, name: str) -> Callable[[bytes], None]:
        """Hears what a build says."""
        tell = self._teller(name, "steps")
        return lambda data: tell(*steps_of(data))

    def _teller(self, name: str, unit: str) -> Callable[[int, int], None]:
        """Says how far an image is; nothing where nobody knows of how many."""

        def tell(done: int, count: int) -> None:
            if count:
                self._emit(Progress(what=f"image {name}", done=done, total=count, unit=unit))

        return tell

    async def _pulled(self, docker: Docker, wanted: Sequence[Resource]) -> None:
        """Images first, one after the other, with a word on how far they are: some have gigabytes."""
        for name, policy in {one.body["image"]: one.body["pull"] for one in wanted}.items():
            if policy == "never" or (policy == "missing" and await there(docker, name)):
                continue
            self._emit(Step(subject="image", state="pulling", detail=name))
            await pull(docker, name, self._teller(name, "layers"))
            self._emit(Step(subject="image", state="pulled", detail=name, done=True))

    async def _up(self, docker: Docker, wanted: Sequence[Resource], names: Names) -> HelioError | None:
        """Hand them to Compose; its error, if any, may concern only some of them."""
        now = time.time()
        labels = {one.key: marks(self._owner, one, created=now, facts=facts_of(one)) for one in wanted}
        text = dump(compose_file(wanted, labels, names))
        words = ["compose", "-p", names.project, "-f", "-", "up", "-d", "--no-deps", "--no-recreate"]
        env = {"COMPOSE_IGNORE_ORPHANS": "1", "COMPOSE_ANSI": "never", "BUILDKIT_PROGRESS": "plain"}
        result = await docker.run(*words, *(one.key for one in wanted), stdin=text.encode(), env=env)
        if result.code == 0:
            return None
        return translate("cannot start containers", result.err.decode(errors="replace"))

    async def _verdicts(self, nodes: Sequence[Resource], error: HelioError | None) -> list[Outcome]:
        refs = {ref.name: ref for ref in await listing(self._docker, self._owner)}
        verdicts = []
        for one in nodes:
            ref = refs.get(one.name)
            if ref is not None and (ref.state is State.READY or error is None):
                verdicts.append(Outcome(name=one.name, ref=ref))
                continue
            if ref is not None:  # made, and not to be started: nothing half made stays
                await self._docker.run("rm", "-fv", ref.id)
            gone = Conflict(f"{one.key} vanished while it was made", why="something else removed it")
            verdicts.append(Outcome(name=one.name, error=error or gone))
        return verdicts


def is_right(found: Ref, wanted: Resource) -> bool:
    """Whether a container can stay as it is; one that was made and never started cannot."""
    if found.kind == SERVICE and found.state is State.PENDING:
        return found.digests == wanted.digests  # it looks for nodes that are on their way
    return found.state is State.READY and not wanted.again and found.digests == wanted.digests


def externals(refs: Iterable[Ref]) -> dict[str, str]:
    """The volumes that were there before us, by the file's name for them."""
    return {ref.key: ref.facts[EXTERNAL] for ref in refs if ref.kind == VOLUME and EXTERNAL in ref.facts}


def facts_of(one: Resource) -> dict[str, str]:
    """What is known of a container before it runs."""
    body = one.body
    if one.kind == SERVICE:
        return {"address": f"{one.key}:{body['port']}"}
    store = {"storage": body["store"]["url"]} if body["store"] else {}
    setup = {"prepares": "yes"} if body["setup"] else {}
    return {
        "home": entry.HOME,
        "python": interpreter(node_of(body["node"])),
        "program": f"{entry.HOME}/program/{program.digest()}",
        "group": body["group"],
        "auth": body["auth"],
        "log": f"{node_dir(entry.HOME, one.key)}/boot.log",
        **setup,
        **store,
    }
