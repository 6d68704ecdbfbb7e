"""Many keys of the file on one real cluster: each is heard by Ray, by the nodes, or by the place."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.neighbours import Person, shown

pytestmark = pytest.mark.ray

FILE = """
head: { cpus: 1 }
workers:
  a: { count: 2, cpus: 1, gpus: 1, memory: 1 GB, shm: 100 MB, resources: { fast: 2 },
       labels: { team: vision }, env: { OWN: mine }, start_args: ["--object-manager-port=0"] }
setup: [ "echo ran >> ran.txt; command -v python > which.txt" ]
tags: { cost-center: "42" }
env: { SHARED: all, OWN: cluster }
"""

ASK = """
import json, os, ray
ray.init()
@ray.remote(resources={"fast": 1}, num_gpus=1)
def look(): return [os.environ.get(name) for name in ("SHARED", "OWN", "CUDA_VISIBLE_DEVICES")]
both = ray.get([look.options(label_selector={"helio-node": name}).remote() for name in ("a-1", "a-2")])
rows = {n["NodeName"]: [n["Resources"], n["Labels"]] for n in ray.nodes()}
print("\\nTOLD" + json.dumps([both, rows]))
"""


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    pytest.importorskip("ray", reason="Ray is not installed here (pip install 'heliostat[local]')")
    person = Person(tmp_path_factory.mktemp("keys"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HELIO_DATA", str(person.data))
        patch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
        try:
            up = person.start("keys", FILE)
            assert up.wait(120) == 0, (person.home / "keys.log").read_text()
            yield person
        finally:
            person.helio("down", "--yes", "-f", "keys.yaml")


def test_every_key_is_heard(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELIO_DATA", str(person.data))
    said, job = person.run("keys", "ask", ASK)
    assert job.code == 0, said
    both, rows = json.loads(said.partition("TOLD")[2].splitlines()[0])
    assert [one[:2] for one in both] == [["all", "mine"], ["all", "mine"]]
    assert sorted(one[2] for one in both) == ["3", "5"], "each device went to one node"
    for name in ("a-1", "a-2"):
        resources, labels = rows[name]
        assert (resources["CPU"], resources["GPU"], resources["fast"]) == (1, 1, 2)
        assert resources["memory"] == 1e9
        assert 95e6 < resources["object_store_memory"] <= 100e6
        assert labels["team"] == "vision"
    assert "GPU" not in rows["head"][0]
    assert any(b"raylet" in one.cmdline and b"--object_manager_port=0" in one.cmdline for one in shown())
    assert (person.home / "ran.txt").read_text() == "ran\n", "once, for three nodes"
    assert Path((person.home / "which.txt").read_text().strip()).parent.name == "bin"
    (label,) = person.data.glob("local/keys-*/owner.json")
    assert json.loads(label.read_text())["facts"] == {"tag:cost-center": "42"}


def test_a_boot_that_fails_says_why_and_where(person: Person) -> None:
    """Both on one machine that is busy already: a flag that Ray does not know, and a setup that fails."""
    for name, key, told in (
        ("flag", 'head: { start_args: ["--nonsense"] }', "--nonsense"),
        ("setup", 'setup: ["echo last words; exit 9"]', "ended with exit code 9:\nlast words"),
    ):
        (person.home / f"{name}.yaml").write_text(f"cluster: {name}\nworkers: 0\n{key}\n")
        try:
            up: subprocess.CompletedProcess[str] = person.helio("up", "--yes", "--keep", "-f", f"{name}.yaml")
            assert up.returncode == 5, up.stderr
            assert "head did not start" in up.stderr
            assert told in up.stderr.partition("did not start")[2], up.stderr
            status = person.helio("status", "-f", f"{name}.yaml")
            assert status.returncode == 5
            assert told in status.stdout
        finally:
            assert person.helio("down", "--yes", "-f", f"{name}.yaml").returncode == 0
