"""`helio convert`, and Ray's file in place of ours."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.inside import Inside

RAY = """\
cluster_name: lab
provider: {type: local, head_ip: a, worker_ips: [b, c]}
auth: {ssh_user: me}
rsync_exclude: ["*.ckpt"]
"""


def test_it_prints_what_check_accepts(inside: Inside) -> None:
    inside.write(RAY, "ray.yaml")
    code, out, err = inside("convert", "ray.yaml")
    assert (code, err) == (0, "")
    inside.write(out)
    assert inside("check").out == inside("check", "ray.yaml").out == "ok: lab on ssh: a head and 2 workers\n"


@pytest.mark.parametrize(
    "words", [("check", "ray.yaml"), ("check", "-f", "ray.yaml"), ("-f", "ray.yaml", "check")]
)
def test_rays_file_is_taken_where_ours_is_and_one_line_says_so(
    inside: Inside, words: tuple[str, ...]
) -> None:
    inside.write(RAY, "ray.yaml")
    code, out, err = inside(*words)
    assert (code, out) == (0, "ok: lab on ssh: a head and 2 workers\n")
    lines = [line for line in err.splitlines() if "is not available yet" not in line]
    first = "ray.yaml is Ray's cluster YAML; `helio convert ray.yaml` shows the heliostat file that it means"
    assert lines == [
        f"{first}; not carried over: rsync_exclude",
        "ray.yaml:4:1: `rsync_exclude` is not carried over: write these lines into .helioignore: *.ckpt",
    ]


def test_json_has_every_remark(inside: Inside) -> None:
    inside.write(RAY, "ray.yaml")
    for verb in ("check", "convert"):
        data = json.loads(inside(verb, "--json", "ray.yaml").out)
        assert data["remarks"][0].startswith("ray.yaml:4:1: `rsync_exclude` is not carried over")
    assert data["text"].startswith("# Made by `helio convert` from ray.yaml")


def test_a_file_that_is_there_stays_unless_one_agrees(inside: Inside) -> None:
    inside.write(RAY, "ray.yaml")
    inside.write("cluster: mine\n")
    assert inside("convert", "ray.yaml", "-o", "helio.yaml").code == 2
    assert inside("check").out.startswith("ok: mine")
    code, out, _ = inside("convert", "ray.yaml", "-o", "helio.yaml", "--yes")
    assert (code, out.splitlines()[-1]) == (0, "next: helio check helio.yaml")
    assert "rsync_exclude" in out
    assert inside("check").out.startswith("ok: lab")
    assert inside("convert", "ray.yaml", "-o", "ray.yaml", "--yes").code == 2
    assert (inside.folder / "ray.yaml").read_text() == RAY


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("apiVersion: apps/v1\nkind: Deployment\n---\na: b\n", "Kubernetes manifest (Deployment)"),
        ("cluster: demo\n", "helio check other.yaml"),
        ("cluster_name: x\nprovider: {type: gpc}\n", "other.yaml:2:18: "),
        ("", "empty"),
    ],
)
def test_what_it_cannot_read_ends_with_2(inside: Inside, text: str, said: str) -> None:
    inside.write(text, "other.yaml")
    code, out, err = inside("convert", "other.yaml")
    assert (code, out) == (2, "")
    assert said in err


def test_another_folder_is_told(inside: Inside) -> None:
    inside.write(RAY, "ray.yaml")
    (inside.folder / "below").mkdir()
    assert "relative paths" in inside("convert", "ray.yaml", "-o", "below/helio.yaml").err
    assert "relative paths" not in inside("convert", "ray.yaml", "-o", "helio.yaml").err


def test_it_wants_one_file(inside: Inside) -> None:
    assert inside("convert").code == 2
    assert inside("convert", "nowhere.yaml").code == 2


def test_a_file_of_ours_never_loads_the_readers_of_others() -> None:
    code = (
        "import sys; from heliostat.core.decode import decode; "
        "decode('cluster: demo', source='', folder='/', env={}); "
        "sys.exit(any('rayyaml' in name or 'composefile' in name or 'draft' in name for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
