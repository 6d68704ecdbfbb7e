"""A machine that is not as it should be: one clear error each, before Ray starts, and nothing left."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from heliostat.core.owner import Owner
from heliostat.core.resource import NODE
from heliostat.engine.home import state_dir
from heliostat.engine.journal import FileJournal
from heliostat.grounds.local.find import listing
from heliostat.grounds.local.places import home_of, principal, private_dir, temp_of
from heliostat.ray.label import Label
from tests.cli.inside import Inside, Said

root = pytest.mark.skipif(os.getuid() != 0, reason="needs root: it mounts a file system")


def up(inside: Inside, text: str = "cluster: c\nworkers: 0\n") -> Said:
    inside.write(text)
    return inside("up", "--yes")


def refused(said: Said, code: int, *words: str) -> None:
    """One error that says what, why and what next; the cluster that was to be is not there."""
    assert said.code == code, said.err
    assert said.out == ""
    for word in (*words, "\nWhy: ", "\nNext: "):
        assert word in said.err, said.err
    assert "Traceback" not in said.err
    assert "bug of heliostat" not in said.err
    try:
        assert listing(Owner(principal(), "c")) == ()
    finally:
        assert not os.path.lexists(temp_of(Owner(principal(), "c")))


WANTS = (
    ("a Python that is not there", "python: /no/such\n", 2, "no Python at /no/such"),
    ("a Python that is a folder", "python: /tmp/\n", 2, "no Python at /tmp/"),
    ("a Python that is no Python", "python: /bin/false\n", 2, "/bin/false does not run"),
    ("a version of Python that nobody has", "python: '3.2'\n", 2, "Python 3.2 is not on this machine"),
    ("another release of Ray", "ray: 2.59.0\n", 2, "the file asks for ray: 2.59.0"),
    ("more workers than there is memory", "workers: 3000\n", 4, "no room for 3000 more workers"),
    ("more GPUs than there are", "head: { gpus: 60 }\n", 4, "head wants 60 GPUs"),
    ("a store that Ray refuses", "head: { shm: 1 MB }\n", 2, "takes 80 MiB at least"),
    ("a store beyond the memory", "head: { shm: 900 TB }\n", 4, "`shm` does not fit"),
    ("a copy of nothing", "files: { /tmp/helio-never: ./absent }\n", 2, "absent does not exist"),
    ("a copy over everything", "files: { /: . }\n", 2, "contain one another"),
    ("a copy over somebody's", "files: { /etc/hostname: helio.yaml }\n", 4, "exists already"),
    ("a copy where nothing can be", "files: { /proc/x: helio.yaml }\n", 4, "cannot copy to /proc/x"),
)


@pytest.mark.parametrize(("text", "code", "word"), [row[1:] for row in WANTS], ids=[row[0] for row in WANTS])
def test_what_this_machine_has_not(inside: Inside, text: str, code: int, word: str) -> None:
    pytest.importorskip("ray", reason="Ray is not installed here (pip install 'heliostat[local]')")
    workers = "" if "workers" in text else "workers: 0\n"
    refused(up(inside, f"cluster: c\n{workers}{text}"), code, word)


def python_with(folder: Path, release: str | None) -> Path:
    """An interpreter that looks for packages in that folder only, and finds this Ray there, or none."""
    if release:
        (folder / f"ray-{release}.dist-info").mkdir(parents=True)
    path = folder / "python"
    path.write_text(f"#!/bin/sh\necho {folder}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (None, "Ray is not installed"),
        ("2.40.0", "Ray 2.40.0"),
    ],
)
def test_a_python_without_the_ray_it_needs(
    inside: Inside, tmp_path: Path, release: str | None, words: str
) -> None:
    (tmp_path / "lib").mkdir()
    refused(
        up(inside, f"cluster: c\nworkers: 0\npython: {python_with(tmp_path / 'lib', release)}\n"), 2, words
    )


@pytest.mark.parametrize("where", ["file/below", "/proc/nowhere"])
@pytest.mark.parametrize("variable", ["HELIO_DATA", "HELIO_STATE"])
def test_a_folder_of_ours_that_cannot_be_made(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, variable: str, where: str
) -> None:
    (inside.folder / "file").touch()
    monkeypatch.setenv(variable, str(inside.folder / where) if where[0] != "/" else where)
    said = up(inside)
    assert said.code in (4, 6), said.err
    assert "bug of heliostat" not in said.err
    assert "\nWhy: " in said.err
    assert "\nNext: " in said.err


def test_a_link_where_our_sockets_go(inside: Inside, tmp_path: Path) -> None:
    temp = Path(temp_of(Owner(principal(), "c")))
    private_dir(str(temp.parent))
    temp.symlink_to(tmp_path)
    try:
        said = up(inside)
        assert said.code == 4
        assert "is not a directory of yours" in said.err
    finally:
        temp.unlink()
    assert listing(Owner(principal(), "c")) == ()


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "none", folder], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@root
@pytest.mark.parametrize(
    ("options", "code", "words"),
    [("size=16k", 4, "the disk is full"), ("ro", 6, "make it writable")],
    ids=["a full disk", "a disk that is read-only"],
)
def test_a_disk(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, code: int, words: str
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed here (pip install 'heliostat[local]')")
    with mounted(tmp_path / "disk", options):
        monkeypatch.setenv("HELIO_DATA", str(tmp_path / "disk" / "data"))
        refused(up(inside), code, words)


def test_two_ups_at_once(inside: Inside) -> None:
    owner = Owner(principal(), "c")
    with FileJournal(state_dir()).hold(owner, "up"):
        refused(up(inside), 4, "another helio is at work on cluster c", str(os.getpid()))


def node_folder(owner: Owner, state: str) -> None:
    """What a node leaves behind when the machine goes down under it."""
    home = home_of(owner)
    for kind, key, folder in (("directory", "home", home), (NODE, "head", f"{home}/nodes/head")):
        private_dir(folder)
        facts = {"home": home}
        label = Label(kind=kind, key=key, principal=owner.principal, cluster="c", facts=facts)
        Path(folder, "owner.json").write_text(label.text())
    Path(home, "nodes", "head", "state.json").write_text(state)


ME = {"pid": os.getpid(), "start": 1, "phase": "up", "ports": {"dashboard": 1}}
GONE = {"pid": 2**22 - 1, "start": 1, "phase": "up", "ports": {"dashboard": 1}}


@pytest.mark.parametrize(
    "state",
    ["", "{", "\x00\x01", "[]", '"x"', json.dumps(GONE), json.dumps(ME)],
    ids=["empty", "cut off", "binary", "a list", "a text", "after a reboot", "a pid that changed hands"],
)
def test_a_state_file_is_not_believed(inside: Inside, state: str) -> None:
    owner = Owner(principal(), "c")
    node_folder(owner, state)
    inside.write("cluster: c\nworkers: 0\n")
    code, out, _ = inside("status")
    assert code == 5
    assert "none of its processes is there any more" in out
    code, out, err = inside("down", "--yes")
    assert (code, "Traceback" in err) == (0, False)
    assert listing(owner) == ()


@root
def test_a_folder_that_may_not_be_read(inside: Inside, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "helio.yaml").write_text("cluster: c\n")
    assert inside("check", "-f", str(closed / "helio.yaml")).code == 0, "and all modules are loaded now"
    closed.chmod(0o700)
    os.seteuid(65534)  # nobody
    try:
        said = inside("check", "-f", str(closed / "helio.yaml"))
    finally:
        os.seteuid(0)
    assert said.code == 2
    assert "cannot be reached" in said.err
    assert "Permission denied" in said.err
    assert "Traceback" not in said.err


def test_a_folder_that_is_gone(inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for words in (["status"], ["check", "-f", "helio.yaml"], ["run", "x.py"]):
        said = inside(*words)
        assert said.code == 2
        assert "the folder you are in is not there any more" in said.err
