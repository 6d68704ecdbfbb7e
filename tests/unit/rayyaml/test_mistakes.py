"""Mistakes in Ray's file: all at once, each with its place and what was probably meant."""

from __future__ import annotations

import pytest

from heliostat.core.errors import FileError, UsageError
from heliostat.core.foreign import convert
from tests.unit.rayyaml.support import converted, read

PROVIDER = "provider: {type: local, head_ip: a, worker_ips: [b]}\n"
TYPES = "provider: {type: gcp}\nhead_node_type: h\n"


def mistakes(text: str) -> list[tuple[int, int, str]]:
    with pytest.raises(FileError) as told:
        read(text)
    return [(problem.line, problem.column, problem.nearest) for problem in told.value.problems]


def test_all_of_them_with_place_and_nearest_name() -> None:
    text = """\
cluster_name: demo
max_worker: 3
provider:
  type: gpc
setup_commands: pip install x
idle_timeout_minutes: soon
auth:
  ssh_usr: me
docker: {image: a, pull_before_run: 1}
"""
    assert mistakes(text) == [
        (2, 1, "max_workers"), (4, 9, "gcp"), (8, 3, "ssh_user"),
    ]  # fmt: skip
    fixed = text.replace("gpc", "gcp").replace("max_worker:", "max_workers:").replace("ssh_usr", "ssh_user")
    assert mistakes(fixed) == [(5, 17, ""), (6, 23, ""), (9, 37, "true")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("provider: {type: kuberay}", "no Kubernetes any more"),
        ("provider: {type: readonly}", "nothing to bring up"),
        ("provider: {type: external, module: x.Y}", "a provider of your own"),
        ("provider: {type: vsphere}", "no such place"),
        ("provider: {type: local, worker_ips: [b]}", "head_ip"),
        ("provider: {type: local, coordinator_address: a}", "no coordinator"),
        ("provider: {type: local, head_ip: a, worker_ips: [b], hed_ip: c}", "`hed_ip` is not a key"),
        (PROVIDER + "available_node_types: {a: {}}", "cannot stand beside"),
        (PROVIDER + "initial_workers: 3", "gone from Ray"),
        ("provider: {type: gcp, region: us-west1, availability_zone: europe-west4-a}", "but the zone is"),
        ("provider: {type: gcp}\navailable_node_types: {h: {}}", "`head_node_type` is missing"),
        ("provider: {type: gcp}\navailable_node_types: {h: {}}\nhead_node_type: g", "is not one of"),
        (TYPES + "max_workers: 1\navailable_node_types: {h: {}, w: {min_workers: 2, max_workers: 2}}",
         "less than all `min_workers`"),
        (TYPES + "available_node_types: {h: {node_config: {acceleratorType: v4-8}}}", "asks for a TPU"),
        (PROVIDER + "setup_commands: [pip install ray==2.55.0, pip install ray==2.54.0]", "need the same"),
        (PROVIDER + "file_mounts: {relative: ./x}", "absolute path"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_says_why(text: str, said: str) -> None:
    with pytest.raises(FileError) as told:
        read("cluster_name: demo\n" + text)
    assert said in str(told.value)
    assert all(problem.line for problem in told.value.problems)


def test_a_mistake_in_a_file_of_ours_is_still_one_of_ours() -> None:
    assert mistakes("cluster_name: demo\nworkers: 3\n") == [(1, 1, "cluster")]
    assert mistakes("cluster: demo\nprovider: {type: gcp}\n")[0] == (2, 1, "where")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("apiVersion: ray.io/v1\nkind: RayCluster\n---\na: b", "Kubernetes manifest (RayCluster)"),
        ("cluster: demo", "a heliostat file already"),
        ("a: b", "no file that can be converted"),
    ],
)
def test_convert_says_what_a_file_is_when_it_cannot_read_it(text: str, said: str) -> None:
    with pytest.raises(UsageError) as told:
        converted(text)
    assert said in told.value.what
    assert "Ray's cluster YAML" in told.value.why


def test_a_compose_file_is_for_convert_and_needs_a_head() -> None:
    text = "services: {a: {image: redis}}"
    with pytest.raises(UsageError, match="Compose file"):
        read(text)
    with pytest.raises(FileError, match="no service starts Ray's head"):
        convert(text, "compose.yaml")
