"""What an image is built from, and when it gets another name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heliostat.core.errors import UsageError
from heliostat.core.resource import NODE
from heliostat.core.spec import Count, Group, Node, Notebook, Spec
from heliostat.grounds.compose.want import want
from heliostat.shells.docker_images import recipe


def spec(folder: Path) -> Spec:
    two = Group(name="w", count=Count(low=2, high=2), node=Node())
    own = Group(name="own", count=Count(low=1, high=1), node=Node(image="lab/other:1"))
    return Spec(cluster="c", folder=str(folder), dockerfile="Dockerfile", workers=(two, own))


def test_nodes_run_the_image_of_the_dockerfile_unless_they_name_another(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM lab/ray:1\n")
    images = {one.key: one.body["image"] for one in want(spec(tmp_path)) if one.kind == NODE}
    name = recipe(spec(tmp_path), "").name
    assert images == {"head": name, "w-1": name, "w-2": name, "own-1": "lab/other:1"}
    pulls = {one.key: one.body["pull"] for one in want(spec(tmp_path)) if one.kind == NODE}
    assert (pulls["head"], pulls["own-1"]) == ("never", "missing")


def test_another_dockerfile_is_another_image_and_replaces_the_nodes(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM lab/ray:1\n")
    before = {one.key: one.digests.replace for one in want(spec(tmp_path)) if one.kind == NODE}
    (tmp_path / "Dockerfile").write_text("FROM lab/ray:2\n")
    after = {one.key: one.digests.replace for one in want(spec(tmp_path)) if one.kind == NODE}
    assert [key for key in before if before[key] != after[key]] == ["head", "w-1", "w-2"]


def test_what_cannot_be_built_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Dockerfile cannot be read"):
        want(spec(tmp_path))
    with pytest.raises(UsageError, match="nothing to build"):
        recipe(Spec(cluster="c"), "lab/ray:1")


def test_a_notebook_is_the_nodes_own_image_with_jupyterlab_unless_it_names_another(tmp_path: Path) -> None:
    plain = Spec(cluster="c", folder=str(tmp_path), image="lab/ray:1", setup=("pip install torch",))
    one = lab_of(replace(plain, notebook=Notebook()))
    assert one["recipe"]["text"].startswith("FROM lab/ray:1\nUSER root\nRUN pip install torch\nRUN ")
    assert "pip install --no-cache-dir 'jupyterlab" in one["recipe"]["text"]
    assert (one["image"], one["pull"]) == (one["recipe"]["name"], "never")
    named = lab_of(replace(plain, notebook=Notebook(image="lab/jupyter:3")))
    assert ("recipe" in named, named["image"], named["pull"]) == (False, "lab/jupyter:3", "missing")
    (tmp_path / "Dockerfile.lab").write_text("FROM lab/jupyter:3\n")
    built = lab_of(replace(plain, notebook=Notebook(dockerfile="Dockerfile.lab")))
    assert built["recipe"]["context"] == str(tmp_path)


def lab_of(spec: Spec) -> Mapping[str, Any]:
    (found,) = (one.body for one in want(spec) if one.name == "service/notebook")
    return found
