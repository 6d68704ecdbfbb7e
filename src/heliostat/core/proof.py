"""The proof that a cluster is gone: what was removed, how often the place was listed, what is left."""

from __future__ import annotations

from dataclasses import dataclass

from heliostat.core.resource import Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    cluster: str
    where: str
    removed: tuple[Ref, ...] = ()
    left: tuple[Ref, ...] = ()
    kept: tuple[Ref, ...] = ()  # data that was to stay
    listings: int = 0  # how many listings in a row came back empty
    kinds: tuple[str, ...] = ()  # every kind of resource that was looked for

    @property
    def gone(self) -> bool:
        return not self.left and self.listings >= 2
