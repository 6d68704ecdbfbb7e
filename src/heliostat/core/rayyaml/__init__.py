"""Ray's own cluster YAML, the `ray up` format, as the heliostat file that it means.

Read into a draft of our own file, which the ordinary decoder then reads: every rule and message is the same,
and places in messages are those of Ray's file.
"""

from __future__ import annotations

from heliostat.core.decode.log import Log
from heliostat.core.decode.tree import Table
from heliostat.core.draft import Draft

__all__ = ["is_ray", "translate"]

_SURE = ("available_node_types", "head_node_type", "head_start_ray_commands", "worker_start_ray_commands")
_OURS = ("cluster", "where")


def is_ray(tree: Table) -> bool:
    """Whether this is a file for `ray up` rather than one of ours with a mistake in it."""
    keys = {key.text for key, _ in tree}
    if keys & set(_OURS):
        return False
    provider = tree.get("provider")
    return (isinstance(provider, Table) and provider.get("type") is not None) or bool(keys & set(_SURE))


def translate(tree: Table, log: Log) -> Draft:
    """Read all of it; mistakes go to the log, what ours cannot say becomes remarks."""
    from heliostat.core.rayyaml.whole import Whole

    return Whole(tree, log).read()
