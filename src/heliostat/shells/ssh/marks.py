"""Take a command's own output out of a stream: after the first mark, before the last. Pure."""

from __future__ import annotations


class Marked:
    """One stream of a command. Give it bytes as they come; it returns what is the command's."""

    def __init__(self, mark: str) -> None:
        self._mark = mark.encode()
        self._held = b""
        self.unmarked = b""  # what came before the first mark, or instead of it
        self.word: bytes | None = None  # what stood behind the first mark: a process's number
        self.code: int | None = None  # what stood behind the last: an exit code

    def feed(self, data: bytes) -> bytes:
        """
        >>> stream = Marked("M1")
        >>> stream.feed(b"welcome\\nM1 4711\\nou"), stream.feed(b"t"), stream.feed(b"M1=7\\n"), stream.code
        (b'ou', b't', b'', 7)
        """
        data, self._held = self._held + data, b""
        if self.word is None:
            before, found, rest = data.partition(self._mark)
            line, ended, data = rest.partition(b"\n")
            if not (found and ended):
                self._held = self.unmarked = before + found + rest
                return b""
            self.word = line.strip()
        at = data.find(self._mark + b"=")
        if at >= 0:
            line, ended, rest = data[at + len(self._mark) + 1 :].partition(b"\n")
            if not ended:
                self._held = data[at:]
                return data[:at]
            self.code = int(line)
            return data[:at] + rest
        keep = self._overlap(data)
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def _overlap(self, data: bytes) -> int:
        """How much of the end may be the beginning of a mark."""
        mark = self._mark + b"="
        for size in range(min(len(mark) - 1, len(data)), 0, -1):
            if data.endswith(mark[:size]):
                return size
        return 0

    def rest(self) -> bytes:
        """What was held back, now that nothing more comes."""
        held, self._held = self._held, b""
        return held if self.word is not None else b""
