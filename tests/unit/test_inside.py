"""From inside a cluster: its own file, or none, and nothing but work."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from heliostat.core.errors import Denied, MissingPart, UsageError
from heliostat.core.owner import Owner
from heliostat.core.spec import Count, Group, Spec
from heliostat.grounds.inside.ground import InsideGround

TWO = (Group(name="gpu", count=Count(low=2, high=2)),)


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InsideGround:
    told = tmp_path / "inside.json"
    told.write_text(json.dumps({"cluster": "box", "home": str(tmp_path), "gcs": 6379, "dashboard": 8265}))
    monkeypatch.setenv("HELIO_INSIDE", str(told))
    return InsideGround()


def test_a_file_must_be_this_clusters_own(inside: InsideGround) -> None:
    with pytest.raises(UsageError, match=r"a notebook of box, and helio\.yaml is about other"):
        asyncio.run(inside.principal(Spec(cluster="other", source="helio.yaml")))
    asyncio.run(inside.principal(Spec(cluster="box", source="helio.yaml", workers=TWO)))
    assert [one.key for one in inside.want(Spec(cluster="box"))] == ["head", "gpu-1", "gpu-2"]
    asyncio.run(inside.principal(Spec(cluster="default")))
    assert [one.key for one in inside.want(Spec(cluster="default"))] == ["head"]


def test_nothing_is_made_or_removed(inside: InsideGround) -> None:
    with pytest.raises(Denied, match="cannot be changed from inside"):
        inside.create(Owner("me", "box"), ())
    with pytest.raises(Denied, match="cannot be changed from inside"):
        inside.delete(())


def test_elsewhere_it_says_how_to_get_rid_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HELIO_INSIDE", raising=False)
    with pytest.raises(MissingPart, match="no container of a cluster"):
        InsideGround()
