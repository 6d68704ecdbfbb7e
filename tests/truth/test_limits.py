"""Requests that cannot be met, jobs that wait, and many jobs at once."""

from __future__ import annotations

import time

import pytest

from tests.truth.patient import Patient, kept

pytestmark = [pytest.mark.ray, pytest.mark.slow]

PROMISED = 3.0  # seconds


def test_what_no_node_can_ever_have_is_refused_at_once(patient: Patient) -> None:
    began = time.monotonic()
    said = patient.mine.run("run", "--num-cpus", "9999", "--", "true", code=7)
    took = time.monotonic() - began
    kept("the refusal", took, PROMISED)
    assert said == ""  # it is told on stderr, and nothing was submitted


def test_a_waiting_job_is_stopped_soon(patient: Patient) -> None:
    """The first takes the only CPUs of the head, so that the second waits; it is stopped all the same."""
    holder = patient.submit("--num-cpus", "2", "--", "sleep", "600")
    patient.until(lambda: patient.job(holder)["state"] == "running", "the first to run", 30)
    waiting = patient.submit("--num-cpus", "2", "--", "true")
    patient.until(lambda: patient.job(waiting)["state"] == "pending", "the second to wait", 30)
    began = time.monotonic()
    patient.mine.run("stop", waiting)
    took = time.monotonic() - began
    assert patient.job(waiting)["state"] == "stopped"
    kept("a waiting job's stop", took, PROMISED)
    patient.mine.run("stop", holder)
