"""Single keys of Ray's file, and what each becomes."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from heliostat.core.rayyaml.keys import PROVIDERS, TOP, Key, provider_keys
from heliostat.core.remark import Level
from heliostat.core.spec import Gpus, Node
from tests.unit.rayyaml.support import converted, read, spec

LOCAL = "cluster_name: demo\nprovider: {type: local, head_ip: a, worker_ips: [b, c]}\n"
GCP = "cluster_name: demo\nprovider: {type: gcp, project_id: p, availability_zone: us-west1-a}\n"


def head(more: str) -> Node:
    return spec(LOCAL + more).head


def named(text: str) -> list[str]:
    """The keys that are not carried over."""
    return [remark.key for remark in read(text).remarks if remark.level == Level.LOST]


@pytest.mark.parametrize(
    ("command", "ray", "left"),
    [
        ("pip install ray==2.55.0", "2.55.0", ()),
        ("pip3 install -U 'ray[default]==2.55.0'", "2.55.0", ()),
        ("which ray || pip install -U 'ray[default]==2.55.0'", "2.55.0", ()),
        ("uv pip install ray==2.55.0 numpy", "2.55.0", ("uv pip install numpy",)),
        ("sudo apt update && pip install ray==2.55.0", "2.55.0", ("sudo apt update && true",)),
        ("pip install 'ray[rllib]==2.55.0'", "2.55.0", ("pip install 'ray[rllib]==2.55.0'",)),
        ("pip install xgboost-ray==0.1.19", "2.60.0", ("pip install xgboost-ray==0.1.19",)),
        ("pip install -U ray", "2.60.0", ()),
        ('pip install -U "ray[default] @ https://x/ray-3.0.0.dev0-cp311.whl"', "2.60.0", ()),
        ("echo ray==2.0.0", "2.60.0", ("echo ray==2.0.0",)),
    ],
)
def test_a_pinned_ray_is_the_key_ray(command: str, ray: str, left: tuple[str, ...]) -> None:
    made = spec(LOCAL + f"setup_commands:\n  - {json.dumps(command)}\n")
    import shlex

    bare = tuple(shlex.split(line)[2].removeprefix("PATH=$VIRTUAL_ENV/bin:$PATH; ") for line in made.setup)
    assert (made.ray, bare) == (ray, left)


def test_a_python_that_conda_makes_is_the_key_python() -> None:
    assert spec(LOCAL + "setup_commands: [conda create -y -n ray python=3.9.18]\n").python == "3.9.18"


def test_counts_follow_rays_rules() -> None:
    def counts(types: str, most: str = "") -> list[tuple[str, int, int]]:
        made = spec(GCP + most + "head_node_type: h\navailable_node_types:\n  h: {max_workers: 0}\n" + types)
        return [(group.name, group.count.low, group.count.high) for group in made.workers if group.count]

    assert counts("  w: {}\n") == [("w", 0, 2)]
    assert counts("  w: {min_workers: 3, max_workers: 1}\n", "max_workers: 5\n") == [("w", 1, 1)]
    both = "  v: {min_workers: 1}\n  w: {max_workers: 9}\n"
    assert counts(both, "max_workers: 4\n") == [("v", 1, 4), ("w", 0, 3)]
    assert counts("  head: {max_workers: 1}\n  gpus: {max_workers: 1}\n") == [
        ("head-worker", 0, 1), ("gpus-worker", 0, 1),
    ]  # fmt: skip
    remarks = read(GCP + "head_node_type: h\navailable_node_types: {h: {}, w: {max_workers: 3}}\n").remarks
    assert [(remark.level, "Ray's own default" in remark.text) for remark in remarks] == [(Level.NEAR, True)]
    assert spec(GCP).workers[0].name == "ray-worker-small"
    assert (
        spec(GCP + "max_workers: 5\n").workers[0].count
        == spec(GCP + "max_workers: 5\nmetadata: {a: b}\n").workers[0].count
    )


def test_own_hosts_all_carry_a_worker_unless_the_file_says_fewer() -> None:
    def count(more: str) -> tuple[int, int]:
        found = spec(LOCAL + more).workers[0].count
        assert found is not None
        return found.low, found.high

    assert (count(""), count("max_workers: 1\n"), count("min_workers: 0\n")) == ((2, 2), (1, 1), (0, 2))
    assert count("max_workers: 9\n") == (2, 2)


def test_idleness_is_a_nodes_and_never_the_clusters() -> None:
    made = spec(GCP + "idle_timeout_minutes: 3\n")
    assert (made.idle, made.lifetime, made.workers[0].idle) == (None, None, 180.0)
    assert spec(LOCAL + "idle_timeout_minutes: 3\n").idle is None


@pytest.mark.parametrize(
    ("flags", "node"),
    [
        ("--num-cpus=4", Node(cpus=4)),
        ("--num-cpus 4 --num-gpus 1", Node(cpus=4, gpus=Gpus(count=1))),
        ("--memory=1000", Node(memory=1000)),
        ("--object_store_memory=2147483648", Node(shm=2**31)),
        ("--labels=a=b,c=d", Node(labels={"a": "b", "c": "d"})),
        ("--head --port=6379 --dashboard-host=0.0.0.0 --block --disable-usage-stats", Node()),
        ("--max-worker-port=30000", Node(start_args=("--max-worker-port=30000",))),
    ],
)  # fmt: skip
def test_flags_of_ray_start_are_keys(flags: str, node: Node) -> None:
    assert head(f"head_start_ray_commands: ['ray stop', 'ulimit -n 65536; ray start {flags}']\n") == node


def test_what_starts_beside_ray_is_named_and_variables_are_kept() -> None:
    more = "head_start_ray_commands: ['export A=1; B=2 ray start --head --num-cpus=$N --what=3 && ./serve']\n"
    assert head(more).env == {"A": "1", "B": "2"}
    assert named(LOCAL + more) == [
        "head_start_ray_commands --num-cpus", "head_start_ray_commands --what", "head_start_ray_commands",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        "ulimit -n 65536\nray start --head \\\n  --num-cpus=3\n",
        "sudo -E nohup ray start --num-cpus=3 > /dev/null 2>&1",
        "ray stop; ulimit -c unlimited && ray start --num-cpus 3 --block &> log",
    ],
)
def test_a_start_command_may_have_any_shape(command: str) -> None:
    more = f"head_start_ray_commands: [{json.dumps(command)}]\n"
    assert (head(more), named(LOCAL + more)) == (Node(cpus=3), [])


def test_options_that_only_a_shell_can_read_are_named() -> None:
    text = LOCAL + "docker: {image: x, run_options: ['$(nvidia-smi > /dev/null && echo --gpus=all)']}\n"
    assert (spec(text).docker.run, named(text)) == ((), ["docker.run_options"])


def test_options_of_containers_are_keys_where_there_are_any() -> None:
    options = "-v /a:/b, --volume=/c:/d:ro, --env X=1, --shm-size 1g, --cap-add SYS_PTRACE, -v $PWD:/e, --rm"
    of_head = "head_run_options: [-v /h:/h, --privileged]"
    text = LOCAL + f"docker: {{image: x, run_options: [{options}], {of_head}}}\n"
    made = spec(text)
    assert (made.volumes, made.env, made.head.shm) == ({"/a": "/b"}, {"X": "1"}, 2**30)
    assert made.docker.run == ("--volume", "/c:/d:ro", "--cap-add", "SYS_PTRACE")
    assert (made.docker.pull, made.head.volumes) == ("always", {"/h": "/h"})
    assert named(text) == ["docker.run_options", "docker.head_run_options"]


def test_one_image_for_each_side() -> None:
    made = spec(LOCAL + "docker: {head_image: 'rayproject/ray:2.55.0', worker_image: 'lab/x:1'}\n")
    assert (made.image, made.ray, made.head.image) == ("rayproject/ray:2.55.0", "2.55.0", None)
    assert made.workers[0].node.image == "lab/x:1"


def test_no_dollar_is_lost() -> None:
    made = spec(LOCAL + "setup_commands: ['echo $$ ${A} $B \"$C\"']\n")
    assert made.setup == ("bash -lic 'echo $$ ${A} $B \"$C\"'",)
    text = converted(LOCAL + "setup_commands: ['echo $$ ${A} $B \"$C\"']\n").text
    assert spec(text).setup == made.setup


def test_another_providers_keys_and_secrets_are_named() -> None:
    more = "project_id: p, location: x, gcp_credentials: {type: service_account, credentials: hush}"
    text = GCP.replace("project_id: p", more)
    assert named(text) == ["provider.location", "provider.gcp_credentials"]
    assert "hush" not in converted(text).text + str(read(text).remarks)


def test_flags_on_the_command_line_are_laid_over() -> None:
    from heliostat.core.decode import decode

    made = decode(LOCAL, source="ray.yaml", folder="/lab", env={}, sets=["workers=1"])
    assert made.spec.workers[0].count is not None
    assert made.spec.workers[0].count.low == 1
    assert {origin.place for origin in made.origins if origin.path == "cluster"} == {"ray.yaml:1:1"}


def of_ray(name: str) -> str:
    """A file of Ray's launcher, as it is installed here."""
    found = find_spec("ray")
    if found is None or not found.submodule_search_locations:
        pytest.skip("Ray is not installed here")
    return (Path(next(iter(found.submodule_search_locations))) / "autoscaler" / name).read_text()


def schema() -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(of_ray("ray-schema.json"))
    return whole


@pytest.mark.parametrize("provider", ["gcp", "azure", "aws"])
def test_rays_own_defaults_are_understood_whole(provider: str) -> None:
    text = of_ray(f"{provider}/defaults.yaml")
    assert spec(converted(text).text) == spec(text)
    assert named(text) == (["provider.cache_stopped_nodes"] if provider == "aws" else [])


WANTS = {
    "string": "text",
    "boolean": "flag",
    "integer": "whole",
    "number": "number",
    "array": "list",
    "object": "table",
}


def wants(part: dict[str, Any]) -> str:
    if "$ref" in part:
        return "commands"
    kind = part.get("type", "any")
    return WANTS.get(kind[0] if isinstance(kind, list) else kind, "any")


def compare(ours: dict[str, Key], theirs: dict[str, Any], path: str) -> list[str]:
    """Every difference: a key that only one has, or that wants something else."""
    found = [f"{path}{key}" for key in theirs if key not in ours]
    for key, part in theirs.items():
        if key in ours and ours[key].wants not in (wants(part), "any") and wants(part) != "any":
            found.append(f"{path}{key}: {ours[key].wants}, not {wants(part)}")
        if key in ours and ours[key].inside:
            found += compare(dict(ours[key].inside), part["properties"], f"{path}{key}.")
    return found


def test_our_table_knows_every_key_of_rays_schema() -> None:
    theirs = schema()["properties"]
    assert compare(TOP, theirs, "") == []
    assert set(TOP) - set(theirs) == {"min_workers", "head_node", "worker_nodes"}  # the old format
    every = {key: part for kind in PROVIDERS for key, part in provider_keys(kind).items()}
    assert compare(every, theirs["provider"]["properties"], "provider.") == []
    types = theirs["available_node_types"]["patternProperties"][".*"]["properties"]
    from heliostat.core.rayyaml.keys import NODE_TYPE

    assert compare(NODE_TYPE, types, "type.") == []
    assert set(NODE_TYPE) == set(types)


def test_files_and_commands_for_hosts_of_ones_own_are_taken_as_they_are() -> None:
    made = read(LOCAL + "file_mounts: {/data: ./data}\ninitialization_commands: [sudo mount /scratch]\n")
    assert made.spec.files == {"/data": "./data"}
    assert made.spec.host_setup == ("bash -lic 'sudo mount /scratch'",)
