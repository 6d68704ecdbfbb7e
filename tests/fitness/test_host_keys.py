"""Host keys are always checked: nothing that is tracked here switches that off."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OFF = re.compile(r"StrictHostKeyChecking[\"']?\s*[=:, ]\s*[\"']?(no|off|false)\b", re.IGNORECASE)


def test_no_host_key_goes_unchecked() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    found = []
    for name in filter(None, listed.decode().split("\0")):
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        found += [f"{name}: {match[0]}" for match in OFF.finditer(text)]
    assert found == []


def test_what_would_switch_it_off_is_seen() -> None:
    for text in ("-o StrictHostKeyChecking=" + "no", '"StrictHostKeyChecking": ' + '"off"'):
        assert OFF.search(text)
