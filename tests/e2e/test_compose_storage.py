"""A store of the cluster's own: jobs use it without being told anything. At the end all goes, as asked."""

from __future__ import annotations

import json

import pytest

from tests.e2e.boxed import of_ours, opened
from tests.machine import Machine
from tests.rig import browser
from tests.rig.browser import Browser
from tests.rig.docker import Engine

pytestmark = [pytest.mark.docker, pytest.mark.ray, pytest.mark.slow]


def test_jobs_put_and_get_without_being_told_anything(box: Machine) -> None:
    out = box("run", "s3.py").stdout.splitlines()
    assert out[-2:] == ["s3://helio [1, 2, 3, 10] b'from arrow'", "refused ClientError"]


def test_what_it_holds_is_shown_on_a_page(box: Machine) -> None:
    if lacking := browser.missing():
        pytest.skip(f"a page is looked at with: {lacking}")
    with opened(box, "storage") as address, Browser() as page:
        page.open(address)
        page.wait("document.body?.innerText.includes('by-boto3/')", "the bucket")
        page.picture("storage")
        page.open(page.value("[...document.links].find(one => one.text == 'by-boto3/').href"))
        page.wait("document.links.length == 4", "the three objects in the folder, and the way up")
        get = "fetch('/get?key=by-pyarrow/file').then(a => a.text()).then(text => document.title = text)"
        page.value(get)
        page.wait("document.title == 'from arrow'", "what is in an object")


def test_the_credentials_are_shown_nowhere(engine: Engine, box: Machine) -> None:
    keys = json.loads(box("exec", "head", "--", "cat", "/helio/keys/s3.json").stdout)
    (pair,) = keys["identities"][0]["credentials"]
    names = of_ours(engine, "container")
    shown = engine.docker("inspect", *names) + "".join(engine.docker("logs", name) for name in names)
    assert len(pair["secretKey"]) == 40
    assert pair["secretKey"] not in shown
    assert pair["accessKey"] not in shown


def test_down_keeps_data_when_asked_and_never_touches_what_was_there(engine: Engine, box: Machine) -> None:
    (box.folder / "left.py").write_text("open('/mine/left', 'w').write('by a job')")
    box("run", "left.py")
    asked = box("down", code=2)  # nobody is there to say yes
    assert "volume mine and what it holds" in asked.stderr
    assert "volume storage and what it holds" in asked.stderr
    proof = box.json("down", "--keep-data", "--yes")["proofs"][0]
    assert (proof["left"], sorted(ref["key"] for ref in proof["kept"])) == ([], ["mine", "storage"])
    assert of_ours(engine, "container") == of_ours(engine, "network") == []
    box("up", "--yes")
    get = (
        "import boto3; print(boto3.client('s3').get_object(Bucket='helio', Key='by-boto3/3')['Body'].read(),"
        " open('/mine/left').read())"
    )
    assert "b'xxx' by a job" in box("run", "--", "python3", "-c", get).stdout
    box("down", "--yes")
    assert of_ours(engine, "volume") == []
    assert engine.docker("volume", "ls", "-q").split() == ["food11"]
