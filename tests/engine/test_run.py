"""run on a fake place: what is sent, how it ends, what an interruption means; in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from heliostat.core.errors import Infeasible, JobLost, TimedOut, Unavailable, UsageError
from heliostat.core.event import Ended, Note, Output
from heliostat.core.job import JobState, Needs
from heliostat.core.owner import Owner
from heliostat.core.resource import Ref
from heliostat.core.run import OnInterrupt, RunAsk, RunEnd
from heliostat.core.spec import Count, Group, Node, Spec
from heliostat.engine.jobs import jobs, logs, stop
from heliostat.engine.lifecycle import down, up
from heliostat.engine.patience import Patience
from heliostat.engine.ports import Shell, Site
from heliostat.engine.run import attach, exit_code, run
from heliostat.shells.local import LocalShell
from heliostat.testing.fake import FakePlace, Script, fake_site
from tests.engine.worlds import Asked, Events, spec

OURS = Owner("somebody", "c")


class World:
    """A place with real folders for its nodes, and a person in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.place = FakePlace()
        self.place.homes = str(folder / "nodes")
        self.here = folder / "here"
        self.here.mkdir()
        self.events = Events()
        self.asked = Asked()

    def spec(self, **changes: object) -> Spec:
        return replace(spec(cpu=1), folder=str(self.here), **changes)  # type: ignore[arg-type]  # any key

    def site(self, wanted: Spec | None = None) -> Site:
        return fake_site(
            wanted or self.spec(), place=self.place, shells=self._shell, emit=self.events, ask=self.asked
        )

    def _shell(self, ref: Ref) -> Shell:
        Path(ref.facts["home"]).mkdir(parents=True, exist_ok=True)
        return LocalShell(home=ref.facts["home"], python=ref.facts["python"])

    def job(self, part: str, output: bytes = b"", *, seconds: float = 0.5, code: int = 0) -> None:
        """What a command with that in it will do."""
        self.place.scripts[part] = Script(output=output, seconds=seconds, code=code)

    def head(self, run_id: str, inside: str = "") -> Path:
        return Path(self.place.homes, OURS.id, "head", "runs", run_id, inside)

    @property
    def printed(self) -> bytes:
        return b"".join(event.data for event in self.events.of(Output) if isinstance(event, Output))

    @property
    def notes(self) -> str:
        return "\n".join(event.text for event in self.events.of(Note) if isinstance(event, Note))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


ECHO = RunAsk(command=("echo", "hi"), work="")


async def test_it_brings_the_cluster_up_and_ends_as_the_job_does(world: World) -> None:
    world.job("echo", b"hi\n")
    end = await run(world.site(), ECHO)
    assert (end.job.state, end.job.code, exit_code(end)) == (JobState.SUCCEEDED, 0, 0)
    assert world.printed == b"hi\n"
    (*_, closing) = world.events.of(Ended)
    assert isinstance(closing, Ended)
    assert "still up with 2 nodes" in closing.text
    world.job("echo", b"no\n", code=7)
    end = await run(world.site(), ECHO)
    assert (end.job.state, exit_code(end)) == (JobState.FAILED, 7)


async def test_two_at_once_without_a_cluster_share_one(world: World) -> None:
    world.job("echo", b"hi\n")
    ends = await asyncio.gather(run(world.site(), ECHO), run(world.site(), ECHO))
    assert [exit_code(end) for end in ends] == [0, 0]
    assert len({end.job.id for end in ends}) == 2
    assert "waiting for the other helio on c to end: `helio " in world.notes
    ups = [event for event in world.events.of(Ended) if isinstance(event, Ended) and event.verb == "up"]
    assert len(ups) == 1, "only one of them brings it up"


async def test_waiting_for_another_helio_has_an_end(world: World) -> None:
    site, patience = world.site(), Patience(make=20.0, join=10.0)
    with site.journal.hold(site.owner, "up"), pytest.raises(TimedOut, match="other helio on c") as told:
        await run(world.site(), ECHO, patience=patience)
    assert "30 s" in told.value.why
    assert world.place.names() == []


async def test_the_folder_is_sent_and_outputs_come_back_also_after_a_failure(world: World) -> None:
    (world.here / "train.py").write_text("print(1)")
    world.job("train.py", b"", code=3, seconds=60)
    site = world.site(world.spec(outputs=("results/",)))
    task = asyncio.ensure_future(run(site, RunAsk(command=("train.py",), file=True)))
    run_id = await started(site)
    assert world.head(run_id, "work/train.py").read_text() == "print(1)"
    made = world.head(run_id, "work/results")
    made.mkdir()
    (made / "loss.txt").write_text("0.1")
    (world.head(run_id, "outputs") / "model.bin").write_text("m")
    end = await task
    assert exit_code(end) == 3
    assert set(end.fetched) == {"model.bin", "results/loss.txt"}
    assert (Path(end.folder) / "results/loss.txt").read_text() == "0.1"
    assert (world.here / "outputs/.gitignore").read_text() == "*\n", "the next run does not send them back"


async def started(site: Site) -> str:
    """The id of the job that runs, once one does."""
    async with asyncio.timeout(600):
        while True:
            try:
                going = [job.id for job in await jobs(site) if job.state is JobState.RUNNING]
            except (UsageError, Unavailable):  # the cluster is not up yet
                going = []
            if going:
                return going[0]
            await asyncio.sleep(0.1)


async def test_what_can_never_fit_is_refused_before_anything_is_made(world: World) -> None:
    small = spec(cpu=1).workers[0].node
    site = world.site(world.spec(head=small))
    with pytest.raises(Infeasible, match="9999 CPUs"):
        await run(site, replace(ECHO, needs=Needs(cpus=9999)))
    assert not world.place.existing()


async def test_a_job_that_waits_says_for_what_and_can_be_stopped(world: World) -> None:
    big = Group(name="big", count=Count(low=0, high=1), node=Node(cpus=64))
    site = world.site(world.spec(workers=(*world.spec().workers, big)))
    await up(site)
    task = asyncio.ensure_future(run(site, replace(ECHO, needs=Needs(cpus=64))))
    await asyncio.sleep(10)  # of virtual time: it has had its chance to say so
    assert "waits for a node with 64 CPUs, which is not there yet" in world.notes
    (ended,) = await stop(site, ())
    assert ended.state is JobState.STOPPED
    assert exit_code(await task) == 1


@pytest.mark.parametrize(
    ("way", "state"), [(OnInterrupt.STOP, JobState.STOPPED), (OnInterrupt.LEAVE, JobState.RUNNING)]
)
async def test_ctrl_c_does_to_the_job_what_was_asked(world: World, way: OnInterrupt, state: JobState) -> None:
    end = await interrupted(world, way)
    assert (end.job.state, exit_code(end), end.left_running) == (state, 130, state is JobState.RUNNING)
    assert not world.asked.questions


@pytest.mark.parametrize("answer", [True, False])
async def test_ctrl_c_asks_once(world: World, answer: bool) -> None:
    world.asked.answer = answer
    end = await interrupted(world, OnInterrupt.ASK)
    assert end.left_running is not answer
    assert len(world.asked.questions) == 1
    if not answer:
        assert f"helio logs -f {end.job.id}" in world.notes
        again = await attach(world.site(), end.job.id)
        assert (again.job.state, exit_code(again)) == (JobState.SUCCEEDED, 0)
        assert world.printed.endswith(b"0123456789")


async def interrupted(world: World, way: OnInterrupt) -> RunEnd:
    """A run of something long, with Ctrl-C in its middle."""
    world.job("long", b"0123456789", seconds=100)
    site = world.site()
    task = asyncio.ensure_future(run(site, RunAsk(command=("long",), work="", on_interrupt=way)))
    await started(site)
    task.cancel()
    return await task


async def test_a_job_whose_head_died_is_lost_and_never_a_success(world: World) -> None:
    world.job("long", b"", seconds=1000)
    site = world.site()
    task = asyncio.ensure_future(run(site, RunAsk(command=("long",), work="")))
    await started(site)
    world.place.break_node(OURS, "head")
    await up(world.site())
    end = await task
    assert (end.job.state, exit_code(end)) == (JobState.LOST, 1)


async def test_detached_it_comes_back_at_once_and_logs_has_the_rest(world: World) -> None:
    world.job("long", b"a\nb\n", seconds=50)
    site = world.site()
    end = await run(site, RunAsk(command=("long",), work="", detach=True))
    assert (end.left_running, exit_code(end)) == (True, 0)
    ended = await logs(site, None, live=True)
    assert (ended.id, ended.state) == (end.job.id, JobState.SUCCEEDED)
    assert world.printed == b"a\nb\n"
    with pytest.raises(UsageError, match="no job is running"):
        await stop(site, ())
    with pytest.raises(UsageError, match="no job longish"):
        await logs(site, "longish", live=False)


async def test_down_afterwards_removes_the_cluster(world: World) -> None:
    end = await run(world.site(), replace(ECHO, down=True))
    assert not end.cluster_up
    assert not world.place.existing()


async def test_secrets_travel_beside_the_request_for_their_owner_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = world.site(world.spec(secrets=("HF_TOKEN",)))
    with pytest.raises(UsageError, match="HF_TOKEN"):
        await run(site, ECHO)
    assert not world.place.existing(), "it is told before anything is made"
    (world.here / ".env").write_text("HF_TOKEN='hush hush'\n")
    end = await run(site, ECHO)
    asked = world.place.jobs[OURS][end.job.id].request
    assert "hush" not in repr(asked)
    kept = world.head(end.job.id, "secrets.sh")
    assert "export HF_TOKEN='hush hush'" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0
    monkeypatch.setenv("HF_TOKEN", "louder")
    end = await run(site, ECHO)
    assert "louder" in world.head(end.job.id, "secrets.sh").read_text(), "the environment wins"
    assert "hush" not in repr(world.events) + repr(end)


async def test_a_cluster_that_is_not_quite_the_files_is_used_with_a_word(world: World) -> None:
    await run(world.site(), ECHO)
    await run(world.site(replace(world.spec(), workers=spec(cpu=2).workers)), ECHO)
    assert "cpu-2" in world.notes
    assert "node/cpu-2" not in world.place.names()


async def test_a_cluster_that_somebody_removes_ends_the_wait_for_it_soon(world: World) -> None:
    world.job("long", b"begun\n", seconds=1000)
    site = world.site()
    await up(site)
    running = asyncio.ensure_future(run(site, RunAsk(command=("long",), work="")))
    await started(site)
    await down(world.site())
    began = world.place.clock.monotonic()
    with pytest.raises(JobLost, match="c was removed while long-"):
        await running
    assert world.place.clock.monotonic() - began < 30
