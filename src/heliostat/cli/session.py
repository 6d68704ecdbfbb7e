"""From flags to a wired site and a running flow, with Ctrl-C handled once for all commands."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from heliostat import wiring
from heliostat.cli.ask import SIGNALS, Asker
from heliostat.cli.options import Options
from heliostat.cli.render import Renderer, renderer
from heliostat.cli.render.screen import nothing
from heliostat.core.errors import EXIT_CODES, Interrupted
from heliostat.engine.ports import Glances
from heliostat.engine.project import load, unwritten

if TYPE_CHECKING:
    import asyncio

    from heliostat.core.spec import Decoded
    from heliostat.engine.ports import Site

T = TypeVar("T")
INTERRUPTED = EXIT_CODES[-1][0]
UNREAD = 128 + 13  # as a program that SIGPIPE ended


class Session:
    """One command at work: the file it is about, who shows what happens, and how it is stopped."""

    def __init__(self, options: Options, *, makes: bool = True) -> None:
        self.options = options
        self.makes = makes  # or starts: what the file asks for must be available then
        self.renderer: Renderer = renderer(json=options.json, quiet=options.quiet, plain=options.plain)
        self.ask = Asker(self.renderer, yes=options.yes)
        self._decoded: Decoded | None = None
        self._hands_off = False
        self.then = ""  # what to do after an interruption

    @property
    def terminal(self) -> bool:
        """Whether somebody can be asked."""
        return sys.stdin is not None and sys.stdin.isatty()

    def nothing_there(self) -> tuple[str, str] | None:
        """The cluster and its place, if nothing of it exists and the place can say so without any waiting."""
        named = unwritten(self.options.file, sets=self.options.sets)
        cluster, where = named or (self.decoded.spec.cluster, self.decoded.spec.where)
        place = wiring.ground(where)
        if not isinstance(place, Glances) or place.glance(cluster):
            return None
        return cluster, where

    @property
    def decoded(self) -> Decoded:
        """The file, read once; its notes are told then."""
        if self._decoded is None:
            self._decoded = load(self.options.file, sets=self.options.sets, makes=self.makes)
            for note in self._decoded.notes:
                self.renderer.screen.line(note)
        return self._decoded

    def play(
        self, flow: Callable[[Site], Awaitable[T]], decoded: Decoded | None = None, *, to_reader: bool = False
    ) -> T:
        """Run a flow on the cluster of the file, to its result.

        With `to_reader` its output is all that is wanted: it ends when nobody reads that any more.
        """
        chosen = decoded or self.decoded

        async def whole() -> T:
            return await flow(await wiring.site(chosen, emit=self.renderer, ask=self.ask))

        return self.wait_for(whole, to_reader=to_reader)

    def wait_for(self, flow: Callable[[], Awaitable[T]], *, to_reader: bool = False) -> T:
        """Run something asynchronous; the first Ctrl-C cancels it, and it can tidy up; the second forces."""
        import asyncio

        async def whole() -> T:
            task = asyncio.current_task()
            if to_reader and task is not None:
                loop = asyncio.get_running_loop()
                self.renderer.screen.unread = lambda: loop.call_soon_threadsafe(task.cancel)
            with self._signals(task):
                return await flow()

        try:
            return asyncio.run(whole())
        except asyncio.CancelledError:
            if to_reader and "out" in self.renderer.screen.closed:
                raise click.exceptions.Exit(UNREAD) from None
            raise Interrupted(": ".join(filter(None, ("interrupted", self.then)))) from None
        finally:
            self.renderer.screen.unread = nothing  # its loop is gone
            self.renderer.close()

    @contextmanager
    def _signals(self, task: asyncio.Task[Any] | None) -> Iterator[None]:
        """SIGTERM and a closed terminal are as polite as Ctrl-C."""
        import asyncio

        loop = asyncio.get_running_loop()
        told = [name for name in SIGNALS if hasattr(signal, name) and not _unheard(name)]
        asked = 0

        def stop(name: str) -> None:
            nonlocal asked
            if self._hands_off and name == "SIGINT":
                return
            if asked and name == "SIGHUP":  # a shell passes on what the system has sent already
                return
            asked += 1
            if asked > 1:
                self.renderer.screen.line(
                    "left at once; `helio status` shows what is there, `helio clean` tidies up"
                )
                os._exit(INTERRUPTED)
            if task is not None:
                task.cancel()

        try:
            for name in told:
                loop.add_signal_handler(getattr(signal, name), stop, name)
        except NotImplementedError:  # Windows: asyncio.run itself turns the first Ctrl-C into a cancellation
            told = []
        try:
            yield
        finally:
            for name in told:
                loop.remove_signal_handler(getattr(signal, name))

    @contextmanager
    def hands_off(self) -> Iterator[None]:
        """While a child has the terminal: Ctrl-C reaches it by itself, and is not for us."""
        self._hands_off = True
        try:
            yield
        finally:
            self._hands_off = False

    def show(self, lines: Iterable[str], data: Mapping[str, Any], code: int = 0) -> int:
        """The result, and the exit code that goes with it."""
        self.renderer.result(list(lines), {"code": code, **data})
        return code


def _unheard(name: str) -> bool:
    """Whether somebody said, by `nohup`, that a closed terminal is nothing to us."""
    return name == "SIGHUP" and signal.getsignal(getattr(signal, name)) is signal.SIG_IGN
