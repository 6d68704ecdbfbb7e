"""What became of sending a folder."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A folder as the cluster now has it, and what had to travel for that."""

    files: int = 0
    size: int = 0  # bytes of all files
    moved_files: int = 0
    moved_bytes: int = 0
    left_out: tuple[str, ...] = ()  # credential-looking, relative to the folder
    outside: tuple[str, ...] = ()  # left out: links that lead out of the folder, sockets, devices
    digest: str = ""  # of the whole content: names, bytes, permission bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What became of copying to one node, or from one."""

    node: str
    files: int = 0  # all that are there now
    size: int = 0
    moved_files: int = 0
    moved_bytes: int = 0
    deleted: int = 0
    left_out: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # what was brought here, relative to where it was put
