"""`helio` on this machine, for real: a folder to stand in, and a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


class Machine:
    """`helio` as a person starts it. The home must be a short path: Ray puts sockets below it."""

    def __init__(self, home: Path, **env: str) -> None:
        self.home = home
        self.folder = home / "work"
        self.folder.mkdir()
        own = {f"HELIO_{name.upper()}": str(home / name) for name in ("state", "cache", "data")}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self.env = {**kept, **own, "COLUMNS": "100", **env}

    def __call__(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "heliostat", *words, code=code)

    def python(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Any Python program there."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=150,
        )  # fmt: skip
        assert done.returncode == code, f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self(*words, "--json", code=code).stdout.splitlines()[-1])
