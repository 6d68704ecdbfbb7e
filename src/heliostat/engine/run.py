"""run: bring up what is missing, send the folder, submit, follow to the end, bring back the outputs.

What most runs need only after the submission, or not at all, is loaded there: somebody waits for the start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from heliostat.core.errors import Interrupted, JobLost, UsageError
from heliostat.core.event import Began, Ended, Level, Note
from heliostat.core.feasible import ensure_feasible
from heliostat.core.job import Job, JobRequest, JobState, Needs
from heliostat.core.names import may_scale_to
from heliostat.core.plan import diff
from heliostat.core.resource import Ref, State
from heliostat.core.run import OnInterrupt, RunAsk, RunEnd
from heliostat.core.submission import (
    Surroundings,
    request,
    secrets_text,
    slug,
    wrapper_text,
)  # fmt: skip
from heliostat.engine.look import head_of, listing, nodes_of, ray_of
from heliostat.engine.packages import from_file, from_script
from heliostat.engine.patience import PATIENCE, Patience
from heliostat.engine.ports import RayApi, Site
from heliostat.engine.runname import new_run
from heliostat.engine.secretstore import lay_secrets, secret_values
from heliostat.engine.sync.work import OUTPUTS, run_dir, send_work
from heliostat.engine.turn import standing

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    """The cluster that a run goes to."""

    head: Ref
    nodes: tuple[Ref, ...]


async def run(site: Site, ask: RunAsk, *, patience: Patience = PATIENCE) -> RunEnd:
    """Run it on the cluster, which is brought up when it is not, to the job's end."""
    began = site.clock.monotonic()
    if ask.detach and ask.down:
        raise UsageError(
            "a detached run cannot take the cluster down at its end",
            why="nobody here waits for that end",
            fix="leave out --detach, or run `helio down` later",
        )
    site.emit(Began(verb="run", cluster=site.spec.cluster, where=site.spec.where))
    packages = _packages(site, ask)
    secrets = secret_values(site.spec)
    ensure_feasible(ask.needs, (), site.spec)  # before anything is made for it
    there = await _cluster(site, patience)
    if ask.needs != Needs():
        async with ray_of(site, there.head) as api:
            ensure_feasible(ask.needs, await api.nodes(), site.spec)
    # The way to the head is opened while the folder travels.
    preparing = asyncio.create_task(_prepared(site, ask, there, packages, secrets))
    await asyncio.sleep(0)  # it begins first
    async with ended(preparing), ray_of(site, there.head) as api:
        asked = await preparing
        job = await api.submit(asked)
        if ask.detach:
            end = RunEnd(job=job, seconds=site.clock.monotonic() - began, left_running=True)
        else:
            end = await _to_the_end(site, ask, there, api, asked, began)
    if ask.down and end.left_running:
        site.emit(Note(text="the cluster stays up: the job on it goes on", level=Level.WARN))
    elif ask.down:
        from heliostat.engine.lifecycle import down

        proof = await down(site, patience=patience)
        end = replace(end, cluster_up=not proof.gone)
    _close(site, end, there)
    return end


@asynccontextmanager
async def ended(task: asyncio.Task[T]) -> AsyncIterator[None]:
    """Whatever happens, the task does not outlive this."""
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def attach(site: Site, job_id: str, *, on_interrupt: OnInterrupt = OnInterrupt.LEAVE) -> RunEnd:
    """Take up a run that was left: its output from the beginning, its outputs, its exit code."""
    from heliostat.engine.jobs import chosen

    began = site.clock.monotonic()
    site.emit(Began(verb="run", cluster=site.spec.cluster, where=site.spec.where))
    there = await _found(site, PATIENCE)
    async with ray_of(site, there.head) as api:
        job = await chosen(api, job_id)
        asked = JobRequest(id=job.id, entrypoint=job.entrypoint, needs=job.needs, metadata=job.metadata)
        ask = RunAsk(command=(job.entrypoint,), on_interrupt=on_interrupt)
        end = await _to_the_end(site, ask, there, api, asked, began)
    _close(site, end, there)
    return end


# The cluster


async def _cluster(site: Site, patience: Patience) -> There:
    """The cluster as it is; brought up first when there is none, or when its head does not work."""
    refs, raised = await standing(site, patience)
    head = head_of(refs)
    if raised or head is None:
        return await _found(site, patience)
    _say_differences(site, refs)
    return There(head=head, nodes=tuple(nodes_of(refs).values()))


async def _found(site: Site, patience: Patience) -> There:
    refs = await listing(site, patience=patience.answer)
    head = head_of(refs)
    if head is None or head.state is not State.READY:
        raise UsageError(f"no cluster {site.spec.cluster} is up", fix="start it with `helio up`")
    return There(head=head, nodes=tuple(nodes_of(refs).values()))


def _say_differences(site: Site, refs: Sequence[Ref]) -> None:
    """A run goes to the cluster that is there; that it is not quite the file's is worth a word."""
    plan = diff(site.ground.want(site.spec), refs, spare=lambda ref: may_scale_to(site.spec, ref))
    names = [*(one.key for one in plan.create), *(one.wanted.key for one in plan.change)]
    names += [ref.key for ref in plan.delete]
    if names:
        text = f"the cluster is not what the file says ({', '.join(names)}): `helio up` brings it there"
        site.emit(Note(text=text, level=Level.WARN))


# What is sent


def _packages(site: Site, ask: RunAsk) -> tuple[str, ...]:
    """What pip shall install for this job."""
    if ask.requirements:
        return from_file(ask.requirements)
    if not ask.file:
        return ()
    return from_script(Path(_work_folder(site, ask) or Path.cwd(), ask.cwd or ".", ask.command[0]))


def _work_folder(site: Site, ask: RunAsk) -> Path | None:
    if ask.work == "":
        return None
    return Path(ask.work) if ask.work else Path(site.spec.folder or ".", site.spec.work)


async def _prepared(
    site: Site, ask: RunAsk, there: There, packages: tuple[str, ...], secrets: dict[str, str]
) -> JobRequest:
    """Everything of the run is on the nodes; what comes back is what to submit."""
    run_id = new_run(site, slug(ask))
    folder = _work_folder(site, ask)
    surroundings = Surroundings(
        cluster=site.spec.cluster,
        run=run_id,
        folder=run_dir(there.head, run_id),
        python=there.head.facts.get("python", "python3"),
        address=there.head.facts.get("gcs", ""),
        storage=there.head.facts.get("storage") or site.spec.storage,
        work=folder is not None,
        secrets=bool(secrets),
        packages=packages,
    )
    asked = request(ask, surroundings)  # what cannot be asked is told before anything travels
    if folder is not None:
        sent = await send_work(site, there.nodes, folder, run_id, force=bool(ask.work))
        if sent.left_out:
            text = f"left out, because they look like credentials: {', '.join(sent.left_out)}"
            site.emit(Note(text=text, level=Level.WARN))
    else:
        await make_run_dir(site, there.nodes, run_id)
    if secrets:
        texts = secrets_text(secrets), wrapper_text(surroundings)
        await lay_secrets(site, there.nodes, surroundings.folder, *texts)
    return asked


async def make_run_dir(site: Site, nodes: Sequence[Ref], run_id: str) -> None:
    """A run without a work folder still has a place for its outputs."""
    from heliostat.engine.sync.stores import distinct

    for ref in distinct(nodes):
        async with site.ground.shell(ref) as shell:
            at = run_dir(ref, run_id)
            await shell.run(["mkdir", "-p", f"{at}/{OUTPUTS}", f"{at}/work"])


# To the end


async def _to_the_end(
    site: Site, ask: RunAsk, there: There, api: RayApi, asked: JobRequest, began: float
) -> RunEnd:
    """Follow the job; an interruption stops or leaves it, as asked."""
    from heliostat.engine.jobs import settled  # while Ray starts the job, nobody waits for us
    from heliostat.engine.outputs import fetch_outputs

    left = interrupted = False
    try:
        job = await _followed(site, api, asked)
    except asyncio.CancelledError:
        interrupted = True
        left = not _stops(site, ask, asked.id)
        # The person's answer is carried out: from here on the interruption is over.
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        job = await settled(api, asked.id) if left else await api.stop(asked.id)
    if left and not job.state.final:
        site.emit(Note(text=f"{asked.id} goes on: `helio logs -f {asked.id}` follows it", level=Level.WARN))
        return RunEnd(job=job, seconds=site.clock.monotonic() - began, left_running=True, interrupted=True)
    fetched, folder = await fetch_outputs(site, there.nodes, asked.id)
    seconds = site.clock.monotonic() - began
    return RunEnd(job=job, seconds=seconds, fetched=fetched, folder=folder, interrupted=interrupted)


async def _followed(site: Site, api: RayApi, asked: JobRequest) -> Job:
    from heliostat.engine.jobs import tell_waiting, to_its_end

    waiting = asyncio.create_task(tell_waiting(site, api, asked))
    try:
        return await to_its_end(site, api, asked.id, heard=waiting.cancel)
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


def _stops(site: Site, ask: RunAsk, job_id: str) -> bool:
    """Whether an interruption ends the job; where nobody can be asked, it goes on."""
    if ask.on_interrupt is not OnInterrupt.ASK:
        return ask.on_interrupt is OnInterrupt.STOP
    try:
        return site.ask(f"Stop {job_id}? (no: it goes on without you)")
    except (UsageError, Interrupted):
        return False


# How it ended


def _close(site: Site, end: RunEnd, there: There) -> None:
    """One line: how it ended, what was fetched, what still runs."""
    job = end.job
    parts = [f"{job.id} {_ended(job, end)}"]
    if end.fetched:
        files = "1 file" if len(end.fetched) == 1 else f"{len(end.fetched)} files"
        parts.append(f"{files} in {_near(end.folder)}")
    if end.cluster_up:
        count = len(there.nodes)
        nodes = "1 node" if count == 1 else f"{count} nodes"
        parts.append(f"{site.spec.cluster} is still up with {nodes} (`helio down` removes it)")
    site.emit(Ended(verb="run", seconds=end.seconds, text="; ".join(parts)))


def _ended(job: Job, end: RunEnd) -> str:
    if end.left_running:
        return "goes on" if end.interrupted else f"is submitted (`helio logs -f {job.id}` follows it)"
    if job.state is JobState.SUCCEEDED:
        return "succeeded"
    if job.state is JobState.STOPPED:
        return "was stopped"
    if job.state is JobState.LOST:
        return "is lost: its driver died with its node"
    return "failed" if job.code is None else f"failed with exit code {job.code}"


def _near(folder: str) -> str:
    """A path as a person would type it here."""
    path, here = Path(folder), Path.cwd()
    return f"{path.relative_to(here)}/" if path.is_relative_to(here) else f"{path}/"


def exit_code(end: RunEnd) -> int:
    """The job's own; without one, what kept it from having one.

    >>> exit_code(RunEnd(job=Job(id="a", state=JobState.FAILED, code=7), seconds=1))
    7
    """
    if end.interrupted:
        return Interrupted.code
    if end.left_running or end.job.state is JobState.SUCCEEDED:
        return 0
    return end.job.code or JobLost.code
