"""One call of the sync API: a flow in a thread with an event loop of its own, heard by whoever called."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from heliostat.core.errors import Interrupted
from heliostat.core.event import Event
from heliostat.engine.ports import Emit

T = TypeVar("T")
Flow = Callable[[Emit], Coroutine[Any, Any, T]]


def call(flow: Flow[T], tell: Callable[[Event], None]) -> T:
    """Run a flow to its end, also where an event loop is running already; `tell` runs in this thread.

    Ctrl-C, or an error of `tell`, cancels the flow, waits until it has tidied up, and is raised then; a
    second Ctrl-C does not wait.
    """
    work = _Work(flow)
    threading.Thread(target=work.run, name="heliostat", daemon=True).start()
    stopped: BaseException | None = None
    while True:
        try:
            event = work.events.get()
            if event is None:
                break
            if stopped is None or isinstance(stopped, KeyboardInterrupt):
                tell(event)
        except BaseException as error:
            if stopped is not None and isinstance(error, KeyboardInterrupt):
                raise  # twice: at once
            stopped = stopped if stopped is not None else error
            work.cancel()
    if stopped is not None:
        raise stopped
    return work.result()


class _Work(Generic[T]):
    """A flow on its way in another thread."""

    def __init__(self, flow: Flow[T]) -> None:
        self.events: SimpleQueue[Event | None] = SimpleQueue()  # None: it has ended
        self._flow = flow
        self._lock = threading.Lock()
        self._cancelled = False
        self._at: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self._values: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._values.append(asyncio.run(self._main()))
        except BaseException as error:  # noqa: BLE001 - whoever called gets it, whatever it is
            self._error = error
        finally:
            self.events.put(None)

    async def _main(self) -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - asyncio.run makes one
        with self._lock:
            self._at = (asyncio.get_running_loop(), task)
            if self._cancelled:
                task.cancel()
        return await self._flow(self.events.put)

    def cancel(self) -> None:
        """End it soon, from any thread; what has ended already does not mind."""
        with self._lock:
            self._cancelled = True
            if self._at is not None:
                loop, task = self._at
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(task.cancel)

    def result(self) -> T:
        if isinstance(self._error, asyncio.CancelledError):
            raise Interrupted("interrupted") from self._error
        if self._error is not None:
            raise self._error
        return self._values[0]
