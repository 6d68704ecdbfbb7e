"""Whose cluster it is: written on everything that heliostat makes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

UNWRITTEN = ("default", "local")  # the cluster, and its place, that the verbs work on without a file


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """A principal and one of its clusters; without a cluster, all of them.

    >>> Owner("uid:1000@laptop", "demo").id
    'demo-068202'
    """

    principal: str
    cluster: str | None = None

    @property
    def id(self) -> str:
        """A short name that fits labels, paths and host names, and differs between principals."""
        if self.cluster is None:
            raise ValueError("an owner of all clusters has no id")
        mark = hashlib.sha256(f"{self.principal}\n{self.cluster}".encode()).hexdigest()[:6]
        slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in self.cluster.lower()).strip("-")
        return f"{slug[:24].rstrip('-') or 'c'}-{mark}"

    def owns(self, other: Owner) -> bool:
        """Whether `other` is this owner, or one of the clusters of this principal."""
        return self.principal == other.principal and self.cluster in (None, other.cluster)
