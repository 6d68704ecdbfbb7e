"""Where things are in a cluster's home on a node. Small, because `status` loads it."""

from __future__ import annotations


def node_dir(home: str, name: str) -> str:
    """The folder of one node: configuration, state, log of its boots."""
    return f"{home}/nodes/{name}"


def token_path(home: str) -> str:
    return f"{home}/token"
