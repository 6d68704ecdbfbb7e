"""Ray writes lines of its own into a job's log: they are known by their exact bytes, and dropped."""

from __future__ import annotations

import re

# Written before the driver starts, so it is the first line where it is at all: on the head.
_HEADER = re.compile(
    rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\tINFO job_manager\.py:\d+ -- Runtime env is setting up\.\n"
)
_HEADER_SHAPE = b"0000-00-00 00:00:00,000\tINFO job_manager.py:"
_DIGIT = re.compile(rb"\d")


class Sieve:
    """Feed it the log from its first byte; it gives back what the job itself wrote.

    >>> sieve = Sieve("a1", "echo hi")
    >>> sieve.feed(b"hRunning entrypoint for ") + sieve.feed(b"job a1: echo hi\\ni\\n"), sieve.settled
    (b'hi\\n', True)
    """

    def __init__(self, job_id: str, entrypoint: str) -> None:
        # Its own buffer is flushed after the driver was started: the line can come in the midst of the job's.
        self._line = f"Running entrypoint for job {job_id}: {entrypoint}\n".encode()
        self._held = b""
        self._begun = False
        self.settled = False

    def feed(self, data: bytes) -> bytes:
        """What of it, and of what was held back, is the job's for certain."""
        if self.settled:
            return data
        data = self._held + data
        self._held = b""
        if not self._begun and not (data := self._without_header(data)):
            return b""
        before, line, after = data.partition(self._line)
        if line:
            self.settled = True
            return before + after
        keep = _overlap(data, self._line)
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def _without_header(self, data: bytes) -> bytes:
        shape = _DIGIT.sub(b"0", data[: len(_HEADER_SHAPE)])
        if _HEADER_SHAPE.startswith(shape) and b"\n" not in data:
            self._held = data  # it may become the header yet
            return b""
        self._begun = True
        return _HEADER.sub(b"", data, count=1) if _HEADER.match(data) else data

    def rest(self) -> bytes:
        """What was held back, when nothing more will come."""
        held, self._held = self._held, b""
        return held


def _overlap(data: bytes, line: bytes) -> int:
    """How many bytes at the end of `data` could be the beginning of `line`."""
    for size in range(min(len(data), len(line) - 1), 0, -1):
        if data.endswith(line[:size]):
            return size
    return 0
