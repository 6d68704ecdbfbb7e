"""`helio doctor`: what it finds, and its exit code."""

from __future__ import annotations

import importlib.metadata

import pytest

from tests.cli.inside import Inside
from tests.cli.place import Helio


def test_without_ray_clusters_here_cannot_work(
    inside: Inside, helio: Helio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELIO_GROUNDS", "local=tests.cli.place:KeptGround")
    monkeypatch.setenv("FAKE_PLACE", str(helio.place))
    version = importlib.metadata.version

    def without_ray(name: str) -> str:
        if name == "ray":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", without_ray)
    done = inside("doctor")
    assert done.code == 2
    assert "ray: pip install 'heliostat[local]'" in done.out
    assert "not in this Python" in done.out
