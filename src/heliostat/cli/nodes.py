"""Which nodes a command is about: the head, those that are named, or all."""

from __future__ import annotations

from collections.abc import Sequence

import click

from heliostat.core.resource import HEAD


def chosen(ctx: click.Context, names: Sequence[str], *, everywhere: bool) -> tuple[str, ...] | None:
    """Names of nodes; none at all means every node."""
    if everywhere and names:
        raise click.UsageError("--all and the name of a node contradict each other", ctx)
    if everywhere:
        return None
    return tuple(names) or (HEAD,)
