"""`files` on this machine: copies that are ours to change and remove, and nothing that is not."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from heliostat.core.errors import Conflict, HelioError, UsageError
from heliostat.core.owner import Owner
from heliostat.core.resource import Ref, Resource, State
from heliostat.core.spec import Spec
from heliostat.grounds.local import want
from heliostat.grounds.local.ground import LocalGround
from heliostat.grounds.local.places import principal


class Place:
    """One cluster's directories and copies, without any node."""

    def __init__(self, folder: Path, cluster: str = "copies") -> None:
        self.folder = folder
        self.ground = LocalGround()
        self.owner = Owner(principal(), cluster)

    def wanted(self, there: Path, here: str = "./config") -> list[Resource]:
        spec = Spec(cluster="copies", files={str(there): here}, folder=str(self.folder))
        return [one for one in self.ground.want(spec) if one.kind != "node"]

    def make(self, there: Path, here: str = "./config") -> None:
        async def story() -> None:
            async for outcome in self.ground.create(self.owner, self.wanted(there, here)):
                if outcome.error:
                    raise outcome.error

        asyncio.run(story())

    def refs(self) -> list[Ref]:
        return [ref for ref in asyncio.run(self.ground.find(self.owner)) if ref.kind == "files"]

    def down(self) -> None:
        async def story() -> None:
            async for outcome in self.ground.delete(await self.ground.find(self.owner)):
                assert outcome.ok, outcome.error
            assert await self.ground.find(self.owner) == ()

        asyncio.run(story())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "a").write_text("one")
    (tmp_path / "single").write_text("alone")
    return Place(tmp_path)


def test_a_folder_and_a_file_come_and_go_with_the_folders_above_them(place: Place, tmp_path: Path) -> None:
    there = tmp_path / "far" / "away" / "config"
    place.make(there)
    assert (there / "a").read_text() == "one"
    assert [ref.state for ref in place.refs()] == [State.READY]
    place.down()
    assert not (tmp_path / "far").exists()
    place.make(tmp_path / "far" / "file", "single")
    assert (tmp_path / "far" / "file").read_text() == "alone"
    place.down()
    assert not (tmp_path / "far").exists()


def test_a_change_here_is_a_change_there(place: Place, tmp_path: Path) -> None:
    there = tmp_path / "there"
    place.make(there)
    before = place.refs()[0].digests
    (tmp_path / "config" / "a").write_text("two, longer")
    (tmp_path / "config" / "b").write_text("new")
    place.make(there)
    assert (there / "a").read_text() == "two, longer"
    assert (there / "b").exists()
    assert place.refs()[0].digests != before
    place.down()
    assert not there.exists()


@pytest.mark.parametrize("what", ["folder", "file", "link"])
def test_what_is_somebodys_stays_as_it_is(place: Place, tmp_path: Path, what: str) -> None:
    there = tmp_path / "there"
    if what == "folder":
        there.mkdir()
    elif what == "file":
        there.write_text("mine")
    else:
        there.symlink_to(tmp_path / "nowhere")
    with pytest.raises(Conflict, match="exists already"):
        place.make(there)
    place.down()
    assert os.path.lexists(there)


def test_what_took_the_place_of_our_copy_is_left_alone(place: Place, tmp_path: Path) -> None:
    there = tmp_path / "there"
    place.make(there)
    there.rename(tmp_path / "kept aside")
    there.mkdir()
    (there / "mine").touch()
    assert [ref.state for ref in place.refs()] == [State.BROKEN]
    with pytest.raises(Conflict):
        place.make(there)
    place.down()
    assert (there / "mine").exists()


def test_a_path_is_not_copied_onto_itself_nor_removed(place: Place, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "config")
    for there in (tmp_path / "config", link):
        place.make(there)
        assert [ref.state for ref in place.refs()] == [State.READY]
        place.down()
        assert (tmp_path / "config" / "a").read_text() == "one"
    assert link.is_symlink()


@pytest.mark.parametrize("there", ["config/inner", "."])
def test_a_folder_is_not_copied_into_itself(place: Place, tmp_path: Path, there: str) -> None:
    with pytest.raises(HelioError):
        place.make(tmp_path / there)
    assert sorted(path.name for path in (tmp_path / "config").iterdir()) == ["a"]


def test_a_source_that_is_not_there_is_named(place: Place, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="absent does not exist"):
        place.make(tmp_path / "there", "./absent")
    assert not (tmp_path / "there").exists()


def test_a_copy_that_fails_halfway_leaves_nothing(place: Place, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config" / "pipe")  # cannot be copied
    with pytest.raises(HelioError):
        place.make(tmp_path / "deep" / "there")
    assert not (tmp_path / "deep").exists()
    assert place.refs() == []
    place.down()


def test_names_are_stable_and_tell_apart(tmp_path: Path) -> None:
    spec = Spec(cluster="c", files={"/a/x": "./x", "/b/x": "./x"}, folder=str(tmp_path))
    keys = [one.key for one in want.copies(spec)]
    assert len(set(keys)) == 2
    assert all(key.startswith("x-") for key in keys)
