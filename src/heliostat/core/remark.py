"""What somebody else's file says, and ours says differently, says itself, or cannot say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How much of a key's meaning is carried over."""

    OURS = "done without being told"  # heliostat does it anyway, or decides it itself
    NEAR = "carried over, but not exactly"
    LOST = "not carried over"


@dataclass(frozen=True, slots=True)
class Remark:
    """One such key."""

    level: Level
    key: str  # as the other file calls it: docker.container_name
    text: str
    place: str  # ray.yaml:3:1
    line: int

    def __str__(self) -> str:
        return f"{self.place}: `{self.key}` is {self.level}: {self.text}"
