"""The place as it is seen from a container of the cluster's own: work can be sent, nothing can be changed.

A notebook's container shares the cluster's volume with the nodes and stands in their network. So runs are
laid down by writing files, and Ray is reached by its name.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heliostat.core.errors import Denied, MissingPart, Unavailable, UsageError
from heliostat.core.names import group_of, nodes_of
from heliostat.core.owner import Owner
from heliostat.core.resource import HEAD, NODE, Outcome, Ref, Resource
from heliostat.core.spec import Spec

if TYPE_CHECKING:
    from heliostat.engine.ports import Shell

TOLD = "HELIO_INSIDE"  # names the file that says which cluster this is


def told() -> dict[str, Any]:
    """What whoever made this container wrote down about the cluster."""
    try:
        known = json.loads(Path(os.environ[TOLD]).read_text(encoding="utf-8"))
    except (KeyError, OSError, ValueError) as error:
        raise MissingPart(
            "this is no container of a cluster",
            why=f"{TOLD} names no file that says which: {error}",
            fix="unset HELIO_GROUNDS, to use helio as on any machine",
        ) from error
    return dict(known)


class InsideGround:
    """Implements Ground and Identity for whoever is inside already."""

    def __init__(self) -> None:
        self._told = told()
        self._names: tuple[str, ...] = (HEAD,)

    async def principal(self, spec: Spec) -> str:
        """Whoever made the cluster; a file must be this cluster's own."""
        cluster = self._told["cluster"]
        if spec.source and spec.cluster != cluster:
            raise UsageError(
                f"this is a notebook of {cluster}, and {spec.source} is about {spec.cluster}",
                why="from inside a cluster no other can be reached",
                fix=f"work in a folder whose helio.yaml is {cluster}'s, or in one without any",
            )
        # Without a file nobody here knows the workers; Ray does, and `status` shows what it says.
        self._names = tuple(name for name, _, _ in nodes_of(spec)) if spec.source else (HEAD,)
        return "inside"

    def want(self, spec: Spec) -> tuple[Resource, ...]:
        del spec
        return tuple(Resource(kind=NODE, key=name, text="made from outside") for name in self._names)

    async def find(self, owner: Owner) -> tuple[Ref, ...]:
        """The nodes that the file names: whether they live, Ray says."""
        try:
            address = socket.gethostbyname(HEAD)
        except OSError as error:
            text = "the head is not in the cluster's network"
            fix = "`helio up` on your own machine brings it back"
            raise Unavailable(text, why=str(error), fix=fix) from error
        return tuple(self._ref(name, owner, address) for name in self._names)

    def _ref(self, name: str, owner: Owner, address: str) -> Ref:
        facts = {key: str(self._told[key]) for key in ("home", "python") if self._told.get(key)}
        facts["program"] = _program(facts.get("home", ""))
        facts["group"] = "" if name == HEAD else group_of(name)
        if name == HEAD:
            facts["gcs"] = f"{address}:{self._told['gcs']}"
            facts["dashboard"] = f"{address}:{self._told['dashboard']}"
            facts |= {key: self._told[key] for key in ("storage", "token_path") if self._told.get(key)}
        return Ref(kind=NODE, key=name, id=name, owner=owner, facts=facts)

    def create(self, owner: Owner, wanted: Sequence[Resource]) -> AsyncIterator[Outcome]:
        del owner, wanted
        raise _from_outside()

    def delete(self, refs: Sequence[Ref]) -> AsyncIterator[Outcome]:
        del refs
        raise _from_outside()

    def shell(self, node: Ref) -> AbstractAsyncContextManager[Shell]:
        """This container, which has the disk of the nodes; their processes it cannot reach."""
        from heliostat.shells.local import LocalShell

        if node.key != HEAD:
            raise Denied(
                f"{node.key} cannot be entered from here",
                why="a notebook shares the nodes' disk and network, and nothing else",
                fix="start it as a job: `helio run -- …`, or type it on your own machine",
            )
        return nullcontext(LocalShell(home=node.facts.get("home", "")))


def _program(home: str) -> str:
    """The node program, which came with helio: what is told here does not change with its releases."""
    try:
        return str(next(Path(home, "program").iterdir(), ""))
    except OSError:
        return ""


def _from_outside() -> Denied:
    return Denied(
        "the cluster cannot be changed from inside",
        why="a notebook may send work; the engine that it stands on is out of its reach",
        fix="type this on your own machine",
    )
