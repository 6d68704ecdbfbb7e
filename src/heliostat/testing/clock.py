"""Virtual time: an event loop that, whenever it would wait for a timer, moves its clock there instead.

`asyncio.sleep`, `asyncio.timeout` and `VirtualClock.wait` all follow it, so an hour passes in no time. While
real work is under way (a subprocess, a thread) time passes as it really does.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from selectors import SelectorKey
from typing import Any, TypeVar

T = TypeVar("T")
EPOCH = 1_700_000_000.0


class _Selector(selectors.BaseSelector):
    """Asks the real one for what is ready, and never really waits for a timer."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.skip: Callable[[float], None] = lambda _seconds: None
        self.busy: Callable[[], bool] = lambda: False

    def register(self, fileobj: Any, events: int, data: Any = None) -> SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> SelectorKey:
        return self._real.modify(fileobj, events, data)

    def close(self) -> None:
        self._real.close()

    def get_map(self) -> Mapping[Any, SelectorKey]:
        return self._real.get_map()

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        ready = self._real.select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            return self._real.select(None)
        if self.busy():
            began = time.monotonic()
            ready = self._real.select(timeout)
            self.skip(time.monotonic() - began)
            return ready
        self.skip(timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps."""

    def __init__(self) -> None:
        selector = _Selector()
        super().__init__(selector)
        self._elapsed = 0.0
        self._threads = 0
        self._children: set[asyncio.SubprocessTransport] = set()
        selector.skip = self._skip
        selector.busy = self._busy

    def time(self) -> float:
        return self._elapsed

    def _skip(self, seconds: float) -> None:
        self._elapsed += max(0.0, seconds)

    def _busy(self) -> bool:
        self._children = {child for child in self._children if child.get_returncode() is None}
        return bool(self._threads or self._children)

    def run_in_executor(  # type: ignore[override]  # typeshed's overload has no common signature
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = super().run_in_executor(executor, func, *args)
        self._threads += 1
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, _future: asyncio.Future[Any]) -> None:
        self._threads -= 1

    async def subprocess_exec(self, *args: Any, **kwargs: Any) -> Any:
        transport, protocol = await super().subprocess_exec(*args, **kwargs)
        self._children.add(transport)
        return transport, protocol


class VirtualClock:
    """The Clock port on a VirtualLoop."""

    def now(self) -> float:
        return EPOCH + self.monotonic()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` in virtual time.

    >>> run(asyncio.sleep(3600, "an hour later"))
    'an hour later'
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
