"""Where kept connections may lie, and when a name is another one."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from heliostat.shells.ssh import lasting


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(lasting, "FOLDER", f"../{tmp_path}/kept")
    monkeypatch.setenv("HELIO_SSH_KEEP", "10")
    return tmp_path / "kept"


def name(words: list[str], *files: str) -> str:
    kept = lasting.place(words, files)
    if kept is None:
        return ""
    kept.release()
    return os.path.basename(kept.path)


def test_it_lies_where_only_we_can_enter(at: Path) -> None:
    assert name(["ssh", "host"])
    assert at.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_enter_is_not_used(at: Path) -> None:
    at.mkdir()
    at.chmod(0o755)
    assert name(["ssh", "host"]) == ""


def test_a_link_is_not_used(at: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    at.symlink_to(tmp_path / "elsewhere")
    assert name(["ssh", "host"]) == ""


@pytest.mark.usefixtures("at")
def test_another_key_or_another_option_is_another_connection(tmp_path: Path) -> None:
    pins = tmp_path / "pins"
    first = name(["ssh", "host"], str(pins))
    pins.write_text("host ssh-ed25519 AAAA\n")
    second = name(["ssh", "host"], str(pins))
    assert len({first, second, name(["ssh", "-l", "you", "host"], str(pins))}) == 3
    assert name(["ssh", "host"], str(pins)) == second


@pytest.mark.usefixtures("at")
def test_one_at_a_time_uses_it() -> None:
    mine = lasting.place(["ssh", "host"], ())
    assert mine is not None
    assert name(["ssh", "host"]) == ""
    mine.release()
    assert name(["ssh", "host"])


@pytest.mark.usefixtures("at")
@pytest.mark.parametrize(("said", "seconds"), [("0", 0), ("30", 30), ("99999", 3600), ("soon", 0)])
def test_how_long_can_be_said(monkeypatch: pytest.MonkeyPatch, said: str, seconds: int) -> None:
    monkeypatch.setenv("HELIO_SSH_KEEP", said)
    assert lasting.seconds() == seconds
    assert bool(name(["ssh", "host"])) == bool(seconds)


def test_what_is_a_day_old_goes(at: Path) -> None:
    old = f"{name(['ssh', 'host'])}.lock"
    os.utime(at / old, (time.time() - 2 * lasting.DAY,) * 2)
    name(["ssh", "other"])
    assert not (at / old).exists()


def test_a_socket_without_a_connection_is_removed(tmp_path: Path) -> None:
    dead = tmp_path / "dead"
    dead.touch()
    assert not lasting.there(str(dead))
    assert not dead.exists()
