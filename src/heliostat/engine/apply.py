"""Making the world agree with a plan, wave by wave, believing only what the place itself lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from heliostat.core.errors import HelioError, TimedOut
from heliostat.core.event import Level, Note, Step
from heliostat.core.plan import cost_of, reverse_waves, waves
from heliostat.core.resource import NODE, Ref, Resource, State
from heliostat.engine.look import closing, listing
from heliostat.engine.patience import Pace, Patience, lag_of
from heliostat.engine.ports import Site

Failures = dict[str, HelioError]


def subject(kind: str, key: str) -> str:
    """What a person calls it: nodes by their name alone."""
    return key if kind == NODE else f"{kind} {key}"


def subject_of(name: str) -> str:
    """The same, from kind/key."""
    kind, _, key = name.partition("/")
    return subject(kind, key)


async def make(site: Site, wanted: Iterable[Resource], run: str, patience: Patience) -> Failures:
    """Create or converge everything, in waves; what could not be had is returned with its error.

    What needs something that could not be had is not tried.
    """
    failures: Failures = {}
    for wave in waves(wanted):
        blocked = {r.name: failures[n] for r in wave for n in r.needs if n in failures}
        failures.update(blocked)
        failures.update(await _Wave(site, [r for r in wave if r.name not in blocked], run).make(patience))
    return failures


class _Wave:
    """Resources that may all be made at once."""

    def __init__(self, site: Site, wave: Sequence[Resource], run: str) -> None:
        self._site = site
        self._left = {r.name: replace(r, run=run) for r in wave}  # not known to be there yet
        self._made: dict[str, Ref] = {}  # the ground says so; the listing has not shown it yet
        self._failures: Failures = {}
        self._last: HelioError | None = None

    async def make(self, patience: Patience) -> Failures:
        """Until the place lists everything that did not fail for good."""
        clock, pace = self._site.clock, Pace(first=0.1, most=5.0, growth=2.0)
        deadline = clock.monotonic() + patience.make
        for resource in self._left.values():
            self._site.emit(Step(subject=subject(resource.kind, resource.key), state="creating"))
        while self._left:
            await self._create([r for name, r in self._left.items() if name not in self._made])
            await self._compare(patience)
            if not self._left:
                break
            if clock.monotonic() >= deadline:
                raise self._late(patience.make)
            await clock.wait(pace.next())
        return self._failures

    async def _create(self, todo: Sequence[Resource]) -> None:
        """Hand them to the ground and note what became of each."""
        if not todo:
            return
        try:
            async with closing(self._site.ground.create(self._site.owner, todo)) as outcomes:
                async for outcome in outcomes:
                    if outcome.ref is not None:
                        self._made[outcome.name] = outcome.ref
                        node = outcome.ref.kind == NODE  # the others need no start
                        self._tell(outcome.name, "starting" if node else "made", done=not node)
                    elif outcome.error is not None:
                        self._note(outcome.name, outcome.error)
        except HelioError as error:
            for resource in todo:
                if resource.name not in self._made:
                    self._note(resource.name, error)

    def _note(self, name: str, error: HelioError) -> None:
        """Passing trouble is tried again; the rest is final."""
        if error.retry:
            self._last = error
            self._tell(name, "waiting", error.what)
        elif name in self._left:
            self._failures[name] = error
            del self._left[name]
            self._tell(name, "failed", error.what, done=True)

    async def _compare(self, patience: Patience) -> None:
        """Strike out what the place lists as wanted; what it denies after a while is made again."""
        refs = {
            ref.name: ref
            for ref in await listing(self._site, patience=patience.answer)
            if ref.state is not State.LEAVING
        }
        for name, resource in list(self._left.items()):
            ref = refs.get(name)
            if name in self._made and ref is not None:
                del self._left[name]
            elif name in self._made and self._trails(self._made[name]):
                continue
            elif ref is not None and not resource.again and cost_of(resource, ref) is None:
                del self._left[name]  # it was made, only the answer was lost
            else:
                self._made.pop(name, None)

    def _trails(self, ref: Ref) -> bool:
        """Whether the listing may be behind the truth about it."""
        lag = lag_of(self._site.ground)
        return lag > 0 and (ref.created is None or self._site.clock.now() < ref.created + lag + 1.0)

    def _tell(self, name: str, state: str, detail: str = "", *, done: bool = False) -> None:
        self._site.emit(Step(subject=subject_of(name), state=state, detail=detail, done=done))

    def _late(self, seconds: float) -> HelioError:
        names = ", ".join(subject_of(name) for name in self._left)
        why = self._last.what if self._last else "the place does not list it"
        return TimedOut(f"could not make {names} within {seconds:g} s", why=why, fix="run `helio up` again")


async def remove(site: Site, refs: Iterable[Ref], patience: Patience, seconds: float) -> tuple[Ref, ...]:
    """Delete these in the reverse order of their needs until the place lists them no more; what is left."""
    mine = _ours(site, refs)
    for wave in reverse_waves(_singles(mine)):
        names = {ref.name for ref in wave}
        left = await _remove_wave(site, [ref for ref in mine if ref.name in names], patience, seconds)
        if left:
            return (*left, *(ref for ref in mine if ref not in left and ref.name not in names))
    return ()


async def _remove_wave(site: Site, wave: Sequence[Ref], patience: Patience, seconds: float) -> list[Ref]:
    """Until none of them is listed, or nothing more can be done."""
    clock, pace = site.clock, Pace(first=0.05, most=3.0)
    deadline = clock.monotonic() + seconds
    left = list(wave)
    for ref in wave:
        site.emit(Step(subject=subject(ref.kind, ref.key), state="removing"))
    while True:
        refused = await _delete(site, [ref for ref in left if ref.state is not State.LEAVING])
        listed = {(ref.name, ref.id): ref for ref in await listing(site, patience=patience.answer)}
        for ref in left:
            if (ref.name, ref.id) not in listed:
                site.emit(Step(subject=subject(ref.kind, ref.key), state="gone", done=True))
        left = [listed[ref.name, ref.id] for ref in left if (ref.name, ref.id) in listed]
        if not left:
            return []
        if clock.monotonic() >= deadline or all(ref.name in refused for ref in left):
            return left
        await clock.wait(pace.next())


async def _delete(site: Site, refs: Sequence[Ref]) -> set[str]:
    """Ask once for all of them; the names of those that trying again cannot help."""
    refused: set[str] = set()
    if not refs:
        return refused
    try:
        async with closing(site.ground.delete(refs)) as outcomes:
            async for outcome in outcomes:
                if outcome.error is not None:
                    _complain(site, outcome.name, outcome.error)
                    if not outcome.error.retry:
                        refused.add(outcome.name)
    except HelioError as error:
        for ref in refs:
            _complain(site, ref.name, error)
        if not error.retry:
            refused.update(ref.name for ref in refs)
    return refused


def _complain(site: Site, name: str, error: HelioError) -> None:
    state = "waiting" if error.retry else "failed"
    site.emit(Step(subject=subject_of(name), state=state, detail=error.what, done=not error.retry))


def _ours(site: Site, refs: Iterable[Ref]) -> list[Ref]:
    """The last line of defence: what is another's is never handed to `delete`."""
    mine = []
    for ref in refs:
        if site.owner.owns(ref.owner):
            mine.append(ref)
        else:
            text = f"{subject(ref.kind, ref.key)} belongs to {ref.owner.principal}: left alone"
            site.emit(Note(text=text, level=Level.WARN))
    return mine


def _singles(refs: Iterable[Ref]) -> tuple[Ref, ...]:
    """One for each name: the sorter needs no doubles."""
    return tuple({ref.name: ref for ref in refs}.values())
