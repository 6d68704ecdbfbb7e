"""Wrong files: for each one clear error that says where and what, the documented exit code, no traceback."""

from __future__ import annotations

import os

import pytest

from tests.cli.inside import Inside

C = b"cluster: c\n"
NESTED = b"".join(
    b"%c: &%c [%s]\n" % (97 + n, 97 + n, b",".join([b"*%c" % (96 + n) if n else b"x"] * 9)) for n in range(6)
)
HEAD = b"cluster: c\nhead: { %s }\n"

# what is wrong, the file's bytes, where the error stands (line:column, or the whole file), words it must have
FILES: tuple[tuple[str, bytes, str, str], ...] = (
    ("an unknown key", C + b"wrokers: 3\n", "2:1", "did you mean workers?"),
    ("an unknown key of a node", HEAD % b"cpuz: 1", "2:9", "did you mean cpus?"),
    ("a wrong unit", HEAD % b"memory: 3 GBB", "2:17", "did you mean 3 GB?"),
    ("a tab", C + b"head:\n\tcpus: 1\n", "3:1", "indent with spaces"),
    ("a key twice", C + b"cluster: d\n", "2:1", "line 1 already"),
    ("YAML's on", C + b"auth: on\n", "2:7", "token or network-only"),
    ("YAML's yes", C + b"workers: yes\n", "2:10", "a number such as 3"),
    ("YAML's octal", HEAD % b"cpus: 010", "2:15", "did you mean 10?"),
    ("YAML's hexadecimal", HEAD % b"cpus: 0x10", "2:15", "a number such as 8"),
    ("YAML's sexagesimal", C + b"idle: 1:30\n", "2:7", "did you mean 90 min?"),
    ("YAML's null", b"cluster: ~\n", "1:10", "a name"),
    ("YAML's infinity", HEAD % b"cpus: .inf", "2:15", "a number such as 8"),
    ("a number for a name", b"cluster: 42\n", "1:10", "did you mean c-42?"),
    ("a release that is none", C + b"ray: 2.60.x\n", "2:6", "a version such as 2.60.0"),
    ("a release without a token", C + b"ray: 2.40.0\n", "2:1", "auth: network-only"),
    ("an empty file", b"", "", "the file is empty"),
    ("a comment alone", b"# nothing\n", "", "the file is empty"),
    ("a bomb", NESTED, "", "more than 20,000 values"),
    ("an endless alias", C + b"env: &e { A: *e }\n", "2:14", "never end"),
    ("an alias to nothing", C + b"env: *x\n", "2:6", "put the value in quotes"),
    ("a tag that runs code", C + b"env: !!python/object/apply:os.abort []\n", "2:6", "no meaning here"),
    ("two documents", C + b"---\ncluster: d\n", "2:1", "one file holds one cluster"),
    ("a list", b"- a\n", "1:1", "must be a mapping"),
    ("a word", b"hello\n", "1:1", "must be a mapping"),
    ("an open quote", b'cluster: "c\n', "1:10", "never closed"),
    ("two colons", b"cluster: a: b\n", "1:11", "in quotes"),
    ("too deep", C + b"env: " + b"[" * 40 + b"]" * 40 + b"\n", "2:30", "nested more than"),
    ("UTF-16", "cluster: c\n".encode("utf-16"), "", "save it as UTF-8"),
    ("Latin-1", C + b"tags: { a: \xe9 }\n", "2:12", "is not UTF-8"),
    ("a binary", b"\x7fELF\x00\x00\x01", "1:1", "is it a text file?"),
    ("a NUL", C + b"work: a\x00b\n", "2:8", "a NUL byte"),
    ("a BOM and CRLF, and then a slip", b"\xef\xbb\xbfcluster: c\r\nwrokers: 3\r\n", "2:1", "mean workers?"),
    ("an accent in the name", "cluster: café\n".encode(), "1:10", "lower-case letters"),
    ("an emoji for a name", "cluster: 🔥\n".encode(), "1:10", "lower-case letters"),
    ("capitals", b"cluster: MyCluster\n", "1:10", "did you mean mycluster?"),
    ("a long name", b"cluster: " + b"a" * 60 + b"\n", "1:10", "at most 40"),
    ("a path for a name", b"cluster: ../../etc\n", "1:10", "lower-case letters"),
    ("a place that is none", C + b"where: lokal\n", "2:8", "did you mean local?"),
    ("a range backwards", C + b"workers: 4..2\n", "2:10", "did you mean 2..4?"),
    ("less than none", C + b"workers: -1\n", "2:10", "a number such as 3"),
    ("a slip of the finger", C + b"workers: 1000000\n", "2:10", "100,000 is the limit"),
    ("a range here", C + b"workers: 0..4\n", "2:1", "not available yet on local"),
    ("an image here", C + b"image: x\n", "2:1", "not available yet on local"),
    ("half a CPU", HEAD % b"cpus: 0.5", "2:9", "a part of a CPU such as 0.5"),
    ("half a GPU", HEAD % b"gpus: 0.5", "2:9", "a part of a GPU"),
    ("a GPU's model", HEAD % b"gpus: T4", "2:9", "by model such as T4"),
    (
        "one device for two",
        C + b"workers: { w: { count: 2, gpus: { devices: [a] } } }\n",
        "2:27",
        "same `dev",
    ),
    ("a flag of ours", HEAD % b"start_args: [--head]", "2:22", "heliostat sets it"),
    ("a port of ours", HEAD % b"start_args: [--dashboard-host=0.0.0.0]", "2:22", "the key `expose`"),
    ("a label that is two", HEAD % b'labels: { a: "b,c=d" }', "2:9", "letters, digits"),
    ("a label of ours", HEAD % b"labels: { helio-node: x }", "2:9", "without you"),
    ("a resource of Ray's", HEAD % b"resources: { CPU: 1 }", "2:9", "use the key `cpus`"),
    ("a secret's value", C + b"secrets: [HF_TOKEN=abc]\n", "2:11", "never values"),
    ("a store that is none", C + b"storage: http://x\n", "2:10", "s3://bucket/prefix"),
    ("a variable that is not set", C + b"env: { A: '${NOPE_NOT_SET}' }\n", "2:11", "is not set"),
    ("a variable's name", C + b"env: { a-b: 1 }\n", "2:8", "OMP_NUM_THREADS"),
    ("a variable of ours", C + b"env: { RAY_AUTH_MODE: x }\n", "2:8", "heliostat sets it"),
    ("a relative target", C + b"files: { zz: ./a }\n", "2:10", "an absolute path"),
)


@pytest.mark.parametrize(
    ("data", "place", "words"), [row[1:] for row in FILES], ids=[row[0] for row in FILES]
)
@pytest.mark.parametrize("verb", ["check", "up"])
def test_a_wrong_file_is_one_clear_error(
    inside: Inside, data: bytes, place: str, words: str, verb: str
) -> None:
    inside.write(data)
    before = set(os.listdir(inside.folder.parent))
    code, out, err = inside(verb, *(["--yes"] if verb == "up" else []))
    assert (code, out) == (2, "")
    assert f"helio.yaml:{place}: " in err if place else "helio.yaml:" in err
    assert words in err
    assert "Traceback" not in err
    assert "bug of heliostat" not in err
    assert set(os.listdir(inside.folder.parent)) - before <= {"helio-state"}, "nothing is left behind"


def test_everything_at_once(inside: Inside) -> None:
    inside.write(b"cluster: C\nwrokers: 3\nhead: { cpus: 010, memory: 3 GBB }\nidle: on\n")
    code, _, err = inside("check")
    assert code == 2
    assert sum(f"helio.yaml:{line}:" in err for line in (1, 2, 3, 4)) == 4


@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(None, "helio.yaml", id="a file that is not there"),
        pytest.param("folder", "is a directory", id="a folder"),
        pytest.param("pipe", "", id="a pipe that nobody writes to"),
        pytest.param("loop", "", id="a link to itself"),
        pytest.param("big", "limit", id="a file of two megabytes"),
    ],
)
def test_what_is_no_file_is_refused_at_once(inside: Inside, make: str | None, words: str) -> None:
    path = inside.folder / "helio.yaml"
    if make == "folder":
        path.mkdir()
    elif make == "pipe":
        os.mkfifo(path)
    elif make == "loop":
        path.symlink_to(path)
    elif make == "big":
        path.write_bytes(b"cluster: c\n#" + b"x" * 2_000_000)
    code, out, err = inside("check", "-f", "helio.yaml")
    assert (code, out) == (2, "")
    assert words in err
    assert "bug of heliostat" not in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["upp"], "did you mean up?"),
        (["up", "--workers", "3"], "--help"),
        (["up", "--set", "workers"], "set"),
        (["up", "--set", "wrokers=3"], "mean workers?"),
        (["down", "a", "b", "c"], ""),
        (["status", "-f", ""], ""),
        (["kill"], ""),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_a_wrong_command_line(inside: Inside, words: list[str], told: str) -> None:
    code, _, err = inside(*words)
    assert code == 2
    assert told.lower() in err.lower()
    assert "Traceback" not in err
    assert "bug of heliostat" not in err
