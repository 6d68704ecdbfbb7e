"""Hosts in a file of their own: read where a file is read, and every mistake in it with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliostat.core.errors import FileError
from heliostat.engine.project import load


def write(folder: Path, ssh: str, **files: str) -> Path:
    (folder / "helio.yaml").write_text(f"cluster: c\nwhere: ssh\nssh: {ssh}\n")
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_hosts_come_from_the_file_in_its_order_each_once(tmp_path: Path) -> None:
    text = "# our lab\nnode[01-02].lab\n\ngpu.lab  # the big one\nnode[01-02].lab\n"
    spec = load(cwd=write(tmp_path, "{hosts: [first, ./lab.txt], head: gpu.lab}", lab=text)).spec
    assert spec.ssh.hosts == ("first", "node[01-02].lab", "gpu.lab")
    # One worker on each host but the head's, as with hosts that stand in the file itself.
    assert sum(group.count.high for group in spec.workers if group.count) == 3


def test_every_mistake_in_it_has_its_line(tmp_path: Path) -> None:
    text = "good\n[gpus]\nnode01 ansible_user=me\nnode[2-1]\n"
    with pytest.raises(FileError) as wrong:
        load(cwd=write(tmp_path, "{hosts: ./lab.txt}", lab=text))
    assert [(problem.file, problem.line) for problem in wrong.value.problems] == [
        ("./lab.txt", 2),
        ("./lab.txt", 3),
        ("./lab.txt", 4),
    ]


def test_a_missing_one_and_a_head_that_is_in_none(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        load(cwd=write(tmp_path, "{hosts: ./none.txt}"))
    with pytest.raises(FileError, match=r"`ssh.head` is x, which `ssh.hosts` does not name"):
        load(cwd=write(tmp_path, "{hosts: ./lab.txt, head: x}", lab="a\n"))
