"""What a node may say, and what of it is written down here."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heliostat.core.errors import HelioError, Unavailable
from heliostat.engine.sync.receive import Receiver
from heliostat.engine.sync.there.main import main
from heliostat.testing.shell_contract import tree


def receiver(into: Path) -> Receiver:
    return Receiver(into, "head", frozenset(), lambda _: None)


def said(**told: object) -> bytes:
    return (
        json.dumps({"mode": 0o644, "mtime": 1, "size": 1, "offset": 0, "kind": "f", **told}).encode() + b"\n"
    )


def body(data: bytes) -> bytes:
    digest = json.dumps({"digest": hashlib.sha256(data).hexdigest()}).encode()
    return b"%d\n%s0\n%s\n" % (len(data), data, digest)


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "a/../../x", "a//b", ".", "..", "a/.", "x\0y", ".helio-parts/x", "link/x"]
)
def test_no_name_leads_outside(tmp_path: Path, name: str) -> None:
    into, elsewhere = tmp_path / "into", tmp_path / "elsewhere"
    into.mkdir()
    elsewhere.mkdir()
    (into / "link").symlink_to(elsewhere)
    before = tree(tmp_path)
    with pytest.raises(HelioError):
        receiver(into).feed("stdout", said(path=name) + body(b"x"))
    assert tree(tmp_path) == before


def test_links_stay_inside(tmp_path: Path) -> None:
    into = tmp_path / "into"
    into.mkdir()
    got = receiver(into)
    for name, target in (("a", "/etc"), ("b", "../x"), ("c", "d/../.."), ("good", "sub/x")):
        got.feed("stdout", said(path=name, kind="l", target=target))
    assert got.outside == ["a", "b", "c"]
    assert tree(into) == {"good": "-> sub/x"}


@pytest.mark.parametrize(
    "stream",
    [
        b"no json\n",
        b"[]\n",
        b"{}\n",
        b"1\n",
        said(path="x", kind="?"),
        said(path="x") + b"-1\n",
        b"\xff" * 2_000_000,
    ],
)
def test_nonsense_is_refused(tmp_path: Path, stream: bytes) -> None:
    with pytest.raises(Unavailable, match="cannot be read"):
        receiver(tmp_path / "into").feed("stdout", stream)


def test_other_bytes_than_were_named_get_no_name(tmp_path: Path) -> None:
    got = receiver(tmp_path)
    with pytest.raises(Unavailable, match="other bytes"):
        got.feed("stdout", said(path="x") + b'1\nx0\n{"digest": "no"}\n')
    got.close()
    assert tree(tmp_path) == {}


NAMES = st.binary(min_size=1, max_size=12).filter(
    lambda name: not set(name) & {0, 47} and name not in (b".", b"..") and not name.startswith(b".helio-part")
)
LEAVES = st.one_of(
    st.binary(max_size=300),
    st.tuples(st.just("link"), NAMES),
    st.just("large"),
)
TREES = st.recursive(
    st.dictionaries(NAMES, LEAVES, max_size=4),
    lambda inner: st.dictionaries(NAMES, inner | LEAVES, max_size=4),
    max_leaves=8,
)  # fmt: skip


def plant(at: bytes, what: object) -> None:
    if isinstance(what, dict):
        os.makedirs(at)
        for name, inner in what.items():
            plant(at + b"/" + name, inner)
    elif isinstance(what, tuple):
        os.symlink(what[1], at)
    else:
        assert isinstance(what, bytes | str)
        with open(at, "wb") as file:
            file.write(bytes(1_100_000) if isinstance(what, str) else what)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(what=TREES, size=st.integers(100, 70_000))
def test_any_tree_survives_the_way(tmp_path_factory: pytest.TempPathFactory, what: object, size: int) -> None:
    base = tmp_path_factory.mktemp("way")
    plant(os.fsencode(base / "from"), what)
    out = io.BytesIO()
    ask = {"order": "give", "home": str(base / "home"), "roots": [[str(base / "from"), "", ""]]}
    main(io.BytesIO(json.dumps(ask).encode() + b"\n" + zlib.compress(b"{}")), out)
    got, data = receiver(base / "to"), out.getvalue()
    for at in range(0, len(data), size):
        got.feed("stdout", data[at : at + size])
    got.close()
    assert got.end is not None
    assert tree(base / "to") == tree(base / "from")
