"""What is written on every container, volume and network of ours, as labels. Never a secret. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from heliostat.core.owner import Owner
from heliostat.core.resource import Digests, Ref, Resource, State

PREFIX = "heliostat."
EXTERNAL = "external"  # a fact of a volume that only stands for one that was there before us


def marks(
    owner: Owner, resource: Resource, *, created: float, facts: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The labels of one resource."""
    digests = resource.digests
    plain = {
        "principal": owner.principal,
        "cluster": owner.cluster or "",
        "kind": resource.kind,
        "key": resource.key,
        "run": resource.run,
        "live": digests.live,
        "restart": digests.restart,
        "replace": digests.replace,
        "needs": " ".join(resource.needs),
        "created": f"{created:.3f}",
        "data": "yes" if resource.data else "",
        "facts": json.dumps(dict(facts or {}), sort_keys=True),
    }
    tags = {f"tag.{name}": value for name, value in resource.body.get("tags", {}).items()}
    return {PREFIX + name: value for name, value in {**plain, **tags}.items()}


def read(
    labels: Mapping[str, str],
    *,
    id: str,  # noqa: A002  (as a Ref calls it)
    state: State = State.READY,
    removal: str,
    facts: Mapping[str, str] | None = None,
) -> Ref | None:
    """The resource that carries these labels; None when they are not ours."""
    own = {name.removeprefix(PREFIX): value for name, value in labels.items() if name.startswith(PREFIX)}
    try:
        kept = json.loads(own["facts"])
        return Ref(
            kind=own["kind"],
            key=own["key"],
            id=id,
            owner=Owner(own["principal"], own["cluster"]),
            state=state,
            needs=tuple(own["needs"].split()),
            digests=Digests(live=own["live"], restart=own["restart"], replace=own["replace"]),
            run=own["run"],
            created=float(own["created"]),
            data=own["data"] == "yes",
            removal=removal,
            facts={**kept, **(facts or {})},
        )
    except (KeyError, ValueError, TypeError):
        return None


def filters(owner: Owner) -> list[str]:
    """What makes `docker … ls` list this owner's things alone."""
    words = [f"label={PREFIX}principal={owner.principal}"]
    if owner.cluster is not None:
        words.append(f"label={PREFIX}cluster={owner.cluster}")
    return [part for word in words for part in ("--filter", word)]
