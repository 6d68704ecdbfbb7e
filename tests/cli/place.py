"""A fake place kept in a file, so that separate `helio` processes meet there, and a helper to start them."""

from __future__ import annotations

import fcntl
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from heliostat.core.resource import Ref
from heliostat.engine.clock import RealClock
from heliostat.engine.ports import Shell
from heliostat.shells.local import LocalShell
from heliostat.testing.client import Client
from heliostat.testing.fake import FakeGround
from heliostat.testing.place import FakePlace
from heliostat.testing.ray import FakeConnect

ROOT = Path(__file__).parents[2]
T = TypeVar("T")


class KeptClient(Client):
    """Every call reads the place from its file and writes it back, under a lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(read(path))

    async def call(self, what: str, deed: Callable[[], T]) -> T:
        def whole() -> T:
            with locked(self.path):
                self.place.__dict__.update(read(self.path).__dict__)
                try:
                    return deed()
                finally:
                    write(self.path, self.place)

        return await super().call(what, whole)


class locked:  # noqa: N801 - used like a function
    """One process at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_suffix(".lock")

    def __enter__(self) -> None:
        self._file = self._path.open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read(path: Path) -> FakePlace:
    place: FakePlace = pickle.loads(path.read_bytes())  # noqa: S301 - our own file of a moment ago
    return place


def write(path: Path, place: FakePlace) -> None:
    path.write_bytes(pickle.dumps(place))


def begin(path: Path, **faults: object) -> FakePlace:
    """A new empty place in that file; quick, so that tests are."""
    place = FakePlace()
    place.homes = str(path.parent.parent / "nodes")  # not in the folder that runs send
    place.clock = RealClock()  # type: ignore[assignment]  # the same port
    place.faults.latency = 0.001
    place.faults.start = place.faults.teardown = 0.05
    for name, value in faults.items():
        setattr(place.faults, name, value)
    write(path, place)
    return place


class KeptGround(FakeGround):
    """What HELIO_GROUNDS names in tests: the fake ground on the place in $FAKE_PLACE."""

    def __init__(self) -> None:
        path = Path(os.environ["FAKE_PLACE"])
        client = KeptClient(path)
        super().__init__(client.place, client, shells=self._shell)
        self.connect = FakeConnect(client)

    def _shell(self, ref: Ref) -> Shell:
        home = Path(ref.facts["home"])
        home.mkdir(parents=True, exist_ok=True)
        return LocalShell(home=str(home))


class Helio:
    """`helio` as a person starts it, on a fake place."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "place.pickle"
        begin(self.place)

    def env(self, **more: str) -> dict[str, str]:
        mine = {
            "HELIO_GROUNDS": "local=tests.cli.place:KeptGround",
            "FAKE_PLACE": str(self.place),
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "COLUMNS": "100",
        }
        return {**os.environ, **mine, **more}

    def __call__(
        self, *words: str, env: Mapping[str, str] | None = None, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "heliostat", *words],
            cwd=self.folder,
            env=self.env(**(env or {})),
            input=stdin or "",
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
