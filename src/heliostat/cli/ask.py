"""Questions to the person at the terminal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from heliostat.cli.render import Renderer
from heliostat.core.errors import Interrupted, UsageError

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Asker:
    """Asks on the terminal; `--yes` answers; where nobody can answer it fails at once instead of waiting."""

    def __init__(self, renderer: Renderer, *, yes: bool) -> None:
        self.renderer = renderer
        self.yes = yes

    def __call__(self, question: str, *, details: Sequence[str] = (), default: bool = False) -> bool:
        if self.yes:
            return True
        if sys.stdin is None or not sys.stdin.isatty():
            raise UsageError(
                f"this needs an answer: {question}",
                why="; ".join(details) or "there is no terminal to ask on",
                fix="add --yes to agree without being asked",
            )
        with self.renderer.paused():
            for detail in details:
                self.renderer.screen.line(f"  {detail}")
            return self._answer(f"{question} [{'Y/n' if default else 'y/N'}] ", default)

    def text(self, question: str, default: str, read: Callable[[str], str]) -> str:
        """A word from the person; where `read` raises UsageError, it is told and asked again."""
        with self.renderer.paused(), self._own_interrupt():
            while True:
                self.renderer.screen.prompt(f"{question} [{default}] ")
                answer = _line()
                if not answer:
                    raise Interrupted("no answer came: the input ended")
                try:
                    return read(answer.strip() or default)
                except UsageError as error:
                    self.renderer.screen.line(f"  {error.what}")

    def _answer(self, prompt: str, default: bool) -> bool:
        with self._own_interrupt():
            while True:
                self.renderer.screen.prompt(prompt)
                answer = _line()
                match answer.strip().lower():
                    case "y" | "yes":
                        return True
                    case "n" | "no":
                        return False
                    case "" if answer:
                        return default
                    case "":
                        raise Interrupted("no answer came: the input ended")

    @contextmanager
    def _own_interrupt(self) -> Iterator[None]:
        """The event loop is blocked here: what interrupts us ends the question, and only the question."""
        try:
            with _interrupting():
                yield
        except KeyboardInterrupt:
            self.renderer.screen.line("")
            raise Interrupted("interrupted at the question") from None


@contextmanager
def _interrupting() -> Iterator[None]:
    """Python's own handler instead of the event loop's, which would see the signal later, as a second one."""
    woken = signal.set_wakeup_fd(-1)
    before = {}
    for name in SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
            before[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)


def _line() -> str:
    """What was typed; nothing from a terminal that was closed."""
    try:
        return sys.stdin.readline()
    except OSError:
        return ""
