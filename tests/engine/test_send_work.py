"""A work folder on its way to real files of this machine, by the program that nodes run."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heliostat.core.errors import Conflict, HelioError, Unavailable, UsageError
from heliostat.core.event import Note
from heliostat.engine.sync.digests import LENGTH, Known, signature
from heliostat.engine.sync.scan import cache_file
from heliostat.engine.sync.work import run_dir, send_work
from heliostat.ray.label import Label
from heliostat.testing.shell_contract import plant, tree
from tests.engine.ground import Disks, site_of
from tests.engine.worlds import Events


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    plant(folder)
    return folder


def work(disks: Disks, run: str, node: str = "head") -> Path:
    return Path(run_dir(disks.node(node), run), "work")


async def test_every_disk_gets_its_own_writable_copy(disks: Disks, project: Path) -> None:
    nodes = [disks.node("cpu-1"), disks.node("head"), disks.node("cpu-2", home="cpu-1")]
    (project / os.fsdecode(b"odd\n\xff\\name")).write_bytes(b"x")
    (project / "locked").mkdir()
    (project / "locked" / "inner").write_text("inside")
    (project / "locked").chmod(0o500)
    sent = await send_work(site_of(disks), nodes, project, "r1")
    assert sent.files == 6
    for node in ("head", "cpu-1"):
        assert tree(work(disks, "r1", node)) == tree(project)
        assert (work(disks, "r1", node).parent / "outputs").is_dir()
        assert stat.S_IMODE((work(disks, "r1", node) / "locked").stat().st_mode) == 0o500
        assert sum(1 for _ in (disks.folder / node / "runs").iterdir()) == 1
    (work(disks, "r1") / "run.sh").write_text("a job writes")
    await send_work(site_of(disks), nodes, project, "r2")
    assert tree(work(disks, "r2")) == tree(project)
    (project / "locked").chmod(0o700)


async def test_only_what_changed_travels_in_one_command(disks: Disks, project: Path) -> None:
    head = disks.node("head")
    (project / "large").write_bytes(os.urandom(3_000_000))
    first = await send_work(site_of(disks), [head], project, "r1")
    assert first.moved_bytes > 3_000_000
    (project / "run.sh").write_text("changed")
    (project / "nothing").unlink()
    (project / "empty").rmdir()
    (project / "deep" / "more").mkdir()
    wire = disks.wire(head)
    second = await send_work(site_of(disks), [head], project, "r2")
    assert tree(work(disks, "r2")) == tree(project)
    assert (second.moved_files, wire.commands) == (1, 1)
    assert wire.sent < 40_000
    third = await send_work(site_of(disks), [head], project, "r3")
    assert (third.moved_files, third.moved_bytes, third.digest) == (0, 0, second.digest)
    assert tree(work(disks, "r3")) == tree(project)


async def test_contents_that_a_node_has_do_not_travel_whatever_their_name(
    disks: Disks, project: Path, tmp_path: Path
) -> None:
    head = disks.node("head")
    data = os.urandom(500_000)
    (project / "data").write_bytes(data)
    await send_work(site_of(disks), [head], project, "r1")
    other = tmp_path / "other"
    other.mkdir()
    (other / "copy").write_bytes(data)
    sent = await send_work(site_of(disks), [head], other, "r2")
    assert sent.moved_files == 0
    assert tree(work(disks, "r2")) == tree(other)


@pytest.mark.parametrize("limit", [0, 15_000, 400_000, 2_500_000, 9_000_000])
async def test_a_cut_leaves_nothing_half_and_the_next_sends_the_rest(
    disks: Disks, project: Path, limit: int
) -> None:
    head = disks.node("head")
    (project / "a").write_bytes(os.urandom(700_000))
    (project / "b").write_bytes(os.urandom(12_000_000))
    disks.wire(head, up=limit)
    with pytest.raises(Unavailable):
        await send_work(site_of(disks), [head], project, "r1")
    assert not work(disks, "r1").exists()
    assert not list((disks.folder / "head" / "store" / "blobs").rglob("*/*"))
    wire = disks.wire(head)
    await send_work(site_of(disks), [head], project, "r1")
    assert tree(work(disks, "r1")) == tree(project)
    if limit >= 9_000_000:
        assert wire.sent < 12_700_000 - 6_000_000, "what had arrived did not travel again"


async def test_a_store_that_lost_contents_is_filled_again(disks: Disks, project: Path) -> None:
    head = disks.node("head")
    await send_work(site_of(disks), [head], project, "r1")
    for pack in (disks.folder / "head" / "store" / "packs").iterdir():
        pack.unlink()
    await send_work(site_of(disks), [head], project, "r2")
    assert tree(work(disks, "r2")) == tree(project)


async def test_two_that_send_at_once_do_not_disturb_one_another(disks: Disks, project: Path) -> None:
    import asyncio

    head = disks.node("head")
    (project / "large").write_bytes(os.urandom(3_000_000))
    await asyncio.gather(*(send_work(site_of(disks), [head], project, f"r{n}") for n in range(3)))
    for number in range(3):
        assert tree(work(disks, f"r{number}")) == tree(project)


async def test_what_is_left_out_is_named(disks: Disks, project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("x")
    (project / ".gitignore").write_text("*.log\n/big/\n")
    (project / ".helioignore").write_text("!kept.log\n!.env.test\n*.tmp\n")
    for name in ("a.log", "kept.log", "b.tmp", ".env", ".env.test", "key.pem", "cert.pem", "deep/id_rsa"):
        (project / name).write_text("x")
    (project / "key.pem").write_text("-----BEGIN RSA PRIVATE KEY-----\nx")
    (project / ".aws").mkdir()
    (project / ".aws" / "credentials").write_text("x")
    (project / "out").symlink_to("/etc/passwd")
    (project / "up").symlink_to("../elsewhere")
    (project / "in").symlink_to(project / "run.sh")
    os.mkfifo(project / "pipe")
    events = Events()
    sent = await send_work(site_of(disks, events), [disks.node("head")], project, "r1")
    assert sent.left_out == (".aws/", ".env", "deep/id_rsa", "key.pem")
    assert sent.outside == ("out", "pipe", "up")
    there = tree(work(disks, "r1"))
    assert {"kept.log", ".env.test", "cert.pem", ".gitignore"} <= set(there)
    assert not {"a.log", "b.tmp", ".env", ".git", "out", "up", "pipe"} & set(there)
    assert there["in"] == "-> run.sh"
    said = " ".join(event.text for event in events if isinstance(event, Note))
    assert "out, up" in said
    again = await send_work(site_of(disks), [disks.node("head")], project, "r2")
    assert again == sent or again.left_out == sent.left_out
    (project / ".helioignore").unlink()
    later = await send_work(site_of(disks), [disks.node("head")], project, "r3")
    assert ".env.test" in later.left_out, "what was known does not skip the look"


async def test_everything_and_too_much_are_refused_unless_asked_for(
    disks: Disks, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project))
    for folder in (project, Path("/")):
        with pytest.raises(UsageError, match="is not sent"):
            await send_work(site_of(disks), [disks.node("head")], folder, "r1")
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setattr("heliostat.engine.sync.work.MOST", 1000)
    (project / "film").write_bytes(bytes(2000))
    with pytest.raises(UsageError, match="holds") as caught:
        await send_work(site_of(disks), [disks.node("head")], project, "r1")
    assert "film" in caught.value.why
    await send_work(site_of(disks), [disks.node("head")], project, "r1", force=True)
    assert tree(work(disks, "r1")) == tree(project)


async def test_a_file_that_changes_while_it_is_read_is_named(disks: Disks, project: Path) -> None:
    busy = project / "busy"
    busy.touch()
    os.truncate(busy, 40_000_000)
    # A process: a thread would get its turn from the reader. Times only: a busy disk makes writers wait.
    touch = "import os, sys\nprint(flush=True); n = 0\nwhile n := n + 1: os.utime(sys.argv[1], ns=(n, n))"
    writer = subprocess.Popen([sys.executable, "-c", touch, str(busy)], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline()
        with pytest.raises(Conflict, match="busy changes while it is read"):
            await send_work(site_of(disks), [disks.node("head")], project, "r1")
    finally:
        writer.kill()
        writer.communicate()
    assert not work(disks, "r1").exists()
    await send_work(site_of(disks), [disks.node("head")], project, "r1")
    assert tree(work(disks, "r1")) == tree(project)


async def test_a_change_between_the_look_and_the_sending_is_noticed(disks: Disks, project: Path) -> None:
    """The shell is the only moment that we share: the file changes when the first command runs."""
    head = disks.node("head")
    (project / "data").write_bytes(os.urandom(2_000_000))
    wire = disks.wire(head)
    plain = wire.run

    async def run(*args: object, **named: object) -> object:
        if wire.commands == 0:
            (project / "data").write_bytes(os.urandom(2_000_000))
        return await plain(*args, **named)  # type: ignore[arg-type]  # passed through

    wire.run = run  # type: ignore[method-assign,assignment]  # the line on which it happens
    await send_work(site_of(disks), [head], project, "r1")
    assert tree(work(disks, "r1")) == tree(project)


async def test_a_full_or_closed_disk_and_no_python_are_said(disks: Disks, project: Path) -> None:
    head = disks.node("head")
    (disks.folder / "head" / "store").write_text("in the way")
    with pytest.raises(HelioError, match="head cannot do that"):
        await send_work(site_of(disks), [head], project, "r1")
    (disks.folder / "head" / "store").unlink()
    broken = disks.node("head")
    broken.facts["python"] = "/no/python"  # type: ignore[index]  # a node that lost it
    with pytest.raises(Unavailable, match="has no Python at /no/python"):
        await send_work(site_of(disks), [broken], project, "r1")


async def test_an_unreadable_file_is_named_with_a_way_out(disks: Disks, project: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root can read everything")
    (project / "closed").write_text("x")
    (project / "closed").chmod(0)
    with pytest.raises(HelioError, match=r"cannot read .*closed") as caught:
        await send_work(site_of(disks), [disks.node("head")], project, "r1")
    assert ".helioignore" in caught.value.fix
    assert "make it readable" in caught.value.fix
    assert "b'" not in caught.value.why


def test_known_files_are_not_read_again(project: Path) -> None:
    """A file is known once its last change is longer ago than the clock's step."""

    def reads() -> int:
        known = Known.of(cache_file(project, "files"))
        for path in files:
            known.value(os.fsencode(path.name), os.fsencode(path), path.stat())
        known.save()
        return known.read

    files = [project / "run.sh", project / "nothing", project / "-dash"]
    assert reads() == 3
    deadline = time.monotonic() + 20
    while reads():
        assert time.monotonic() < deadline, "waited for the files to be known"
    (project / "run.sh").write_text("other")
    assert reads() == 1


def test_any_time_makes_a_signature_of_the_same_length(tmp_path: Path) -> None:
    """More nanoseconds than fit 64 bits, before 1970, and now."""
    file, signs = tmp_path / "file", set()
    file.write_text("x")
    for seconds in (14_000_000_000, 13_999_999_999, -1, 1_700_000_000):
        os.utime(file, ns=(seconds * 10**9, seconds * 10**9))
        assert file.stat().st_mtime_ns == seconds * 10**9
        signs.add(signature(file.stat()))
    assert {len(sign) for sign in signs} == {LENGTH}
    assert len(signs) == 4


async def test_heliostat_s_own_folders_stay(
    disks: Disks, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    label = Label(kind="directory", key="home", principal="uid:1@a", cluster="demo")
    home = project / "data" / "local" / "demo-1"
    plants = {home / "token": "t", home / "runs/r/work/x": "x", home / "owner.json": label.text()}
    plants |= {project / "mine" / "owner.json": '{"owner": "me"}', project / "state" / "journal": "j"}
    for path, text in plants.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("HELIO_STATE", str(project / "state"))
    monkeypatch.setenv("HELIO_CACHE", str(project / "src" / "cache"))
    events = Events()
    sent = await send_work(site_of(disks, events), [disks.node("head")], project, "r1")
    there = work(disks, "r1")
    assert not list(there.rglob("token"))
    assert not (there / "state").exists()
    assert not (there / "src/cache").exists()
    assert (there / "mine/owner.json").exists()
    assert {"data/local/demo-1/", "state/", "src/cache/"} <= set(sent.outside)
    assert "heliostat's own folders: data/local/demo-1/" in str(events.of(Note))
