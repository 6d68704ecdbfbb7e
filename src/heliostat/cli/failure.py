"""From any exception to what happened, why, what to do next, and an exit code."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Sequence

import click

from heliostat import __version__
from heliostat.cli.render.data import error as as_data
from heliostat.cli.render.screen import Screen, clean
from heliostat.core.errors import FileError, HelioError, Interrupted, UsageError


def failed(error: BaseException, *, as_json: bool, words: Sequence[str]) -> int:
    """Tell it, once, and return the exit code."""
    told = translate(error, words)
    screen = Screen()
    if isinstance(told, Interrupted):
        screen.line(told.what)
    elif isinstance(error, click.exceptions.NoArgsIsHelpError):
        screen.line(error.format_message())  # the help itself, and no complaint
    elif isinstance(told, FileError) and len(told.problems) > 1:
        # Each on a line that begins with its place, as editors expect it.
        screen.line(f"helio: {len(told.problems)} mistakes\n{told}")
    else:
        screen.line(f"helio: {told}")
    if as_json:
        line = {"event": "error", "code": told.code, **as_data(told)}
        screen.result(json.dumps(line))
    return told.code


def translate(error: BaseException, words: Sequence[str]) -> HelioError:
    """The one translation of what may come out of a command."""
    if isinstance(error, HelioError):
        return error
    if isinstance(error, click.UsageError):
        return _usage(error)
    if isinstance(error, click.ClickException):
        return UsageError(error.format_message())
    # asyncio's own cancellation, without importing asyncio for it
    if isinstance(error, KeyboardInterrupt | click.Abort) or type(error).__name__ == "CancelledError":
        return Interrupted("interrupted")
    return _bug(error, words)


def _usage(error: click.UsageError) -> UsageError:
    told = error.format_message().rstrip(".")
    verb = error.ctx.command_path if error.ctx is not None else "helio"
    return UsageError(told[:1].lower() + told[1:], fix=f"{verb} --help")


def _bug(error: BaseException, words: Sequence[str]) -> HelioError:
    """Something that we did not think of: keep the traceback for the report, show one line."""
    summary = f"{type(error).__name__}: {error}".strip()
    told = HelioError(
        f"this is a bug of heliostat: {clean(summary)[:300]}",
        fix="`helio clean` removes what it may have left behind",
    )
    try:
        from heliostat.engine.home import state_dir

        folder = state_dir() / "bugs"
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"{time.strftime('%y%m%d-%H%M%S')}-{os.getpid()}.txt"
        verb = next((word for word in words if not word.startswith("-")), "")
        text = "".join(traceback.format_exception(error))
        path.write_text(f"heliostat {__version__}, Python {sys.version}\nhelio {verb}\n\n{text}", "utf-8")
        path.chmod(0o600)
        told.why = f"the details are in {path}"
    except (OSError, HelioError):
        told.why = "the details could not be saved:\n" + "".join(traceback.format_exception(error))
    return told
