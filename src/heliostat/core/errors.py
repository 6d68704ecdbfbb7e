"""Every error that heliostat raises on purpose, drawn as a tree.

HelioError                    1  a bug of ours, when nothing below fits
├── UsageError                2  the command line asks for something that cannot be
├── FileError                 2  the file is wrong; carries every problem at once
├── MissingPart               2  a program or package that the file needs is not installed
├── LeftBehind                3  something that should be gone is still there
├── NoCapacity                4  the place has less than what was asked for
├── Quota                     4  a limit of the account or machine is reached
├── Conflict                  4  something else holds the port, name or path that is needed
│   └── Busy                  4  another helio is changing this cluster
├── Unavailable               5  cannot reach it
│   ├── Throttled             5  asked too often; try again later
│   └── TimedOut              5  it did not happen before the deadline
├── Denied                    6  the rights for this are missing
├── Infeasible                7  the cluster, at its largest, can never satisfy this request
├── JobLost                   1  the job's driver died with its node: its result is unknown
└── Interrupted             130  the user asked to stop

Each says what happened, why, and what to do next, and whether trying again can help.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class HelioError(Exception):
    """What happened, why, and what to do next."""

    code = 1
    retry = False

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        parts = [self.what]
        if self.why:
            parts.append(f"Why: {self.why}")
        if self.fix:
            parts.append(f"Next: {self.fix}")
        return "\n".join(parts)


class UsageError(HelioError):
    code = 2


class MissingPart(HelioError):
    code = 2


class LeftBehind(HelioError):
    code = 3


class NoCapacity(HelioError):
    code = 4


class Quota(HelioError):
    code = 4


class Conflict(HelioError):
    code = 4


class Busy(Conflict):
    pass


class Unavailable(HelioError):
    code = 5
    retry = True


class Throttled(Unavailable):
    pass


class TimedOut(Unavailable):
    pass


class Denied(HelioError):
    code = 6


class Infeasible(HelioError):
    code = 7


class JobLost(HelioError):
    code = 1


class Interrupted(HelioError):
    code = 130


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file, where it stands and the nearest valid name."""

    text: str
    file: str = ""
    line: int = 0
    column: int = 0
    nearest: str = ""

    def __str__(self) -> str:
        place = (
            f"{self.file}:{self.line}:{self.column}: " if self.line else f"{self.file}: " if self.file else ""
        )
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"{place}{self.text}{hint}"


class FileError(HelioError):
    """The file is wrong: every problem at once."""

    code = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


EXIT_CODES: tuple[tuple[int, str], ...] = (
    (0, "done"),
    (1, "anything else: a bug of ours, or a job whose result was lost"),
    (2, "the file or the command line is wrong, or a needed part is not installed"),
    (3, "something is left behind"),
    (4, "capacity, quota, or something else holds what is needed"),
    (5, "cannot reach it, or it did not happen in time"),
    (6, "refused: the rights are missing"),
    (7, "infeasible: the cluster can never satisfy the request"),
    (130, "interrupted"),
)
