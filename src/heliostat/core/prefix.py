"""The output of several nodes at once: whole lines, each with its node's name before it."""

from __future__ import annotations

from collections.abc import Iterator

from heliostat.core.event import Output


class Prefixed:
    """What to write for each piece of output; without a source it is untouched.

    >>> lines = Prefixed()
    >>> lines.of(Output(data=b"a\\nb", source="cpu-1")), lines.of(Output(data=b"c\\n", source="cpu-1"))
    (b'cpu-1: a\\n', b'cpu-1: bc\\n')
    """

    def __init__(self) -> None:
        self._parts: dict[tuple[str, str], bytes] = {}

    def of(self, event: Output) -> bytes:
        """The lines that this piece completes; the rest waits for its end."""
        if not event.source:
            return event.data
        key = (event.source, event.stream)
        *lines, rest = (self._parts.get(key, b"") + event.data).split(b"\n")
        self._parts[key] = rest
        mark = _mark(event.source)
        return b"".join(mark + line + b"\n" for line in lines)

    def rest(self) -> Iterator[tuple[str, bytes]]:
        """What came without a line break at its end, with its stream; then all is told."""
        parts, self._parts = self._parts, {}
        for (source, stream), part in parts.items():
            if part:
                yield stream, _mark(source) + part + b"\n"


def _mark(source: str) -> bytes:
    return f"{source}: ".encode()
