"""From a file to the Compose file that is handed over: as plain text, for CPUs, NVIDIA and AMD.

HELIO_GOLDEN=write makes the files new; look at what git says then.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from heliostat.core.decode import decode
from heliostat.core.errors import FileError
from heliostat.core.owner import Owner
from heliostat.core.resource import NODE, SERVICE, Resource
from heliostat.grounds.compose.file import compose_file, dump
from heliostat.grounds.compose.marks import marks
from heliostat.grounds.compose.service import Names, config_text
from heliostat.grounds.compose.want import want

FILES = Path(__file__).with_name("files")
OWNER = Owner("docker:me", "box")
CASES = ("cpu", "cuda", "rocm", "platform")


def containers(name: str) -> list[Resource]:
    text = (FILES / f"{name}.helio.yaml").read_text()
    spec = decode(text, source="helio.yaml", folder="/home/me/work", env={"HOME": "/home/me"}).spec
    return [one for one in want(spec) if one.kind in (NODE, SERVICE)]


def labels(wanted: list[Resource]) -> dict[str, Mapping[str, str]]:
    return {one.key: marks(OWNER, one, created=1.0) for one in wanted}


def made(name: str) -> str:
    """Without what a node is told, which `ray/` decides, and without digests."""
    wanted = containers(name)
    file = compose_file(wanted, labels(wanted), Names(OWNER.id, {"food11": "food11"}), program="(not here)")
    for one in wanted:
        if one.kind == NODE:
            file["configs"][one.key]["content"] = "(not here)"
    return re.sub(r"(heliostat\.(?:restart|replace)): \S+", r"\1: (not here)", dump(file))


def told(name: str) -> dict[str, Any]:
    return {one.key: json.loads(config_text(one))["node"] for one in containers(name) if one.kind == NODE}


@pytest.mark.parametrize("name", CASES)
def test_the_compose_file_is_what_it_was(name: str) -> None:
    path = FILES / f"{name}.compose.yaml"
    if os.environ.get("HELIO_GOLDEN") == "write":
        path.write_text(made(name))
    assert made(name) == path.read_text()


@pytest.mark.parametrize("name", CASES)
def test_compose_itself_accepts_it(name: str) -> None:
    words = ["docker", "compose", "-f", "-", "config", "-q"]
    if (
        shutil.which("docker") is None
        or subprocess.run([*words[:2], "version"], capture_output=True, check=False).returncode
    ):
        pytest.skip("Docker Compose v2 is not installed here")
    wanted = containers(name)
    text = dump(compose_file(wanted, labels(wanted), Names(OWNER.id)))  # with the whole program in it
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_each_nvidia_device_goes_to_one_worker() -> None:
    services = yaml.safe_load(made("cuda"))["services"]
    wishes = {
        name: one["deploy"]["resources"]["reservations"]["devices"]
        for name, one in services.items()
        if "deploy" in one
    }
    assert {name: wish[0]["device_ids"] for name, wish in wishes.items()} == {
        "gpu-1": ["0"],
        "gpu-2": ["1"],
        "big-1": ["GPU-8f1c", "GPU-77aa"],
    }
    assert all("environment" not in one for one in services.values()), "inside, devices count from 0"


def test_each_amd_device_is_one_render_node_of_one_worker() -> None:
    services = yaml.safe_load(made("rocm"))["services"]
    assert {name: one["devices"] for name, one in services.items() if "devices" in one} == {
        "gpu-1": ["/dev/kfd", "/dev/dri/renderD128"],
        "gpu-2": ["/dev/kfd", "/dev/dri/renderD129"],
    }
    assert services["gpu-2"]["environment"] == {"HIP_VISIBLE_DEVICES": "0", "ROCR_VISIBLE_DEVICES": "0"}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_published_but_by_the_door_and_no_node_comes_back_by_itself(name: str) -> None:
    nodes = {one.key for one in containers(name) if one.kind == NODE}
    for key, service in yaml.safe_load(made(name))["services"].items():
        assert ("ports" in service) == (key == "door")
        # A node that somebody killed stays dead; what only stands beside Ray may come back.
        assert service["restart"] == ("no" if key in nodes else "unless-stopped")
        assert not re.search(r"privileged|network_mode|cap_add|docker\.sock", yaml.dump(service))


def test_nodes_are_told_their_part_of_the_machine() -> None:
    nodes = told("rocm")
    args = nodes["gpu-2"]["args"]
    assert {"--address=head:6379", "--num-cpus=32", "--num-gpus=1", "--node-ip-address={helio-ip}"} <= set(
        args
    )
    (store,) = (word for word in args if word.startswith("--object-store-memory="))
    assert 0 < int(store.partition("=")[2]) < 12 * 2**30, "the rest of its shared memory is for others"
    assert nodes["gpu-2"]["env"]["HIP_VISIBLE_DEVICES"] == "0"
    assert "--num-cpus={helio-cpus}" in nodes["head"]["args"], "those that say nothing share the CPUs"
    assert "--num-gpus=0" in nodes["head"]["args"]
    assert told("cpu")["worker-1"]["env"]["PRICE"] == "$5 and /home/me"
    assert not any(node["loopback"] for node in nodes.values())


def test_no_secret_is_in_it() -> None:
    wanted = containers("cpu")
    text = dump(compose_file(wanted, labels(wanted), Names(OWNER.id)))
    token_paths = re.findall(r"RAY_AUTH_TOKEN\w*", text)
    assert set(token_paths) == {"RAY_AUTH_TOKEN_PATH"}, "the token is made in the volume, by the first node"


def test_the_door_publishes_what_the_file_exposes_and_knows_no_login() -> None:
    service = yaml.safe_load(made("platform"))["services"]["door"]
    assert [port["published"] for port in service["ports"]] == ["8265", "3000"]
    (told,) = (
        one.body["files"]["/etc/heliostat/door.json"] for one in containers("platform") if one.key == "door"
    )
    assert {(one["port"], one["network"]) for one in json.loads(told)} == {
        (8265, "10.0.0.0/8"),
        (3000, "0.0.0.0/0"),
    }
    assert service["volumes"] == []


@pytest.mark.parametrize(
    ("network", "why"),
    [("0.0.0.0/0", "no login guards it"), ("fd00::/8", "IPv6"), ("everybody", "wants a network")],
)
def test_a_network_that_cannot_be_kept_to_is_refused(network: str, why: str) -> None:
    text = f"cluster: c\nwhere: compose\nobserve: true\nexpose: {{ prometheus: '{network}' }}\n"
    with pytest.raises(FileError, match=why):
        decode(text, source="helio.yaml", folder="/", env={})


def test_a_notebook_has_no_gpu_and_the_dashboard_listens_for_it_alone() -> None:
    service = yaml.safe_load(made("platform"))["services"]["notebook"]
    assert service["environment"] == {"NVIDIA_VISIBLE_DEVICES": "void"}
    assert "deploy" not in service
    assert {"type": "bind", "source": "/home/me/work/notebooks", "target": "/work"}.items() <= next(
        one.items() for one in service["volumes"] if one["type"] == "bind"
    )
    assert "--dashboard-host=0.0.0.0" in told("platform")["head"]["args"]
    assert "--dashboard-host=0.0.0.0" not in told("cpu")["head"]["args"]


@pytest.mark.parametrize("name", CASES)
def test_no_password_is_in_it_fixed_or_generated(name: str) -> None:
    """Each is made where it is used: what is told is where it lies."""
    file = yaml.safe_load(made(name))
    told = [*(env for one in file["services"].values() if (env := one.get("environment"))),
            *(env for one in containers(name) if (env := one.body.get("env")))]  # fmt: skip
    for env in told:
        for variable, value in env.items():
            if re.search(r"PASSW|SECRET|TOKEN|_KEY", variable):
                assert value.startswith("/"), variable
    words = r"(?i)(passw\w*|secret\w*|token|accesskey)[\"']?\s*[=:]\s*[\"']?[\w+/-]{4,}"
    found = [one[0] for one in re.finditer(words, made(name)) if "FILE" not in one[0]]
    assert [one for one in found if "auth" not in one and "token_path" not in one] == []
