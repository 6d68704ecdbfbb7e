"""Ray's own lines are dropped wherever they come, the job's bytes never."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from heliostat.ray.sieve import Sieve

HEADER = b"2026-11-19 06:14:45,147\tINFO job_manager.py:581 -- Runtime env is setting up.\n"
LINE = b"Running entrypoint for job a1: echo hi\n"


def sifted(*pieces: bytes) -> bytes:
    sieve = Sieve("a1", "echo hi")
    return b"".join([sieve.feed(piece) for piece in pieces]) + sieve.rest()


@given(
    header=st.booleans(),
    output=st.binary(max_size=200) | st.text("Rabun\n 2:", max_size=80).map(str.encode),
    where=st.integers(0, 200),
    cuts=st.lists(st.integers(0, 400), max_size=8),
)
def test_any_cut_and_any_place_gives_the_jobs_bytes(
    header: bool, output: bytes, where: int, cuts: list[int]
) -> None:
    where = min(where, len(output))
    log = (HEADER if header else b"") + output[:where] + LINE + output[where:]
    ends = [0, *sorted(min(cut, len(log)) for cut in cuts), len(log)]
    pieces = [log[a:b] for a, b in pairwise(ends)]
    assert sifted(*pieces) == output


def test_a_job_that_prints_rays_line_again_keeps_its_own() -> None:
    assert sifted(LINE + b"x\n" + LINE) == b"x\n" + LINE


def test_a_log_without_rays_lines_is_kept_whole() -> None:
    assert sifted(b"2026-11-19 06:14:45,1") == b"2026-11-19 06:14:45,1"
    assert sifted(b"Running entry") == b"Running entry"


def test_nothing_is_held_back_once_the_line_was_seen() -> None:
    sieve = Sieve("a1", "echo hi")
    assert sieve.feed(HEADER + LINE) == b""
    assert sieve.settled
    assert sieve.feed(b"Running") == b"Running"
