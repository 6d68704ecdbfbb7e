"""`helio check` and `helio init`: what is right, what is wrong, and a file to start from."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from heliostat.core.decode import decode
from heliostat.core.schema import json_schema
from heliostat.core.spec import GROUNDS
from heliostat.core.starter import can
from tests.cli.inside import Inside
from tests.cli.place import Helio
from tests.cli.test_verbs import code_of, on_a_terminal, read_until

HOSTS = ("--host", "node[01-03].lab")


def test_what_is_right_is_one_line_on_stdout(inside: Inside) -> None:
    inside.write("cluster: demo\nworkers: { cpu: { count: 3, at_least: 2 }, gpu: { count: 1 } }\n")
    assert inside("check") == (0, "ok: demo on local: a head and 3 cpu (at least 2), 1 gpu\n", "")
    data = json.loads(inside("check", "--json").out)
    assert (data["code"], data["cluster"], data["where"]) == (0, "demo", "local")


def test_all_mistakes_at_once_and_nothing_on_stdout(inside: Inside) -> None:
    inside.write("clutser: demo\nwhere: locl\nworkers: two\n")
    code, out, err = inside("check")
    assert (code, out) == (2, "")
    assert [re.match(r"helio.yaml:(\d+):(\d+): ", line) is not None for line in err.splitlines()] == [
        False, True, True, True,
    ]  # fmt: skip
    assert err.startswith("helio: 3 mistakes\n")
    data = json.loads(inside("check", "--json").out)
    assert [problem["nearest"] for problem in data["problems"]] == ["cluster", "local", ""]


@pytest.mark.parametrize("words", [["helio.txt"], ["-f", "helio.txt"], ["--file", "helio.txt"]])
def test_the_file_may_have_any_name(inside: Inside, words: list[str]) -> None:
    inside.write("cluster: demo\n", "helio.txt")
    assert inside("check", *words).code == 0


def test_two_files_are_one_too_many(inside: Inside) -> None:
    inside.write("cluster: demo\n")
    assert inside("check", "helio.yaml", "b.yaml").code == 2
    assert inside("check", "-f", "helio.yaml", "b.yaml").code == 2


def test_without_a_file_there_is_nothing_to_check(inside: Inside) -> None:
    code, _, err = inside("check")
    assert code == 2
    assert "helio init" in err


@pytest.mark.parametrize("where", GROUNDS)
def test_any_place_can_be_checked_only_the_place_may_be_missing(inside: Inside, where: str) -> None:
    hosts = "ssh: { hosts: [a, b] }\n" if where == "ssh" else ""
    inside.write(f"cluster: demo\nwhere: {where}\n{hosts}")
    code, out, err = inside("check")
    assert (code, out.startswith("ok: demo on ")) == (0, True)
    assert err in ("", f"where: {where} is not available yet; this heliostat can use: {err.split(': ')[-1]}")
    inside.write(f"cluster: demo\nwhere: {where}\n{hosts}idel: 5 min\nlifetime: 5\n")
    assert inside("check").code == 2


def test_the_schema_is_printed_whole(inside: Inside) -> None:
    for words in (["--schema"], ["--schema", "--json"], ["--schema", "-q"]):
        assert json.loads(inside("check", *words).out) == json_schema()


def options(where: str) -> tuple[str, ...]:
    return ("--where", where, *(HOSTS if where == "ssh" else ()))


@pytest.mark.parametrize("where", GROUNDS)
def test_what_init_writes_passes_check_and_every_comment_does_too(inside: Inside, where: str) -> None:
    assert inside("init", "My Lab_7", *options(where)).code == 0
    text = (inside.folder / "My Lab_7" / "helio.yaml").read_text()
    assert inside("check", "My Lab_7").out.startswith(f"ok: my-lab-7 on {where}: ")
    offered = re.findall(r"^# ([a-z_]+:.*)$", text, re.MULTILINE)
    assert len(offered) >= 5
    for line in offered:
        if line == f"{where}:":  # its keys follow on lines of their own
            line = re.sub(r"^# ?", "", text[text.index(f"# {where}:") :].split("\n\n")[0], flags=re.MULTILINE)  # noqa: PLW2901 - the same, completed
        decode(f"{text}\n{line}\n", source="helio.yaml", folder="/lab", env={})
    assert can(where, "outputs") == ("# outputs:" in text)


def test_the_schema_for_editors_is_written_beside_and_agrees(inside: Inside) -> None:
    assert inside("init", "--schema").code == 0
    text = (inside.folder / "helio.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=helio.schema.json\n")
    schema = json.loads((inside.folder / "helio.schema.json").read_text())
    jsonschema.validate(yaml.safe_load(text), schema)


@pytest.mark.parametrize("name", ["café", "..", "123", "x" * 80, "--", "ünï cödé"])
def test_any_folder_gives_a_valid_name(inside: Inside, name: str) -> None:
    (inside.folder / name).mkdir(exist_ok=True)
    assert inside("init", "--", name).code == 0
    assert inside("check", "--", name).code == 0


def test_a_file_that_is_there_stays_unless_one_agrees(inside: Inside) -> None:
    inside.write("cluster: mine\n")
    code, _, err = inside("init")
    assert code == 2
    assert "--yes" in err
    assert inside("check").out.startswith("ok: mine")
    assert inside("init", "--yes", "--cluster", "new").code == 0
    assert inside("check").out.startswith("ok: new")
    assert os.listdir(inside.folder) == ["helio.yaml"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--cluster", "My Lab"], "did you mean my-lab?"),
        (["--where", "gcp"], "did you mean gce?"),
        (["--workers", "2-4"], "did you mean 2..4?"),
        (["--where", "ssh"], "--host node1"),
        (["--host", "a"], "--host is for --where ssh"),
        (["--where", "ssh", "--host", "node[1-"], "bracket"),
        (["a", "b"], "unexpected extra argument"),
    ],
)
def test_wrong_options_write_nothing(inside: Inside, words: list[str], hint: str) -> None:
    code, out, err = inside("init", *words)
    assert (code, out) == (2, "")
    assert hint in err
    assert os.listdir(inside.folder) == []


def test_where_nothing_can_be_written(inside: Inside) -> None:
    inside.write("text", "file")
    assert inside("init", "file").code == 2
    assert inside("init", "file/below").code == 4
    assert sorted(os.listdir(inside.folder)) == ["file"]


def test_on_a_terminal_it_asks_three_things_and_again_where_an_answer_is_wrong(helio: Helio) -> None:
    with on_a_terminal(helio, "init") as (child, terminal):
        for question, answer in (
            ("Name: [here] ", b"My Demo\n"),
            ("did you mean my-demo?", b"my-demo\n"),
            ("Place: [local] ", b"\n"),
            ("Workers: [2] ", b"3\n"),
        ):
            read_until(terminal, question)
            os.write(terminal, answer)
        seen = read_until(terminal, "")
        assert code_of(child) == 0, seen
    assert "wrote helio.yaml: my-demo on local: a head and 3 workers" in seen
    with on_a_terminal(helio, "init") as (child, terminal):
        read_until(terminal, "Name:")
        os.write(terminal, b"\x03")
        read_until(terminal, "")
        assert code_of(child) == 130
    assert "my-demo" in Path(helio.folder, "helio.yaml").read_text()


def test_helio_alone_shows_its_help_as_it_is(inside: Inside) -> None:
    code, _, err = inside()
    assert code == 2
    assert err.startswith("Usage: helio")
    assert err.endswith("environment.\n")
