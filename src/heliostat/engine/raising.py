"""Carrying out a plan: change, wait for Ray, repair once, and take back what was made when it fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from heliostat.core.errors import HelioError, LeftBehind
from heliostat.core.event import Level, Note
from heliostat.core.plan import Cost, Plan
from heliostat.core.resource import HEAD, NODE, SERVICE, Ref, Resource
from heliostat.engine.apply import make, remove, subject_of
from heliostat.engine.erase import erase
from heliostat.engine.look import Look, nodes_of
from heliostat.engine.patience import Patience, within
from heliostat.engine.ports import Site
from heliostat.engine.services import settled
from heliostat.engine.verify import Verdict, Watch, short_groups, shortfall


@dataclass(kw_only=True)
class Raising:
    """One `up` (or restart) at work."""

    site: Site
    run: str
    verb: str
    keep: bool
    patience: Patience
    _before: set[tuple[str, str]] = field(default_factory=set)  # (name, id) of what stays from before
    _made: set[str] = field(default_factory=set)  # names of what this run makes

    async def carry_out(self, plan: Plan, seen: Look) -> Verdict:
        """Until the cluster stands, or all that this run made is gone again."""
        goes = {(ref.name, ref.id) for ref in plan.goes}
        self._before = {(ref.name, ref.id) for ref in seen.refs} - goes
        self._made = {r.name for r in plan.create}
        self._made |= {c.wanted.name for c in plan.change if c.cost is Cost.REPLACE}
        touched = sorted({*(r.name for r in plan.comes), *(r.name for r in plan.goes)})
        self.site.journal.begin(self.site.owner, self.verb, self.run, touched)
        async with self._taken_back():
            verdict = await self._raise(plan, seen)
        self.site.journal.end(self.site.owner, self.run, "done")
        return verdict

    async def _raise(self, plan: Plan, seen: Look) -> Verdict:
        await self._remove(plan.goes)
        failures = await self._make(plan.comes)
        wanted = self._wanted(plan)
        # What is changed in place lives on in Ray's list as it was.
        again = [*plan.create, *(c.wanted for c in plan.change if c.cost is not Cost.LIVE)]
        stale = {n.id for n in seen.ray or () if n.name in {r.key for r in again if r.kind == NODE}}
        leaving = {ref.key for ref in plan.delete if ref.kind == NODE} - set(wanted)
        allowed = self._allowances(plan, seen)
        there = without(seen.refs, plan.delete)
        verdict = await self._watch(wanted, there, stale, failures, allowed, leaving)
        bad = {*verdict.failed, *verdict.overdue}
        old = {n for n in bad if f"{NODE}/{n}" not in self._made and n not in failures}
        lost = bad - old
        if old and not short_groups(self.site, wanted, set(wanted) - lost):
            verdict = await self._repair(wanted, old, verdict, stale)
        error = shortfall(self.site, wanted, verdict, self.patience.join)
        if error is not None:
            raise error
        if verdict.absent:
            return await self._settle_for_less(verdict)
        if SERVICE in {*(one.kind for one in plan.comes), *(one.kind for one in plan.keep)}:
            await settled(self.site, self.patience)  # a service may wait for nodes that are not to come
        return verdict

    async def _remove(self, refs: Iterable[Ref]) -> None:
        left = await remove(self.site, refs, self.patience, self.patience.gone)
        if left:
            names = ", ".join(subject_of(ref.name) for ref in left)
            raise LeftBehind(
                f"could not remove {names}", why="the place still lists it", fix="run `helio up` again"
            )

    async def _make(self, wanted: Iterable[Resource]) -> dict[str, HelioError]:
        """Create these; what failed comes back by node name, and anything but a node is fatal."""
        failures = await make(self.site, wanted, self.run, self.patience)
        for name, error in failures.items():
            if not name.startswith(f"{NODE}/"):
                raise error
        return {subject_of(name): error for name, error in failures.items()}

    def _wanted(self, plan: Plan) -> list[str]:
        """The nodes that must be alive in the end; what the autoscaler made may come and go."""
        part = {*(r.name for r in plan.comes), *(r.name for r in plan.keep)}
        return [r.key for r in self.site.ground.want(self.site.spec) if r.kind == NODE and r.name in part]

    def _allowances(self, plan: Plan, seen: Look) -> dict[str, float]:
        """Seconds for nodes of an earlier `up`: they have booted already, or are about to."""
        now, patience = self.site.clock.now(), self.patience
        new_head = any(r.name == f"{NODE}/{HEAD}" for r in plan.comes)
        allowed = {}
        for name, ref in seen.nodes.items():
            age = now - ref.created if ref.created is not None else 0.0
            booted = new_head and age > patience.rejoin
            allowed[name] = patience.rejoin if booted else max(patience.rejoin, patience.join - age)
        return {name: s for name, s in allowed.items() if f"{NODE}/{name}" not in self._made}

    async def _watch(
        self,
        wanted: Collection[str],
        refs: Iterable[Ref],
        stale: Collection[str],
        failed: Mapping[str, HelioError],
        allowance: Mapping[str, float],
        leaving: Collection[str] = (),
    ) -> Verdict:
        watch = Watch(
            self.site,
            self.patience,
            wanted=wanted,
            refs=refs,
            stale=stale,
            failed=failed,
            allowance=allowance,
            leaving=leaving,
        )
        return await watch.wait()

    async def _repair(
        self, wanted: Collection[str], names: set[str], verdict: Verdict, stale: set[str]
    ) -> Verdict:
        """Nodes of an earlier `up` that do not live are made anew, once."""
        self._note(f"{', '.join(sorted(names))}: no sign of life, so made anew")
        there = nodes_of(verdict.refs)
        refs = [there[name] for name in names if name in there]
        self._before -= {(ref.name, ref.id) for ref in refs}
        self._made |= {f"{NODE}/{name}" for name in names}
        await self._remove(refs)
        resources = [r for r in self.site.ground.want(self.site.spec) if r.kind == NODE and r.key in names]
        failures = await self._make(resources)
        stale = stale | {node.id for node in verdict.nodes if node.name in names}
        failed = {**{n: e for n, e in verdict.failed.items() if n not in names}, **failures}
        return await self._watch(wanted, verdict.refs, stale, failed, {})

    async def _settle_for_less(self, verdict: Verdict) -> Verdict:
        """Fewer came than were asked for, and the file says that this is enough: nothing half made stays."""
        names = ", ".join(verdict.absent)
        self._note(f"up without {names}, as the file allows: `helio up` tries again", Level.WARN)
        there = nodes_of(verdict.refs)
        gone = [there[name] for name in verdict.absent if name in there]
        await self._remove(gone)
        return replace(verdict, refs=without(verdict.refs, gone))

    @asynccontextmanager
    async def _taken_back(self) -> AsyncIterator[None]:
        """Whatever ends this early, a person's Ctrl-C included: what it made goes again."""
        try:
            yield
        except BaseException:
            if self.keep:
                self._note("what was made is kept, as asked: `helio down` removes it", Level.WARN)
                self.site.journal.end(self.site.owner, self.run, "kept")
            else:
                await self._take_back()
            raise

    async def _take_back(self) -> None:
        """Has its own deadline; a second Ctrl-C ends it, and the journal remembers what is left to do."""
        self._note(f"cleaning up what this `{self.verb}` made", Level.WARN)
        try:
            async with within(self.patience.clean, "the clean-up"):
                erased = await erase(self.site, self._mine, self.patience, self.patience.clean)
        except HelioError as error:
            self._note(
                f"the clean-up failed: {error.what}. `helio clean` or `helio down` goes on.", Level.WARN
            )
            return
        if erased.left:
            names = ", ".join(subject_of(ref.name) for ref in erased.left)
            self._note(f"left behind: {names}. `helio clean` or `helio down` tries again.", Level.WARN)
        else:
            self.site.journal.end(self.site.owner, self.run, "taken back")

    def _mine(self, ref: Ref) -> bool:
        """What this run made, and nothing that another one may have made meanwhile."""
        new = (ref.name, ref.id) not in self._before
        return new and ref.name in self._made and ref.run in ("", self.run)

    def _note(self, text: str, level: Level = Level.INFO) -> None:
        self.site.emit(Note(text=text, level=level))


def without(refs: Iterable[Ref], gone: Iterable[Ref]) -> tuple[Ref, ...]:
    """A listing from before a removal, as it is after it."""
    names = {(ref.name, ref.id) for ref in gone}
    return tuple(ref for ref in refs if (ref.name, ref.id) not in names)
