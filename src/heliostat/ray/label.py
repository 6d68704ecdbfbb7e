"""What is written on every process and directory of ours: whose it is and what it is for. Never a secret."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from heliostat.core.owner import Owner
from heliostat.core.resource import Digests, Ref, Resource, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    kind: str
    key: str
    principal: str
    cluster: str
    run: str = ""
    live: str = ""
    restart: str = ""
    replace: str = ""
    needs: tuple[str, ...] = ()
    created: float = 0.0
    facts: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def owner(self) -> Owner:
        return Owner(self.principal, self.cluster)

    @property
    def digests(self) -> Digests:
        return Digests(live=self.live, restart=self.restart, replace=self.replace)

    def ref(
        self,
        *,
        id: str,  # noqa: A002  (as a Ref calls it)
        removal: str,
        state: State = State.READY,
        facts: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Ref:
        """The thing that carries it, as the engine sees it."""
        return Ref(
            kind=self.kind,
            key=self.key if key is None else key,
            id=id,
            owner=self.owner,
            state=state,
            needs=self.needs,
            digests=self.digests,
            run=self.run,
            created=self.created,
            removal=removal,
            facts=self.facts if facts is None else facts,
        )

    def text(self) -> str:
        """One line, the same for the same label, so that processes can be matched by its bytes."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)


def label_of(owner: Owner, resource: Resource, facts: Mapping[str, str]) -> Label:
    """The label of a thing that is made now."""
    return Label(
        kind=resource.kind,
        key=resource.key,
        principal=owner.principal,
        cluster=owner.cluster or "",
        run=resource.run,
        live=resource.digests.live,
        restart=resource.digests.restart,
        replace=resource.digests.replace,
        needs=resource.needs,
        created=time.time(),
        facts=facts,
    )


def read_label(text: bytes | str | None) -> Label | None:
    """The label in these bytes; None when it is not one of ours.

    >>> label = Label(kind="node", key="head", principal="uid:1@a", cluster="demo", needs=("directory/home",))
    >>> read_label(label.text()) == label
    True
    >>> read_label(b'{"kind": 3}') is None
    True
    """
    if text is None:
        return None
    try:
        data = json.loads(text)
        made = Label(**{**data, "needs": tuple(data.get("needs", ()))})
    except (ValueError, TypeError, AttributeError):
        return None
    words = (made.kind, made.key, made.principal, made.cluster)
    return made if all(isinstance(word, str) for word in words) else None
