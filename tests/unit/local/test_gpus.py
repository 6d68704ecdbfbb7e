"""Devices are dealt: every one to one node, and no more than there are."""

from __future__ import annotations

import pytest

from heliostat.core.checked import Mark
from heliostat.core.errors import NoCapacity
from heliostat.core.names import nodes_of
from heliostat.core.spec import Count, Gpus, Group, Node, Spec
from heliostat.grounds.local.foresee import foresee
from heliostat.grounds.local.gpus import dealt, turns
from heliostat.ray.node_config import Site, environment


def deal(spec: Spec) -> dict[str, tuple[str, ...]]:
    turn = turns(spec)
    found = {name: dealt(node, name, turn[name]).gpus for name, node, _ in nodes_of(spec)}
    return {name: gpus.devices for name, gpus in found.items() if gpus}


def workers(count: int, gpus: Gpus | None) -> Group:
    return Group(name="w", count=Count(low=count, high=count), node=Node(gpus=gpus))


@pytest.fixture(autouse=True)
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5,6,7")


def test_each_worker_has_its_own_and_the_head_the_rest() -> None:
    found = deal(Spec(cluster="c", workers=(workers(3, Gpus(count=1)),)))
    assert found == {"head": ("7",), "w-1": ("3",), "w-2": ("5",), "w-3": ("6",)}


def test_nobody_asked_so_the_head_has_all() -> None:
    assert deal(Spec(cluster="c", workers=(workers(2, None),))) == {
        "head": ("3", "5", "6", "7"),
        "w-1": (),
        "w-2": (),
    }


def test_what_the_file_names_for_one_is_dealt_to_no_other() -> None:
    spec = Spec(
        cluster="c",
        head=Node(gpus=Gpus(count=2, devices=("3", "6"))),
        workers=(workers(2, Gpus(count=1)),),
    )
    assert deal(spec) == {"head": ("3", "6"), "w-1": ("5",), "w-2": ("7",)}


def test_more_than_there_are_is_refused_with_the_number() -> None:
    with pytest.raises(NoCapacity, match="w-3 wants 2 GPUs") as told:
        deal(Spec(cluster="c", workers=(workers(3, Gpus(count=2)),)))
    assert "has 4, 4 of them for others" in told.value.why


def test_none_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert deal(Spec(cluster="c", workers=(workers(1, None),))) == {"head": (), "w-1": ()}


@pytest.mark.parametrize(
    ("vendor", "variable"), [("amd", "HIP_VISIBLE_DEVICES"), ("nvidia", "CUDA_VISIBLE_DEVICES")]
)
def test_ray_is_told_of_devices_in_its_own_words(vendor: str, variable: str) -> None:
    node = Node(gpus=Gpus(count=2, vendor=vendor, devices=("1", "3")))
    env = environment(node, Site(home="/h", temp="/t", python="/p"), head=False, auth="token")
    assert env[variable] == "1,3"
    assert "ROCR_VISIBLE_DEVICES" not in env, "Ray refuses to work with it alone"


def test_what_this_machine_has_not_is_known_before_anything_is_touched() -> None:
    wants = Spec(cluster="c", workers=(workers(3, Gpus(count=2)),))
    said = list(foresee(wants))
    assert [(one.what, one.mark, one.error is None) for one in said] == [
        ("w-1", Mark.OK, True),
        ("w-2", Mark.OK, True),
        ("w-3", Mark.BAD, False),
    ]
    group = Group(name="w", count=Count(low=3, high=3, at_least=2), node=Node(gpus=Gpus(count=2)))
    enough = list(foresee(Spec(cluster="c", workers=(group,))))
    assert enough[-1].mark is Mark.WARN
    assert enough[-1].error is None
