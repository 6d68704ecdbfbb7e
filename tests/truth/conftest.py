"""One real cluster, a head and two workers, for all tests that mend what they break."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.ours import Ours
from tests.truth.patient import Patient

FILE = """cluster: {name}
head: {{ cpus: 2, resources: {{ at_head: 100 }} }}
workers: {{ count: 2, cpus: 1, resources: {{ at_worker: 100 }} }}
"""


@pytest.fixture(scope="session")
def standing() -> Iterator[Patient]:
    pytest.importorskip("ray", reason="Ray is not installed here (pip install 'heliostat[local]')")
    mine = Ours(2)
    (mine.work / "helio.yaml").write_text(FILE.format(name=mine.name))
    try:
        mine.run("up", "--yes")
        yield Patient(mine)
    finally:
        mine.close()


@pytest.fixture
def patient(standing: Patient) -> Iterator[Patient]:
    """The cluster, well before and after."""
    standing.heal()
    yield standing
    standing.heal()
