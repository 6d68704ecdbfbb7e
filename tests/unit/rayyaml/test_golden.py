"""Whole files: what Ray's file means is exactly the file of ours beside it."""

from __future__ import annotations

import pytest

from heliostat.core.remark import Level
from tests.unit.rayyaml.support import converted, golden, read, spec

RAY = ("lab", "cloud", "aws", "old")
LOST = {
    "lab": ["rsync_exclude"],
    "cloud": [
        'available_node_types."gpu.T4".node_config.minCpuPlatform',
        "upscaling_speed",
        "cluster_name",
    ],
    "aws": ['available_node_types."ray.head.default".node_config.BlockDeviceMappings.Ebs.VolumeType'],
    "old": [],
}


@pytest.mark.parametrize("name", RAY)
def test_rays_file_means_ours(name: str) -> None:
    assert spec(golden(f"{name}.yaml")) == spec(golden(f"{name}.helio.yaml"))


@pytest.mark.parametrize("name", [*RAY, "box"])
def test_what_convert_writes_means_the_same(name: str) -> None:
    source = golden(f"{name}.yaml" if name in RAY else f"{name}.compose.yaml")
    assert spec(converted(source).text) == spec(golden(f"{name}.helio.yaml"))


@pytest.mark.parametrize("name", RAY)
def test_what_cannot_be_said_is_named_with_its_place_and_nothing_else_is(name: str) -> None:
    made = read(golden(f"{name}.yaml"))
    named = [remark for remark in made.remarks if remark.level != Level.OURS]
    assert [remark.key for remark in named] == LOST[name]
    assert all(remark.place.startswith("ray.yaml:") for remark in named)
    for key in LOST[name]:
        assert key in made.notes[0]


def test_a_compose_files_ports_and_passwords_stay_behind_and_are_named() -> None:
    made = converted(golden("box.compose.yaml"))
    named = {remark.key for remark in made.remarks if remark.level == Level.LOST}
    assert named == {
        "services.store.ports", "services.store.environment.MINIO_ROOT_PASSWORD", "services.head.ports",
        "services.grafana.environment.GF_AUTH_ANONYMOUS_ENABLED", "services.head.environment.HF_TOKEN",
        "services.extra",
    }  # fmt: skip
    assert "changeme" not in made.text
    assert "abc" not in made.text


def test_a_ray_without_tokens_is_said_aloud() -> None:
    notes = read(golden("old.yaml")).notes
    assert any(note.startswith("Ray 2.9.0 has no token") for note in notes)
    assert spec(golden("old.yaml")).auth == "network-only"
    assert spec(golden("lab.yaml")).auth == "token"
