"""Every key that Ray knows, with an unusual value: it changes what the file means, or it is named."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from heliostat.core.errors import FileError
from heliostat.core.rayyaml.keys import AUTH, DOCKER, NODE_DOCKER, NODE_TYPE, PROVIDERS, TOP, provider_keys
from tests.unit.rayyaml.support import read, spec

TYPES = "head_node_type: h\navailable_node_types: {{h: {{}}, w: {{max_workers: 2, {}}}}}\n"
SITES = {
    "gcp": "type: gcp, project_id: p, availability_zone: us-west1-a",
    "azure": "type: azure, location: uksouth, resource_group: rg",
    "aws": "type: aws, region: eu-west-1",
    "local": "type: local, head_ip: a, worker_ips: [b, c]",
}
BASE = "cluster_name: demo\nprovider: {{{}}}\n"
# What each kind of value is when it is no default of Ray's.
ODD = {
    "text": "odd", "flag": "true", "whole": "1", "number": "3.5", "list": "[odd]", "commands": "[odd]",
    "table": "{odd: odd}", "any": "odd",
}  # fmt: skip
SPECIAL = {
    "max_workers": "1", "min_workers": "1", "resources": "{odd: 1}", "pull_before_run": "false",
    "rsync_filter": "[.odd]",
    "run_options": "[--odd]", "head_run_options": "[--odd]", "worker_run_options": "[--odd]",
    "file_mounts": "{/odd: odd}", "head_start_ray_commands": "[ray start --num-cpus=1]",
    "worker_start_ray_commands": "[ray start --num-cpus=1]", "node_config": "{machineType: odd}",
    "ssh_proxy_command": "nc %h", "worker_ips": "[b, d]", "gcp_credentials": "{type: service_account}",
    "security_group": "{GroupName: odd}", "region": "us-west1", "docker": "{image: odd}",
    "auth": "{ssh_user: odd}", "availability_zone": "us-west1-b",
}  # fmt: skip
# Keys that only say what is so without them.
IMPLIED = {"provider.gcp.region": "the zone says it"}


def odd(key: str, wants: str) -> str:
    return SPECIAL.get(key, ODD[wants])


def said(text: str) -> object:
    """What a file means and what is said about it; a refusal says it loudest."""
    try:
        made = read(text)
    except FileError as error:
        return str(error)
    return (spec(text), {(remark.level, remark.key, remark.text) for remark in made.remarks})


def pairs() -> Iterator[tuple[str, str, str]]:
    gcp = BASE.format(SITES["gcp"])
    for key, what in TOP.items():
        if key not in ("cluster_name", "provider", "available_node_types", "head_node_type"):
            yield key, gcp, gcp + f"{key}: {odd(key, what.wants)}\n"
    yield "cluster_name", gcp, gcp.replace("demo", "other")
    yield "head_node_type", gcp + TYPES.format(""), gcp + TYPES.format("").replace("type: h", "type: w")
    yield "available_node_types", gcp, gcp + TYPES.format("")
    for key, what in NODE_TYPE.items():
        without = gcp + TYPES.format("idle_timeout_s: 9" if key == "max_workers" else "")
        value = "{worker_image: odd}" if key == "docker" else odd(key, what.wants)
        line = without.replace(
            "max_workers: 2", f"{key}: {value}" if key == "max_workers" else f"max_workers: 2, {key}: {value}"
        )
        yield f"type.{key}", without, line
    for key, what in NODE_DOCKER.items():
        yield (
            f"type.docker.{key}",
            gcp + TYPES.format(""),
            gcp + TYPES.format(f"docker: {{{key}: {odd(key, what.wants)}}}"),
        )
    for key, what in DOCKER.items():
        image = "" if key == "image" else "image: x, "
        value = odd(key, what.wants)
        yield (
            f"docker.{key}",
            gcp + (f"docker: {{{image}}}\n" if image else ""),
            gcp + f"docker: {{{image}{key}: {value}}}\n",
        )
    for site in ("local", "gcp"):
        for key, what in AUTH.items():
            base = BASE.format(SITES[site])
            yield f"auth.{key} ({site})", base, base + f"auth: {{{key}: {odd(key, what.wants)}}}\n"


def provided() -> Iterator[tuple[str, str, str]]:
    for kind, site in SITES.items():
        for key, what in provider_keys(kind).items():
            if key == "type":
                continue
            parts = [part for part in site.split(", ") if not part.startswith(f"{key}: ")]
            if key == "worker_ips":
                parts = ["type: local", "head_ip: a"]
            without = BASE.format(", ".join(parts))
            yield (
                f"provider.{kind}.{key}",
                without,
                without.replace("}", f", {key}: {odd(key, what.wants)}}}", 1),
            )


EVERY = [*pairs(), *provided()]


@pytest.mark.parametrize(("key", "without", "given"), EVERY, ids=[key for key, _, _ in EVERY])
def test_it_is_never_ignored_silently(key: str, without: str, given: str) -> None:
    assert (said(without) == said(given)) == (key in IMPLIED)


def test_all_of_the_table_is_here() -> None:
    there = {key.partition(" ")[0] for key, _, _ in EVERY}
    table = {*TOP} - {"provider"} | {f"docker.{key}" for key in DOCKER} | {f"type.{key}" for key in NODE_TYPE}
    table |= {f"auth.{key}" for key in AUTH} | {f"type.docker.{key}" for key in NODE_DOCKER}
    table |= {f"provider.{kind}.{key}" for kind in SITES for key in PROVIDERS[kind]}
    assert table <= there
