"""Ignore files mean what git means by them: git itself is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from heliostat.core.credentials import by_content, by_name
from heliostat.engine.sync.scan import scan

PATTERNS = [
    "*.log", "/top", "build/", "a/*/c", "**/deep", "deep/**", "a/**/z", "!keep.log",
    "\\#hash", "\\!bang", "[ab].txt",
    "[!ab].md", "?.c", "trail ", "esc\\ ", "x*y", "**/q/*.t", "foo/bar/", "[[:digit:]].n", "*.[oa]", "/**/w",
]  # fmt: skip
FILES = [
    "a.log", "keep.log", "sub/keep.log", "sub/x.log", "top", "sub/top", "build/x", "sub/build/y",
    "sub/b/build",
    "a/b/c", "a/b/b/c", "a/z", "a/b/z", "deep/1", "s/deep/2",
    "#hash", "!bang", "a.txt", "c.txt", "a.md", "c.md",
    "q.c", "qq.c", "trail", "esc ", "xy", "x1y", "q/1.t", "s/q/2.t", "s/q/u/3.t",
    "foo/bar/1", "s/foo/bar/2",
    "5.n",
    "v.n", "lib.o", "lib.so", "w", "s/w/1",
]  # fmt: skip


def planted(folder: Path) -> Path:
    for name in FILES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return folder


def git_says(folder: Path) -> set[str]:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", "init", "-q", str(folder)], check=True, env=env)
    listing = ["git", "-C", str(folder), "ls-files", "-z", "--others", "--exclude-standard"]
    out = subprocess.run(listing, check=True, capture_output=True, env=env).stdout
    return {os.fsdecode(name) for name in out.split(b"\0") if name}


def ours(folder: Path) -> set[str]:
    return {os.fsdecode(path) for path, value in scan(folder).tree.items() if not value.startswith(b"d")}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed here")
@pytest.mark.parametrize("chosen", [*([one] for one in PATTERNS), PATTERNS, PATTERNS[::-1]])
def test_git_agrees(tmp_path: Path, chosen: list[str]) -> None:
    folder = planted(tmp_path / "tree")
    (folder / ".gitignore").write_text("\n".join(chosen) + "\n")
    (folder / "sub" / ".gitignore").write_text("!x.log\ntop\n")
    assert ours(folder) == git_says(folder)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed here")
def test_files_above_the_folder_hold_too(tmp_path: Path) -> None:
    folder = planted(tmp_path / "tree")
    (folder / ".gitignore").write_text("/s/q/1.t\n*.t\n!2.t\n/s/w/\n")
    whole = git_says(folder)
    assert ours(folder / "s") == {name.removeprefix("s/") for name in whole if name.startswith("s/")}


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".env.local",
        "prod.env",
        "id_ed25519",
        "cert.p12",
        "credentials.json",
        "my-credentials.json",
        "kubeconfig",
        ".netrc",
        "service-account-7.json",
        "gha-creds-1.json",
        "client_secret_1.json",
        ".git-credentials",
        "secrets.toml",
    ],
)
def test_names_of_credentials(name: str) -> None:
    assert by_name(name.encode(), False)


@pytest.mark.parametrize(
    "name", ["env", ".env.example", "id_rsa.pub", "train.py", "credential_test.py", "environment"]
)
def test_names_that_only_look_alike(name: str) -> None:
    assert not by_name(name.encode(), False)


def test_contents_of_credentials() -> None:
    account = b'{"type": "service_account", "private_key": "x"}'
    assert by_content(b"any.json", account)
    assert not by_content(b"any.json", b'{"type": "service"}')
    assert by_content(b"config.json", b'{"auths": {"r": {"auth": "x"}}}')
    assert by_content(b".npmrc", b"//r/:_authToken=x\n")
    assert not by_content(b"notes.txt", b"a text about -----BEGIN PRIVATE KEY-----")
