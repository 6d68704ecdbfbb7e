"""What jobs and commands print, to whoever called; decoded piece by piece."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterator

from heliostat.core.event import Event, Level, Note, Output
from heliostat.core.prefix import Prefixed


class Teller:
    """Events of one call: output to `output` or to sys.stdout and sys.stderr, warnings to sys.stderr."""

    def __init__(
        self, output: Callable[[str], None] | None, on_event: Callable[[Event], None] | None
    ) -> None:
        self._output = output
        self._on_event = on_event
        self._lines = Prefixed()
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {stream: decoder(errors="replace") for stream in ("stdout", "stderr")}

    def __call__(self, event: Event) -> None:
        if self._on_event is not None:
            self._on_event(event)
        if isinstance(event, Output):
            self._write(event.stream, self._decoders[event.stream].decode(self._lines.of(event)))
        elif isinstance(event, Note) and event.level is Level.WARN:
            sys.stderr.write(f"heliostat: {event.text}\n")

    def close(self) -> None:
        """What was held back: lines and characters that never ended."""
        for stream, text in self._rest():
            self._write(stream, text)

    def _rest(self) -> Iterator[tuple[str, str]]:
        for stream, data in self._lines.rest():
            yield stream, self._decoders[stream].decode(data)
        for stream, decoder in self._decoders.items():
            yield stream, decoder.decode(b"", final=True)

    def _write(self, stream: str, text: str) -> None:
        if not text:
            return
        if self._output is not None:
            self._output(text)
            return
        # Looked up now: a notebook's cell, a test or redirect_stdout may have put another one there.
        there = sys.stderr if stream == "stderr" else sys.stdout
        there.write(text)
        there.flush()
