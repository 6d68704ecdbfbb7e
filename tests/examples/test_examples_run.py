"""The examples by `helio run`, exec, the API and the dashboard, on one real cluster of three nodes."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine import Machine

pytestmark = [pytest.mark.ray, pytest.mark.slow]
EXAMPLES = Path(__file__).parents[2] / "examples"
NODES = ["head", "worker-1", "worker-2"]


@pytest.fixture(scope="module")
def three() -> Iterator[Machine]:
    """The examples in a folder without a file of ours: the default cluster, with two workers."""
    pytest.importorskip("ray", reason="Ray is not installed here (pip install 'heliostat[local]')")
    with tempfile.TemporaryDirectory(prefix="hx", dir="/tmp", ignore_cleanup_errors=True) as home:
        made = Machine(Path(home))
        shutil.copytree(EXAMPLES, made.folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        try:
            made("up", "--set", "workers=2", "-q", "--yes")
            yield made
        finally:
            made("down", "--yes", "-q")


def own(printed: str) -> str:
    """Without the lines in which Ray says what it connects to: they are part of the job's output."""
    return re.sub(r"^\d{4}-\d\d-\d\d .*\tINFO worker\.py:.*\n", "", printed, flags=re.MULTILINE)


def run(three: Machine, *words: str) -> str:
    return own(three("run", *words).stdout)


def test_hello_counts_a_hundred_tasks_on_three_nodes(three: Machine) -> None:
    done = three("run", "examples/hello.py")
    assert re.match(r"Nodes: 3, CPUs: \d+\n", own(done.stdout)), "nothing of ours is among it"
    tasks = re.findall(r"^  (\S+) +(\d+) tasks$", done.stdout, re.MULTILINE)
    assert sum(int(count) for _, count in tasks) == 100
    assert {name for name, _ in tasks} <= set(NODES)
    assert re.search(r"run: hello-\S+ succeeded; default is still up with 3 nodes", done.stderr)


def test_primes_finds_them_all(three: Machine) -> None:
    out = run(three, "examples/primes.py")
    assert out.startswith("10001 tasks in ")
    assert "605 primes between 8995000 and 9005000" in out
    assert "8995003, 8995013" in out


def test_pairs_calls_every_node_from_every_node(three: Machine) -> None:
    out = run(three, "examples/pairs.py", "3")
    pairs = re.findall(r"^  (\S+) +called (\S+) +10 times$", out, re.MULTILINE)
    assert sorted(pairs) == [(a, b) for a in NODES for b in NODES]
    assert out.endswith("Success!\n")


def test_gpu_says_for_each_node_that_there_is_none(three: Machine) -> None:
    if shutil.which("nvidia-smi") or shutil.which("rocm-smi"):
        pytest.skip("this machine may have a GPU; the answer is then its own")
    assert sorted(run(three, "examples/gpu.py").splitlines()) == [f"{name}: no GPU" for name in NODES]


def test_variance_is_the_same_both_ways(three: Machine) -> None:
    for name in ("a.txt", "b.txt"):
        three.python("examples/variance.py", "--sample", "5000", name)
    out = run(three, "examples/variance.py", "3", "a.txt", "b.txt")
    assert "10,000 in 3 parts" in out
    assert "equal results: yes" in out
    assert "speed-up:" in out


def test_exec_finds_the_cluster_on_every_node(three: Machine) -> None:
    status = three("exec", "--", "ray", "status").stdout
    assert len(re.findall(r"^ 1 node_", status, re.MULTILINE)) == 3
    task = "import ray; ray.init(log_to_driver=False); print(ray.get(ray.remote(lambda: 6 * 7).remote()))"
    out = three("exec", "--all", "--", "python", "-c", task).stdout
    assert sorted(out.splitlines()) == [f"{name}: 42" for name in NODES]
    argv = three("exec", "tr '\\0' ' ' < /proc/$$/cmdline; cat $RAY_AUTH_TOKEN_PATH").stdout
    assert re.search(r"[0-9a-f]{64}$", argv), "the token is where the environment says"
    assert argv.count(argv[-64:]) == 1, "and not in the arguments"


NOTEBOOK = """
import asyncio
import heliostat

async def cell():
    with heliostat.cluster() as c:
        end = c.run("examples/hello.py")
        (head,) = c.exec(["echo", end.job.state], capture=True)
        print(head.out.decode(), end="")
    assert c.status().healthy, "it was up before"

asyncio.run(cell())
"""


def test_the_python_api_in_a_running_loop(three: Machine) -> None:
    out = own(three.python("-c", NOTEBOOK).stdout)
    assert out.startswith("Nodes: 3")
    assert out.endswith("succeeded\n")


def test_the_dashboard_opens_with_all_that_its_page_needs(three: Machine) -> None:
    from aiohttp import ClientSession, CookieJar

    async def visit(address: str) -> None:
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
            async with browser.get(address) as page:
                text = await page.text()
                assert (page.status, "<title>Ray Dashboard</title>" in text) == (200, True)
                parts = re.findall(r'(?:src|href)="([^"]+\.(?:js|css|ico))"', text)
            assert len(parts) >= 2
            for part in (*parts, "api/jobs/", "nodes?view=summary"):
                async with browser.get(str(page.url.join(type(page.url)(part)))) as answer:
                    assert answer.status == 200, part
                    assert await answer.read(), part
        async with ClientSession() as stranger, stranger.get(address) as again:
            assert again.status == 403, "the address works once"

    argv = [sys.executable, "-m", "heliostat", "open", "dashboard", "--no-browser"]
    with subprocess.Popen(
        argv, cwd=three.folder, env=three.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        try:
            assert child.stdout is not None
            asyncio.run(visit(child.stdout.readline().strip()))
        finally:
            child.terminate()
    assert child.returncode in (0, 130)
