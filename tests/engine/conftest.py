"""Tests here are coroutines that run in virtual time: an hour passes in no time."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from heliostat.testing.fake import run
from tests.engine.ground import Disks


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def test_…` on a virtual loop."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def disks(tmp_path: Path) -> Disks:
    """Nodes with real folders, each reached by a shell of its own."""
    return Disks(tmp_path / "disks")
