"""The file's `files` on hosts: what is copied, what is left alone, and that nothing stays. Without Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from heliostat.core.errors import Conflict, HelioError
from heliostat.core.owner import Owner
from heliostat.core.resource import Outcome, Ref, State
from heliostat.core.spec import Count, Group, Spec, SshSite
from heliostat.grounds.ssh.ground import SshGround
from tests.rig.host import Host
from tests.rig.rig import Rig

pytestmark = pytest.mark.rig

FAR = "/home/lab/far"


class Place:
    """Two hosts and a folder here; nodes are left out, so that no Ray is needed."""

    def __init__(self, hosts: list[Host], folder: Path) -> None:
        self.hosts = hosts
        names = tuple(host.name for host in hosts)
        other = Group(name="worker", count=Count(low=len(hosts) - 1, high=len(hosts) - 1))
        site = SshSite(hosts=names)
        self.spec = Spec(cluster="f", where="ssh", folder=str(folder), ssh=site, workers=(other,))
        self.owner = Owner("ssh:lab", "f")

    def _with(self, deed: Callable[[SshGround], Awaitable[list[Outcome]]]) -> list[Outcome]:
        """A ground of its own each time, as another process would have."""

        async def story() -> list[Outcome]:
            ground = SshGround(self.spec)
            try:
                return await deed(ground)
            finally:
                ground.close()

        return asyncio.run(story())

    def make(self, **files: str) -> list[HelioError]:
        """Bring hosts to these files (`a="config"` is FAR/a); what went wrong."""
        self.spec = replace(self.spec, files={f"{FAR}/{name}": here for name, here in files.items()})

        async def deed(ground: SshGround) -> list[Outcome]:
            wanted = [one for one in ground.want(self.spec) if one.kind != "node"]
            return [outcome async for outcome in ground.create(self.owner, wanted)]

        return [outcome.error for outcome in self._with(deed) if outcome.error]

    def refs(self) -> list[Ref]:
        async def deed(ground: SshGround) -> list[Outcome]:
            return [Outcome(name=ref.name, ref=ref) for ref in await ground.find(self.owner)]

        return [outcome.ref for outcome in self._with(deed) if outcome.ref and outcome.ref.kind == "files"]

    def down(self) -> None:
        async def deed(ground: SshGround) -> list[Outcome]:
            gone = [outcome async for outcome in ground.delete(await ground.find(self.owner))]
            assert await ground.find(self.owner) == ()
            return gone

        assert [outcome.error for outcome in self._with(deed) if outcome.error] == []

    def everywhere(self, script: str) -> set[str]:
        """What each host answers, as the account there."""
        return {host.sh(f"cd ~lab; {script}", user="lab", check=False).strip() for host in self.hosts}


@pytest.fixture
def place(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("HELIO_SSH_CONFIG", str(rig.config))
    monkeypatch.setenv("HELIO_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("HELIO_CACHE", str(tmp_path / "cache"))
    config = tmp_path / "config"
    (config / "deep").mkdir(parents=True)
    (config / "a").write_text("one")
    (config / "deep" / "run.sh").write_text("#!/bin/sh\n")
    (config / "deep" / "run.sh").chmod(0o755)
    (tmp_path / "single").write_text("alone")
    return Place(rig.new(2), tmp_path)


def test_files_come_to_every_host_follow_changes_and_go_again(place: Place, tmp_path: Path) -> None:
    assert place.make(config="config", single="single") == []
    look = f"cd {FAR}; cat config/a single; stat -c %a config/deep/run.sh"
    assert place.everywhere(look) == {"onealone755"}
    assert {ref.state for ref in place.refs()} == {State.READY}
    assert sorted({ref.facts["target"] for ref in place.refs()}) == [f"{FAR}/config", f"{FAR}/single"]
    (tmp_path / "config" / "a").write_text("two!")
    (tmp_path / "config" / "deep" / "run.sh").unlink()
    (tmp_path / "single").write_text("changed")
    before = {ref.name: ref.digests for ref in place.refs()}
    assert place.make(config="config", single="single") == []
    assert place.everywhere(f"cd {FAR}; cat config/a single; ls config/deep; ls -A | wc -l") == {
        "two!changed2"
    }
    assert all(ref.digests != before[ref.name] for ref in place.refs())
    place.down()
    assert place.everywhere(f"ls -d {FAR} 2>/dev/null; ls -A .local/share 2>/dev/null") == {""}


def test_what_is_somebody_elses_is_neither_overwritten_nor_removed(place: Place) -> None:
    place.everywhere(f"mkdir -p {FAR}/config; echo theirs >{FAR}/config/b")
    errors = place.make(config="config", other="config")
    assert [type(error) for error in errors] == [Conflict, Conflict]
    assert "exists already" in errors[0].what
    # What was ours, and is somebody else's by now, stays; so does what they have put beside it.
    place.everywhere(f"cd {FAR}; rm -r other; mkdir other; echo mine >other/c")
    assert {ref.state for ref in place.refs()} == {State.BROKEN}
    place.down()
    assert place.everywhere(f"cd {FAR}; cat config/b other/c; ls config") == {"theirs\nmine\nb"}


def test_a_copy_that_was_cut_off_is_made_whole_and_a_shared_disk_is_no_stranger(place: Place) -> None:
    """Another host with the same disk has no record of what the first one made."""
    assert place.make(config="config") == []
    host = place.hosts[0]
    part = place.refs()[0].facts["part"]
    # As if killed between `begin` and the last step: only the part is there.
    host.sh(f"mv {FAR}/config {part}")
    states = {ref.facts["host"]: ref.state for ref in place.refs()}
    assert states[host.name] is State.BROKEN
    assert place.make(config="config") == []
    assert {ref.state for ref in place.refs()} == {State.READY}
    host.sh("rm /home/lab/.local/share/heliostat/ssh/*/*/files/[0-9a-f]*.json")
    assert place.make(config="config") == []
    assert len(place.refs()) == 2
    place.down()
    assert place.everywhere(f"ls -d {FAR} 2>/dev/null") == {""}


def test_files_are_refused_where_they_would_take_too_much(place: Place) -> None:
    def told(files: Sequence[str]) -> str:
        place.spec = replace(place.spec, files=dict.fromkeys(files, "config"))

        async def deed(ground: SshGround) -> list[Outcome]:
            wanted = [one for one in ground.want(place.spec) if one.kind != "node"][:3]
            return [outcome async for outcome in ground.create(place.owner, wanted)]

        return str(next(outcome.error for outcome in place._with(deed) if outcome.error))

    assert "nothing is copied to /home/lab" in told(["~/"])
    assert "ermission denied" in told(["/etc/helio/config"])
    place.down()
