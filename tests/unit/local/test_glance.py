"""A look without an event loop is the same look, and a folder without a file has the default cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from heliostat.core.decode import default_cluster
from heliostat.core.owner import UNWRITTEN, Owner
from heliostat.engine.ports import Glances
from heliostat.engine.project import unwritten
from heliostat.grounds.local.ground import LocalGround
from heliostat.grounds.local.places import home_of, principal


def test_a_glance_lists_what_is_found() -> None:
    ground, owner = LocalGround(), Owner(principal(), "here")
    assert isinstance(ground, Glances)
    assert ground.glance("here") == ()
    Path(home_of(owner)).mkdir(parents=True)
    assert len(ground.glance("here")) == 1
    assert ground.glance("here") == asyncio.run(ground.find(owner))
    assert ground.glance("other") == ()


def test_what_is_not_written_anywhere_is_the_default_cluster(tmp_path: Path) -> None:
    decoded = default_cluster(str(tmp_path))
    assert unwritten(cwd=tmp_path) == UNWRITTEN == (decoded.spec.cluster, decoded.spec.where)
    assert decoded.notes == (), "nothing to tell, hence nothing lost by not decoding"


@pytest.mark.parametrize("name", ["helio.yaml", "helio.yml"])
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("cluster: x\n")
    assert unwritten(cwd=tmp_path) is None
    assert unwritten(sets=["workers=1"], cwd=tmp_path.parent) is None
