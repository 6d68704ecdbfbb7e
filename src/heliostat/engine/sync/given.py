"""The file's `files` as they are here: where each lies, and a quick sign of what is in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from heliostat.core.spec import Spec


@dataclass(frozen=True, slots=True)
class Given:
    """One line of `files`."""

    source: str  # absolute, here
    there: str  # as the file writes it
    here: str


def given(spec: Spec) -> Iterator[Given]:
    """Each line of `files`, with its source's whole path."""
    for there, here in sorted(spec.files.items()):
        yield Given(os.path.normpath(os.path.join(spec.folder, os.path.expanduser(here))), there, here)


def stem(path: str) -> str:
    """What to call a copy in names: the last part of its path, in plain letters.

    >>> stem("/data/my config.d")
    'my-config-d'
    """
    return re.sub("[^A-Za-z0-9]+", "-", os.path.basename(path)).strip("-")


def signature(source: str) -> list[tuple[str, int, int]]:
    """What is in a file or folder, by names, sizes and times: enough to notice a change, and quick."""
    found = []
    for folder, folders, names in os.walk(source):
        folders.sort()
        found += [seen(os.path.join(folder, name)) for name in sorted(names)]
    return found or [seen(source)]


def seen(path: str) -> tuple[str, int, int]:
    try:
        about = os.lstat(path)
    except OSError:
        return path, -1, 0
    return path, about.st_size, about.st_mtime_ns
