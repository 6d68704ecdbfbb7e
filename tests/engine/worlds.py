"""Small helpers that the engine's tests share."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from heliostat.core.errors import HelioError
from heliostat.core.event import Event
from heliostat.core.owner import Owner
from heliostat.core.spec import Count, Group, Node, Spec
from heliostat.testing.fake import Crash, FakeGround, FakePlace


def spec(*, cpu: int = 2, high: int | None = None, at_least: int | None = None, cluster: str = "c") -> Spec:
    """A cluster of a head and some cpu workers."""
    count = Count(low=cpu, high=high or cpu, at_least=at_least)
    return Spec(cluster=cluster, workers=(Group(name="cpu", count=count, node=Node(cpus=2)),) if cpu else ())


class Asked:
    """An Ask that answers as told, and remembers."""

    def __init__(self, answer: bool = True) -> None:
        self.answer = answer
        self.questions: list[str] = []
        self.details: list[str] = []

    def __call__(self, question: str, *, details: Sequence[str] = (), default: bool = False) -> bool:
        self.questions.append(question)
        self.details += details
        return self.answer


class Events(list[Event]):
    """An Emit that remembers."""

    def __call__(self, event: Event) -> None:
        self.append(event)

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self if isinstance(event, kind)]


async def dies(deed: Coroutine[Any, Any, object]) -> bool:
    """Whether the process died on the way; it may also end in an error of ours, which is no death."""
    try:
        await deed
    except HelioError:
        return False
    except Crash:
        return True
    except BaseExceptionGroup as group:
        if group.subgroup(Crash) is None:
            raise
        return True
    return False


async def stand(place: FakePlace, owner: Owner, spec: Spec) -> None:
    """A whole cluster that stands already, without anybody's `up`."""
    for resource in FakeGround(place).want(spec):
        place.make(owner, resource)
    await asyncio.sleep(max(place.faults.start, place.faults.lag) + 1.0)
