"""The state machine, shortly with every change and at length where time is less dear."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.engine.anywhere import Anywhere, Tally

LEAST = 1_000  # worlds with a crash in them, or it proves little


def play(examples: int, *, steps: int, derandomize: bool) -> Tally:
    Anywhere.tally = Tally()
    how = settings(
        max_examples=examples,
        stateful_step_count=steps,
        derandomize=derandomize,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Anywhere, settings=how)
    return Anywhere.tally


def test_no_orphan_and_no_touch_in_a_few_worlds() -> None:
    tally = play(40, steps=10, derandomize=True)
    assert tally.examples >= 40
    assert sum(tally.crashes.values()) >= 10


@pytest.mark.slow
def test_no_orphan_and_no_touch_in_a_thousand_worlds(capsys: pytest.CaptureFixture[str]) -> None:
    # The same worlds each time, or a gate would open and close by chance; HELIO_WORLDS=new goes further.
    tally = play(1_600, steps=15, derandomize=os.environ.get("HELIO_WORLDS") != "new")
    crashed = ", ".join(f"{count} x {verb}" for verb, count in tally.crashes.most_common())
    with capsys.disabled():
        print(  # noqa: T201  # how much was tried is what this run is for
            f"\n{tally.examples} worlds, in {tally.with_crash} of them crashes: {tally.crashes.total()} of "
            f"{tally.verbs.total()} verbs ({crashed}) at {len(tally.calls)} kinds of call, and "
            f"{tally.interrupts} times Ctrl-C: 0 orphans, 0 foreign touches"
        )
    assert tally.with_crash >= LEAST
    for verb, calls in {"up": {"begin", "find", "create"}, "down": {"begin", "find", "delete"}}.items():
        assert calls <= {call for name, call in tally.calls if name == verb}
