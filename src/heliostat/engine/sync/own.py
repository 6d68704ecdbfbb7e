"""Folders of heliostat itself, which never travel: they hold tokens, and copies of all runs before."""

from __future__ import annotations

import json
import os

from heliostat.engine.home import cache_dir, state_dir

LABEL_FILE = b"owner.json"  # in every folder that a place makes for a cluster
WORDS = ("kind", "key", "principal", "cluster")


def own_dirs() -> frozenset[bytes]:
    """What heliostat keeps on this machine beside clusters."""
    return frozenset(os.fsencode(os.path.realpath(folder)) for folder in (state_dir(), cache_dir()))


def is_labelled(folder: bytes) -> bool:
    """Whether a folder carries a label of ours, and not only a file of that name."""
    try:
        with open(os.path.join(folder, LABEL_FILE), "rb") as file:
            label = json.load(file)
    except (OSError, ValueError):
        return False
    return isinstance(label, dict) and all(isinstance(label.get(word), str) for word in WORDS)
