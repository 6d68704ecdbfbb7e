"""A notebook in a browser, signed in by `helio open`, whose cell sends jobs to the cluster."""

from __future__ import annotations

import pytest

from tests.e2e.boxed import of_ours, opened
from tests.machine import Machine
from tests.rig import browser
from tests.rig.browser import Browser
from tests.rig.docker import Engine

pytestmark = [pytest.mark.docker, pytest.mark.ray, pytest.mark.slow]

RUN = ".jp-NotebookPanel-toolbar [data-command='notebook:run-cell-and-select-next']"
PROMPT = "document.querySelector('.jp-CodeCell .jp-InputPrompt').innerText"
OUT = "[...document.querySelectorAll('.jp-OutputArea-output')].map(one => one.innerText).join('')"


def test_a_cell_sends_jobs_by_helio_by_ray_and_as_a_driver(box: Machine) -> None:
    if lacking := browser.missing():
        pytest.skip(f"a notebook is looked at with: {lacking}")
    with opened(box, "notebook") as address, Browser() as page:
        page.open(address)
        page.wait("location.pathname.startsWith('/lab')", "JupyterLab, signed in")
        page.open(f"{page.value('location.origin')}/lab/tree/demo.ipynb")
        page.wait("!!document.querySelector('.jp-Notebook-ExecutionIndicator')", "the notebook")
        for _ in range(20):  # a click before its kernel is there is forgotten
            page.click(RUN)
            try:
                page.wait(f"/\\[[*0-9]+\\]/.test({PROMPT})", "that the cell runs", 3)
                break
            except TimeoutError:
                continue
        page.wait(f"/\\[[0-9]+\\]/.test({PROMPT})", "that the cell has run", 90)
        page.picture("notebook")
        out = str(page.value(OUT))
    assert "sent by sh-" in out, out
    assert "\n42\n" in out, out
    assert "3 nodes" in out, out
    assert "succeeded" in box("jobs").stdout


def test_its_token_is_generated_and_nobody_gets_in_without(engine: Engine, box: Machine) -> None:
    name = engine.docker("ps", "-q", "--filter", "label=heliostat.key=notebook").strip()
    token = engine.docker("exec", name, "cat", "/helio/notebook/token").strip()
    assert len(token) == 64
    shown = engine.docker("inspect", *of_ours(engine, "container")) + engine.docker("logs", name)
    assert token not in shown
    ask = "import urllib.request as u; u.urlopen('http://notebook:8888/api/contents')"
    refused = box("exec", "head", "--", "python3", "-c", ask, code=1)
    assert "403" in refused.stderr


def test_from_inside_the_cluster_cannot_be_changed(engine: Engine, box: Machine) -> None:
    name = engine.docker("ps", "-q", "--filter", "label=heliostat.key=notebook").strip()
    env = engine.docker("exec", name, "cat", "/proc/1/environ").split("\0")
    said = [
        word for line in env if line.startswith(("HELIO_", "RAY_", "PYTHONPATH=")) for word in ("-e", line)
    ]
    inside = ("exec", "-w", "/work", *said, name, "helio")
    assert "worker-2  alive" in engine.docker(*inside, "status")
    done = engine.try_(*inside, "kill", "worker-1", "--yes")
    assert done.returncode == 3
    assert b"cannot be changed from inside" in done.stderr
    assert "nothing to do" in box("up", "--yes").stderr
