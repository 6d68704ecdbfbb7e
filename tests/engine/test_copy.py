"""push, pull and fetch on real files of this machine, by the program that nodes run."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from heliostat.core.errors import Conflict, HelioError, Unavailable, UsageError
from heliostat.core.event import Note
from heliostat.engine.sync.copy import bring, pull, push
from heliostat.engine.sync.fetch import fetch
from heliostat.engine.sync.work import run_dir, send_work
from heliostat.testing.shell_contract import plant, tree
from tests.engine.ground import Disks, site_of
from tests.engine.worlds import Events


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    plant(folder)
    return folder


def account(disks: Disks, node: str = "head") -> Path:
    return disks.folder / node / "account"


async def test_a_folder_goes_to_the_account_s_home_and_only_differences_follow(
    disks: Disks, here: Path
) -> None:
    head = disks.node("head")
    (first,) = await push(site_of(disks), [head], here, "a/b")
    there = account(disks) / "a" / "b"
    assert tree(there) == tree(here)
    assert first.moved_files == first.files - 1, "an empty file has nothing that could travel"
    (here / "run.sh").write_text("changed")
    (there / "-dash").write_text("somebody was here")
    (there / "theirs").write_text("stays")
    wire = disks.wire(head)
    (second,) = await push(site_of(disks), [head], here, "a/b")
    assert second.moved_files == 2
    assert wire.sent < 60_000
    assert (there / "theirs").read_text() == "stays"
    (there / "theirs").unlink()
    assert tree(there) == tree(here)
    (third,) = await push(site_of(disks), [head], here, "a/b")
    assert (third.moved_files, third.moved_bytes) == (0, 0)


async def test_what_was_sent_is_remembered_however_much_of_it_changes(disks: Disks, here: Path) -> None:
    """Few changes are noted beside the whole, many in a new one; either way only they travel."""
    head = disks.node("head")
    for number in range(1200):
        (here / f"{number:04}").write_text(f"{number}")
    await push(site_of(disks), [head], here, "x")
    for turn, changed in enumerate((3, 1100, 2), 1):
        for number in range(changed):
            (here / f"{number:04}").write_text(f"{number} of {changed}")
        (here / f"{1200 - turn:04}").unlink()
        (copied,) = await push(site_of(disks), [head], here, "x", delete=True)
        assert copied.moved_files == changed
        assert tree(account(disks) / "x") == tree(here)
    (copied,) = await push(site_of(disks), [head], here, "x", delete=True)
    assert (copied.moved_files, copied.deleted) == (0, 0)


async def test_what_is_not_here_is_deleted_when_asked(disks: Disks, here: Path) -> None:
    head = disks.node("head")
    (here / ".helioignore").write_text("cache/\n")
    (here / "cache").mkdir()
    await push(site_of(disks), [head], here, "x")
    there = account(disks) / "x"
    (here / "run.sh").unlink()
    (here / "deep" / "er" / "a file with spaces, ünd 'quotes'").unlink()
    await push(site_of(disks), [head], here, "x")
    assert (there / "run.sh").exists(), "nothing is deleted unasked"
    (there / "cache").mkdir()
    (there / "more" / "of it").mkdir(parents=True)
    (there / "more" / "of it" / "x").write_text("x")
    (copied,) = await push(site_of(disks), [head], here, "x", delete=True)
    assert copied.deleted == 5
    assert tree(there) == tree(here), "what is left out on purpose is not deleted either"


async def test_an_existing_folder_is_compared_by_content(disks: Disks, here: Path) -> None:
    head = disks.node("head")
    there = account(disks) / "x"
    there.mkdir()
    (there / "run.sh").write_bytes((here / "run.sh").read_bytes())
    (there / "run.sh").chmod(0o755)
    (there / "deep").write_text("a file where a folder shall be")
    (there / "-dash").mkdir()
    (copied,) = await push(site_of(disks), [head], here, "x")
    assert tree(there) == tree(here)
    assert copied.moved_files == copied.files - 2


async def test_a_file_goes_under_a_name_or_into_a_folder(disks: Disks, here: Path) -> None:
    nodes = [disks.node("head"), disks.node("cpu-1")]
    (here / "large").write_bytes(os.urandom(2_000_000))
    (here / "large").chmod(0o640)
    for remote, lands in (("x/name", "x/name"), ("folder/", "folder/large"), ("folder", "folder/large")):
        await push(site_of(disks), nodes, here / "large", remote)
        for node in ("head", "cpu-1"):
            place = account(disks, node) / lands
            assert place.read_bytes() == (here / "large").read_bytes()
            assert stat.S_IMODE(place.stat().st_mode) == 0o640
    (again,) = await push(site_of(disks), nodes[:1], here / "large", "x/name")
    assert again.moved_bytes == 0
    stores = [path for path in (disks.folder / "head" / "store").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in stores) < 100_000, "what was pushed is not kept twice"
    with pytest.raises(UsageError, match="does not exist"):
        await push(site_of(disks), nodes, here / "missing", "x")
    with pytest.raises(UsageError, match="is a file on"):
        await push(site_of(disks), nodes, here, "x/name")


@pytest.mark.parametrize("limit", [30_000, 5_000_000, 12_000_000])
async def test_a_cut_push_goes_on(disks: Disks, here: Path, limit: int) -> None:
    head = disks.node("head")
    (here / "large").write_bytes(os.urandom(15_000_000))
    disks.wire(head, up=limit)
    with pytest.raises(Unavailable):
        await push(site_of(disks), [head], here, "x")
    assert not (account(disks) / "x").exists()
    wire = disks.wire(head)
    await push(site_of(disks), [head], here, "x")
    assert tree(account(disks) / "x") == tree(here)
    assert wire.sent < 15_200_000 - (limit - 1_100_000 if limit > 8_000_000 else 0)


async def test_pull_brings_folders_files_and_names_what_is_missing(
    disks: Disks, here: Path, tmp_path: Path
) -> None:
    nodes = [disks.node("head"), disks.node("cpu-1")]
    await push(site_of(disks), nodes, here, "data")
    into = tmp_path / "into"
    (came,) = await bring(site_of(disks), nodes[:1], "data", into)
    assert tree(into) == tree(here)
    assert came.moved_files == 4
    (again,) = await bring(site_of(disks), nodes[:1], "data", into)
    assert again.moved_bytes == 0
    (into / "run.sh").write_text("other")
    (third,) = await bring(site_of(disks), nodes[:1], "data", into)
    assert third.moved_files == 1
    assert tree(into) == tree(here)
    await pull(site_of(disks), nodes, "data/run.sh", tmp_path / "both")
    for node in ("head", "cpu-1"):
        assert (tmp_path / "both" / node / "run.sh").read_bytes() == (here / "run.sh").read_bytes()
    await pull(site_of(disks), nodes[:1], "data/run.sh", tmp_path / "new" / "name")
    assert (tmp_path / "new" / "name").stat().st_mode & 0o100
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["name"]
    with pytest.raises(UsageError, match="there is no nothing on head"):
        await pull(site_of(disks), nodes[:1], "nothing", into)


async def test_pull_says_what_is_no_file(disks: Disks, tmp_path: Path) -> None:
    head = disks.node("head")
    account(disks).mkdir(parents=True, exist_ok=True)
    os.mkfifo(account(disks) / "line")
    for remote, word in (("/dev/zero", "device"), ("line", "pipe")):
        with pytest.raises(UsageError, match=f"{remote} on head is a {word}"):
            await bring(site_of(disks), [head], remote, tmp_path / "z")


async def test_a_run_without_a_path_means_its_outputs(disks: Disks, here: Path, tmp_path: Path) -> None:
    head = disks.node("head")
    await send_work(site_of(disks), [head], here, "r-1")
    (Path(run_dir(head, "r-1")) / "outputs" / "model").write_text("m")
    await bring(site_of(disks), [head], "r-1:", tmp_path / "into")
    assert [path.name for path in (tmp_path / "into").iterdir()] == ["model"]
    results = Path(run_dir(head, "r-1"), "work", "results")
    results.mkdir()
    (results / "table").write_text("t")
    site = site_of(disks)
    named = replace(site, spec=replace(site.spec, outputs=("results/",)))
    await bring(named, [head], "r-1:", tmp_path / "all")
    found = sorted(str(path.relative_to(tmp_path / "all")) for path in (tmp_path / "all").rglob("*"))
    assert found == ["model", "results", "results/table"], "what the file calls outputs, too"
    with pytest.raises(UsageError, match="there is no run nosuch on head"):
        await bring(site_of(disks), [head], "nosuch:", tmp_path / "into")


@pytest.mark.parametrize("limit", [100, 200_000, 5_000_000])
async def test_a_cut_pull_leaves_no_half_file_and_goes_on(
    disks: Disks, here: Path, tmp_path: Path, limit: int
) -> None:
    head = disks.node("head")
    (account(disks) / "x").mkdir(parents=True)
    (account(disks) / "x" / "a").write_bytes(os.urandom(100_000))
    (account(disks) / "x" / "b").write_bytes(os.urandom(8_000_000))
    into = tmp_path / "into"
    disks.wire(head, down=limit)
    with pytest.raises(Unavailable):
        await pull(site_of(disks), [head], "x", into)
    assert not (into / "b").exists()
    disks.wire(head)
    (came,) = await bring(site_of(disks), [head], "x", into)
    assert tree(into) == tree(account(disks) / "x")
    assert came.moved_bytes < 8_200_000 - max(0, limit - 1_200_000)


async def test_fetch_brings_outputs_and_patterns_from_every_disk(
    disks: Disks, here: Path, tmp_path: Path
) -> None:
    nodes = [disks.node("head"), disks.node("cpu-1")]
    (here / "results").mkdir()
    (here / "results" / "input").write_text("sent with the folder")
    await send_work(site_of(disks), nodes, here, "r1")
    for ref in nodes:
        at = Path(run_dir(ref, "r1"))
        (at / "outputs" / "model.bin").write_bytes(b"the same")
        (at / "outputs" / "log.txt").write_text(f"of {ref.key}")
        (at / "work" / "results" / f"{ref.key}.csv").write_text("1")
    (Path(run_dir(nodes[0], "r1")) / "work" / "results" / "input").write_text("changed by the job")
    (Path(run_dir(nodes[0], "r1")) / "outputs" / "escape").symlink_to("/etc")
    events, into = Events(), tmp_path / "outputs" / "r1"
    names = await fetch(site_of(disks, events), nodes, "r1", ["results/", "*.none", "../../x", "/etc"], into)
    assert (into / "log.txt").read_text() == "of head"
    assert (into / "cpu-1" / "log.txt").read_text() == "of cpu-1"
    assert (into / "results" / "input").read_text() == "changed by the job"
    assert (into / "results" / "cpu-1.csv").exists()
    assert not (into / "cpu-1" / "results").exists(), "what lies there as it was sent is no result"
    assert not (into / "cpu-1" / "model.bin").exists(), "the same bytes once"
    assert set(names) >= {"log.txt", "model.bin", "results/input", "results/head.csv", "results/cpu-1.csv"}
    said = [event.text for event in events if isinstance(event, Note)]
    assert sum("there is no" in text for text in said) == 3
    assert any("escape" in text for text in said)


async def test_a_path_of_a_run_comes_from_its_work_or_its_outputs(
    disks: Disks, here: Path, tmp_path: Path
) -> None:
    head = disks.node("head")
    await send_work(site_of(disks), [head], here, "r1")
    (Path(run_dir(head, "r1")) / "outputs" / "m").write_text("m")
    assert await pull(site_of(disks), [head], "r1:m", tmp_path / "m") == ("m",)
    await pull(site_of(disks), [head], "r1:deep", tmp_path / "deep")
    assert tree(tmp_path / "deep") == tree(here / "deep")
    for remote, error in (
        ("r1:none", "there is no none"),
        ("r2:m", "there is no m"),
        ("r1:../x", "leads out"),
    ):
        with pytest.raises(HelioError, match=error):
            await pull(site_of(disks), [head], remote, tmp_path / "no")
    assert not (tmp_path / "no").exists()


async def test_a_link_here_is_not_written_through(disks: Disks, here: Path, tmp_path: Path) -> None:
    head = disks.node("head")
    await push(site_of(disks), [head], here, "x")
    into, elsewhere = tmp_path / "into", tmp_path / "elsewhere"
    into.mkdir()
    elsewhere.mkdir()
    (into / "deep").symlink_to(elsewhere)
    (into / "run.sh").symlink_to(elsewhere / "file")
    with pytest.raises(Conflict, match="is a link here"):
        await pull(site_of(disks), [head], "x", into)
    (into / "deep").unlink()
    await pull(site_of(disks), [head], "x", into)
    assert tree(into) == tree(here)
    assert not list(elsewhere.iterdir())
