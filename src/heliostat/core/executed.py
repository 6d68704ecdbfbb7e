"""How a command ended on one node, and what that means for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from heliostat.core.errors import HelioError


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """A command on one node: its own exit code, or why it could not run there."""

    node: str
    code: int | None = None  # 128 + N when signal N ended it; None: the node could not be reached
    error: HelioError | None = None
    out: bytes = b""  # only where it was kept instead of streamed
    err: bytes = b""

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def exit_code(self) -> int:
        """One number for it, whatever happened."""
        if self.code is not None:
            return self.code
        return self.error.code if self.error else HelioError.code


def exit_code(results: Iterable[Executed]) -> int:
    """0 when it was that everywhere, else the first other one, in the order of the nodes.

    >>> exit_code(Executed(node=f"cpu-{code}", code=code) for code in (0, 3, 1))
    3
    """
    return next((each.exit_code for each in results if not each.ok), 0)


def failures(results: Iterable[Executed]) -> str:
    """Each node where it failed, and how; nothing when it failed nowhere.

    >>> failures(Executed(node=f"cpu-{code}", code=code) for code in (0, 3, 1))
    'exit code 3 on cpu-3, 1 on cpu-1; 0 on 1 other'
    """
    results = tuple(results)
    codes = [f"{each.code} on {each.node}" for each in results if each.code]
    lost = [f"failed on {each.node} ({_reason(each.error)})" for each in results if each.error is not None]
    if not codes and not lost:
        return ""
    good = sum(each.ok for each in results)
    told = [*(["exit code " + ", ".join(codes)] if codes else []), *lost]
    return "; ".join([*told, *([f"0 on {good} other{'s' if good > 1 else ''}"] if good else [])])


def _reason(error: HelioError) -> str:
    return f"{error.what}: {error.why}" if error.why else error.what
