"""What must stand in no tracked file: where packages come from here, and where things are on this machine."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        pytest.skip(f"git is needed here, and a checkout: {done.stderr.strip()}")
    return done.stdout


def places_of_packages() -> set[str]:
    """Hosts that pip and apt would ask here: pip's defaults and what is configured here."""
    from pip._internal.models.index import PyPI

    apt = Path("/etc/apt")
    debian = [file.read_text() for kind in ("*.list", "*.sources") for file in apt.rglob(kind)]
    config = subprocess.run(["pip", "config", "list"], capture_output=True, text=True, check=False).stdout
    env = " ".join(
        value for name, value in os.environ.items() if "INDEX" in name or "REGISTRY" in name.upper()
    )
    configured = re.findall(r"https?://(?:[^@/\s]*@)?([^/:\s'\"]+)", " ".join((config, env, *debian)))
    return {PyPI.netloc, PyPI.file_storage_domain, *configured} - {"localhost", "127.0.0.1"}


def test_no_package_registry_is_named() -> None:
    for host in places_of_packages():
        assert not git("grep", "-lF", host), host


def test_no_path_of_this_machine_is_named() -> None:
    paths = {f"{ROOT}/", f"{Path.home()}/"} - {"/", "//", f"{tempfile.gettempdir()}/"}
    for path in paths:
        assert not git("grep", "-nF", path, "--", ".", ":!*.lock"), path


def test_lock_file_has_every_direct_requirement() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(w for extra in project["optional-dependencies"].values() for w in extra),
    ]
    locked = {re.split("==", line)[0] for line in (ROOT / "requirements/dev.lock").read_text().splitlines()}
    names = {re.split(r"[\[<>=~! ;]", want)[0].lower() for want in wanted} - {"heliostat"}
    assert names <= locked, "run `make lock`"
