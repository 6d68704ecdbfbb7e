"""The files that people run today, where they are at hand: HELIO_CASES, else beside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heliostat.core.errors import UsageError
from heliostat.core.foreign import convert
from heliostat.core.remark import Level
from tests.unit.rayyaml.support import read, spec

ROOT = Path(__file__).parents[3]
CASES = Path(os.environ.get("HELIO_CASES", ROOT.parent / "shared" / "cases"))
RAY = sorted((*CASES.glob("gce/*.yaml"), *CASES.glob("azure/*.yaml")))
COMPOSE = sorted(CASES.glob("compose/*.yaml"))

pytestmark = pytest.mark.skipif(
    not CASES.is_dir(), reason=f"no cases at {CASES} (HELIO_CASES names another folder)"
)


def test_they_are_all_there() -> None:
    assert (len(RAY), len(COMPOSE)) == (6, 2)


@pytest.mark.parametrize("file", RAY, ids=lambda file: file.stem)
def test_rays_files_are_complete_and_only_the_place_may_be_missing(file: Path) -> None:
    made = read(file.read_text(), file.name)
    assert made.spec.where == file.parent.name
    assert not [remark for remark in made.remarks if remark.level == Level.LOST]
    text = convert(file.read_text(), file.name).text
    assert spec(text) == spec(file.read_text())
    assert [note for note in read(text).notes if "is not available yet" not in note] == []


@pytest.mark.parametrize("file", COMPOSE, ids=lambda file: file.stem)
def test_compose_files_give_one_gpu_to_each_worker(file: Path) -> None:
    made = convert(file.read_text(), file.name)
    found = read(made.text).spec
    (group,) = found.workers
    assert group.count is not None
    assert group.node.gpus is not None
    assert (found.where, group.count.low, group.node.gpus.count) == ("compose", 2, 1)
    assert group.node.gpus.vendor == ("amd" if "rocm" in file.name else "nvidia")
    assert (found.storage, found.observe.grafana, group.node.volumes) == (
        "embedded",
        True,
        {"food11": "/mnt"},
    )
    assert (found.auth, group.node.shm) == ("network-only", 12 * 2**30)
    assert "your-secret-key" not in made.text
    assert "9000:9000" in made.text


def test_a_kubernetes_manifest_is_called_by_its_name() -> None:
    with pytest.raises(UsageError, match="Kubernetes manifest") as told:
        convert((CASES / "kubernetes" / "ray-cluster.yaml").read_text(), "ray-cluster.yaml")
    assert told.value.code == 2
