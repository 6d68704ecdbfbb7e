"""A request that no single node can meet is refused, with what would fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliostat.core.errors import Infeasible
from heliostat.core.feasible import ensure_feasible, waits_for, wants
from heliostat.core.job import Needs, RayNode
from heliostat.core.spec import Count, Gpus, Group, Node, Spec

GIB = 2**30


def node(name: str, *, alive: bool = True, used: float = 0, **total: float) -> RayNode:
    return RayNode(id=name * 4, name=name, alive=alive, total=total, used={"CPU": used})


HEAD = node("head", CPU=2, memory=4 * GIB)
TWO = (HEAD, node("cpu-1", CPU=4, memory=8 * GIB, fast_disk=1))
FIXED = Spec(cluster="demo", workers=(Group(name="cpu", count=Count(low=1, high=1)),))


def refusal(needs: Needs, nodes: tuple[RayNode, ...] = TWO, spec: Spec = FIXED) -> str:
    with pytest.raises(Infeasible) as caught:
        ensure_feasible(needs, nodes, spec)
    assert caught.value.code == 7
    return str(caught.value)


def test_more_than_the_largest_node_is_refused_though_the_sum_would_do() -> None:
    text = refusal(Needs(cpus=5))
    assert "5 CPUs" in text
    assert "4 CPUs on cpu-1" in text
    assert "--num-cpus 4 (cpu-1)" in text


def test_each_need_may_be_met_but_not_on_the_same_node() -> None:
    nodes = (node("head", CPU=8), node("gpu-1", CPU=2, GPU=1))
    assert "--num-cpus 2 --num-gpus 1 (gpu-1)" in refusal(Needs(cpus=8, gpus=1), nodes)


def test_a_resource_that_nobody_has_is_named_with_those_that_there_are() -> None:
    text = refusal(Needs(resources={"fastdisk": 1}))
    assert "no fastdisk" in text
    assert "fast_disk" in text
    assert "no request at all" in text


def test_memory_is_told_in_plain_units() -> None:
    text = refusal(Needs(memory=64 * GIB))
    assert "64 GiB of memory" in text
    assert "--memory 8192MiB" in text
    assert "9,095 TiB of memory" in refusal(Needs(memory=10**16))


@pytest.mark.parametrize("needs", [Needs(), Needs(cpus=4), Needs(cpus=2, resources={"fast_disk": 1})])
def test_what_fits_one_node_passes_also_when_it_is_busy(needs: Needs) -> None:
    ensure_feasible(needs, (HEAD, node("cpu-1", CPU=4, fast_disk=1, used=4)), FIXED)


def test_a_group_that_can_still_grow_counts_with_what_the_file_says() -> None:
    big = Group(name="big", count=Count(low=0, high=2), node=Node(cpus=16, gpus=Gpus(count=1)))
    spec = Spec(cluster="demo", workers=(big,))
    ensure_feasible(Needs(cpus=16, gpus=1), (HEAD,), spec)
    assert "16 CPUs on a node of big" in refusal(Needs(cpus=17), (HEAD,), spec)


def test_a_group_at_its_maximum_adds_nothing() -> None:
    big = Group(name="big", count=Count(low=0, high=1), node=Node(cpus=16))
    grown = (HEAD, node("big-1", CPU=8))
    assert "8 CPUs on big-1" in refusal(Needs(cpus=16), grown, Spec(cluster="demo", workers=(big,)))


def test_what_nobody_knows_is_not_refused() -> None:
    spec = Spec(cluster="d", workers=(Group(name="w", count=Count(low=0, high=1), node=Node(machine="x")),))
    ensure_feasible(Needs(cpus=999, gpus=9), (HEAD,), spec)
    ensure_feasible(Needs(cpus=999), (), FIXED)


def test_a_dead_node_of_the_file_may_come_back() -> None:
    ensure_feasible(Needs(cpus=3), (HEAD, node("cpu-1", alive=False)), FIXED)


def test_what_a_waiting_job_waits_for() -> None:
    busy = (node("head", CPU=2, used=1), node("cpu-1", CPU=4, used=3))
    assert (
        waits_for(Needs(cpus=2), busy)
        == "2 CPUs to be free on one node: head has 1 CPU; cpu-1 has 1 CPU free now"
    )
    assert "set up on head" in waits_for(Needs(cpus=1), busy)
    assert "set up on the head" in waits_for(Needs(), busy)
    assert "a node with 1 GPU, which is not there yet" in waits_for(Needs(gpus=1), busy)


@given(asked=st.integers(1, 64), has=st.lists(st.integers(1, 64), min_size=1, max_size=4))
def test_refused_exactly_when_no_node_has_enough(asked: int, has: list[int]) -> None:
    nodes = tuple(node(f"head{i}" if i else "head", CPU=cpus) for i, cpus in enumerate(has))
    spec = Spec(cluster="demo")
    if asked <= max(has):
        ensure_feasible(Needs(cpus=asked), nodes, spec)
    else:
        assert f"--num-cpus {max(has)}" in refusal(Needs(cpus=asked), nodes, spec)
    assert wants(Needs(cpus=asked)) == {"CPU": asked}
