"""What the renderers write, and where."""

from __future__ import annotations

import io
import json
import re

import pytest

from heliostat.cli.render.copies import copied_lines
from heliostat.cli.render.jsonl import JsonLines
from heliostat.cli.render.plain import Plain
from heliostat.cli.render.screen import Screen, clean
from heliostat.core.event import Began, Ended, Event, Level, Note, Output, Progress, Step
from heliostat.core.sync import Copied

EVENTS: tuple[Event, ...] = (
    Began(verb="up", cluster="demo", where="local"),
    Step(subject="head", state="starting"),
    Step(subject="head", state="starting"),
    Step(subject="head", state="alive", done=True),
    Progress(what="work", done=1, total=3),
    Progress(what="work", done=3, total=3),
    Note(text="something \x1b[2J odd", level=Level.WARN),
    Output(data=b"raw \xff\x1b[1m bytes"),
    Ended(verb="up", seconds=2.0, text="3 nodes alive"),
)


class Ends:
    """A stdout and a stderr to look at."""

    def __init__(self) -> None:
        self.out, self.err = io.BytesIO(), io.BytesIO()
        self.screen = Screen(
            io.TextIOWrapper(self.out, "utf-8", write_through=True),
            io.TextIOWrapper(self.err, "utf-8", write_through=True),
        )


def test_plain_tells_each_state_once_and_keeps_a_jobs_bytes_to_stdout() -> None:
    ends = Ends()
    show = Plain(ends.screen, now=lambda: 0.0)
    for event in EVENTS:
        show(event)
    assert ends.out.getvalue() == b"raw \xff\x1b[1m bytes"
    assert ends.err.getvalue().decode().splitlines() == [
        "head starting (0.0 s)",
        "head alive (0.0 s)",
        "work: 3 of 3 files",
        "warning: something \\x1b[2J odd",
        "up: 3 nodes alive (2.0 s)",
    ]


def test_quiet_keeps_warnings_and_output() -> None:
    ends = Ends()
    show = Plain(ends.screen, quiet=True)
    for event in EVENTS:
        show(event)
    assert ends.out.getvalue() == b"raw \xff\x1b[1m bytes"
    assert ends.err.getvalue().decode() == "warning: something \\x1b[2J odd\n"


def test_every_event_is_one_json_object_on_stdout() -> None:
    ends = Ends()
    show = JsonLines(ends.screen)
    for event in EVENTS:
        show(event)
    show.result(["for people"], {"code": 0})
    lines = [json.loads(line) for line in ends.out.getvalue().splitlines()]
    assert [line["event"] for line in lines] == [*(type(e).__name__.lower() for e in EVENTS), "result"]
    assert lines[-1] == {"event": "result", "code": 0}
    assert not re.search(rb"[^\n -~]", ends.out.getvalue()), "JSON lines are plain ASCII"


def test_the_output_of_several_nodes_is_kept_apart_line_by_line() -> None:
    ends = Ends()
    show = Plain(ends.screen)
    show(Output(data=b"one\nhal", source="cpu-1"))
    show(Output(data=b"two\n", source="cpu-2"))
    show(Output(data=b"f\nrest", source="cpu-1"))
    show.close()
    assert ends.out.getvalue() == b"cpu-1: one\ncpu-2: two\ncpu-1: half\ncpu-1: rest\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_text_reaches_a_terminal_of_any_encoding(encoding: str) -> None:
    out = io.BytesIO()
    wrapper = io.TextIOWrapper(out, encoding)
    Screen(wrapper, io.StringIO()).result("naïve ✓")
    assert out.getvalue().startswith(b"na")


def test_a_stream_that_was_closed_ends_nothing() -> None:
    import os

    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        screen = Screen(pipe, io.StringIO())
        screen.result("nobody reads")
        screen.result("nobody reads")
        assert screen.closed == {"out"}


def test_a_terminal_that_was_closed_ends_no_drawing() -> None:
    import os
    import pty

    from heliostat.cli.render.tty import Tty

    near, far = pty.openpty()
    with os.fdopen(far, "w") as err:
        show = Tty(Screen(io.StringIO(), err))
        show(EVENTS[0])
        show(EVENTS[1])
        os.close(near)
        for event in EVENTS:
            show(event)
        show.close()
        assert show.screen.closed == {"err"}


def test_text_that_could_steer_a_terminal_is_made_visible() -> None:
    assert clean("a\x1b]0;title\x07b\r\u202ec\td\n") == "a\\x1b]0;title\\x07b\\x0d\\u202ec\td\n"


@pytest.mark.parametrize(
    ("moved", "files", "text"),
    [
        (1, 1, "1 file, 3 B, brought from head"),
        (1, 4, "1 file, 3 B, brought from head; 4 files, 9 B in all"),
        (0, 4, "nothing brought from head: all contents were there already (4 files, 9 B)"),
        (0, 0, "nothing brought from head: there are no files"),
    ],
)
def test_what_was_copied_is_told_in_plain_words(moved: int, files: int, text: str) -> None:
    copied = Copied(node="head", files=files, size=9, moved_files=moved, moved_bytes=3)
    assert list(copied_lines([copied], "brought from")) == [text]
