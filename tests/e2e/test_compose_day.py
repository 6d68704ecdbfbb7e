"""A day with containers on a real engine: up, work over three nodes, figures, a lost worker, repair, down."""

from __future__ import annotations

import http.client
import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.boxed import SECRET, of_ours, opened
from tests.machine import Machine
from tests.rig.docker import LAB_IMAGE, RAY_IMAGE, Engine

pytestmark = [pytest.mark.docker, pytest.mark.ray, pytest.mark.slow]

TARGETS = "http://prometheus:9090/api/v1/targets?state=active"


def nodes(box: Machine) -> dict[str, str]:
    return {node["name"]: node["state"] for node in box.json("status", code=0)["status"]["nodes"]}


def test_a_job_runs_over_three_nodes_with_its_setup_and_secrets(box: Machine) -> None:
    out = box("run", "hello.py").stdout
    assert f"('head', 'prepared', {len(SECRET)})" in out
    assert f"('worker-2', 'prepared', {len(SECRET)})" in out
    assert box("run", "--", "sh", "-c", "exit 7", code=7)


def test_another_up_finds_nothing_to_do(box: Machine) -> None:
    assert "nothing to do" in box("up", "--yes").stderr


def test_prometheus_gets_figures_from_every_node(box: Machine) -> None:
    """`up` waited for that: it is asked once."""
    ask = f"import urllib.request as u; print(u.urlopen('{TARGETS}').read().decode())"
    found: Any = json.loads(box("exec", "head", "--", "python3", "-c", ask).stdout)
    health = {each["labels"]["instance"]: each["health"] for each in found["data"]["activeTargets"]}
    assert health == dict.fromkeys(
        ("head:8080", "worker-1:8080", "worker-2:8080", "head:44217", "head:44227"), "up"
    )
    services = box.json("status")["status"]["services"]
    assert {one["key"]: one["facts"]["health"] for one in services} == dict.fromkeys(
        ("prometheus", "storage", "notebook"), "healthy"
    )


def test_prometheus_understands_every_query_of_rays_dashboards(box: Machine) -> None:
    program = Path(__file__).with_name("dashboards.py").read_text()
    found = json.loads(box("exec", "head", "--", "python3", "-c", program).stdout)
    assert len(found) >= 5, found.keys()
    assert [board["refused"] for board in found.values()] == [[]] * len(found)
    (default,) = (board for title, board in found.items() if title == "Default Dashboard")
    assert default["queries"] > 50
    assert default["with figures"] > 15


def test_a_service_shows_its_log_and_its_page(box: Machine) -> None:
    assert "ray start --address=head:6379" in box("logs", "--node", "worker-1").stdout
    assert "Server is ready to receive web requests" in box("logs", "prometheus").stdout
    with opened(box, "prometheus") as address:
        url = urlsplit(address)
        headers = {"Host": url.netloc}
        door = http.client.HTTPConnection("127.0.0.1", url.port or 0, timeout=30)
        door.request("GET", f"{url.path}?{url.query}", headers=headers)
        cookie = (door.getresponse().headers["Set-Cookie"] or "").partition(";")[0]
        door = http.client.HTTPConnection("127.0.0.1", url.port or 0, timeout=30)
        door.request("GET", "/api/v1/status/buildinfo", headers={**headers, "Cookie": cookie})
        assert json.load(door.getresponse())["status"] == "success"


def test_nothing_listens_beyond_the_containers(engine: Engine, box: Machine) -> None:
    listening = ["nsenter", f"--net=/proc/{engine.pid}/ns/net", "ss", "-Hltn"]
    done = subprocess.run(listening, capture_output=True, text=True, check=True)
    assert done.stdout == "", "the engine's machine has open ports"


def test_no_secret_is_in_what_docker_shows(engine: Engine, box: Machine) -> None:
    token = box("exec", "head", "--", "cat", "/helio/token").stdout.strip()
    assert len(token) == 64
    shown = engine.docker("inspect", *of_ours(engine, "container"))
    shown += engine.docker("volume", "inspect", *of_ours(engine, "volume"))
    shown += "".join(engine.docker("logs", one) for one in of_ours(engine, "container"))
    assert token not in shown
    assert SECRET not in shown


def test_no_secret_is_on_a_disk_but_where_it_is_used(engine: Engine, box: Machine) -> None:
    """Neither here nor in what the engine keeps of containers: what they were told and what they are."""
    token = box("exec", "head", "--", "cat", "/helio/token").stdout.strip().encode()
    kept = engine.folder / "data"
    told = [*kept.glob("overlay2/*/diff/etc/heliostat/*"), *kept.glob("containers/*/*")]
    assert len([path for path in told if path.name == "node.json"]) == 3
    for path in (*told, *box.home.rglob("*")):
        if path.is_file() and path.name != ".env":
            text = path.read_bytes()
            assert token not in text, path
            assert SECRET.encode() not in text, path


def test_a_killed_worker_stays_away_until_up_brings_it_back(engine: Engine, box: Machine) -> None:
    before = engine.docker("container", "inspect", "--format", "{{.Id}}", name_of(engine, "worker-1"))
    box("kill", "worker-1", "--yes")
    engine.docker("kill", name_of(engine, "worker-2"))  # as a crash would
    assert name_of(engine, "worker-1") == ""
    box("up", "--yes")
    assert nodes(box) == dict.fromkeys(("head", "worker-1", "worker-2"), "alive")
    after = engine.docker("container", "inspect", "--format", "{{.Id}}", name_of(engine, "worker-1"))
    assert before != after
    assert "worker-1" in box("run", "hello.py").stdout


def name_of(engine: Engine, node: str) -> str:
    filters = ["--filter", f"label=heliostat.key={node}"]
    return engine.docker("ps", "-a", *filters, "--format", "{{.Names}}").strip()


def test_up_builds_an_image_of_ones_own(engine: Engine, box: Machine) -> None:
    (box.folder / "Dockerfile").write_text(
        f"FROM {RAY_IMAGE}\nCOPY hello.py /own/\nRUN echo built >/own/word\n"
    )
    (box.folder / "Dockerfile.lab").write_text(f"FROM {LAB_IMAGE}\nRUN echo lab >/word\n")
    text = (
        "cluster: own\nwhere: compose\ndockerfile: ./Dockerfile\nhead: {cpus: 1, shm: 200 MB}\nworkers: 0\n"
        "notebook: {dockerfile: ./Dockerfile.lab}\n"
    )
    (box.folder / "own.yaml").write_text(text)
    built = box("image", "build", "-f", "own.yaml")
    assert "RUN echo built" in built.stderr
    name = built.stdout.split()[0]
    assert name.startswith("heliostat/own:")
    engine.docker("image", "rm", "-f", name)
    assert "image built" in box("up", "-f", "own.yaml", "--yes").stderr
    assert box("exec", "-f", "own.yaml", "head", "--", "cat", "/own/word").stdout == "built\n"
    assert "Jupyter Server" in box("-f", "own.yaml", "logs", "notebook").stdout
    box("down", "-f", "own.yaml", "--yes")
    refused = box("image", "push", "-f", "own.yaml", "--name", "127.0.0.1:1/none", code=2)
    assert "there is no such image on this engine" in refused.stderr
