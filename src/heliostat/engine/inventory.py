"""Hosts that stand in a file of their own: an entry of `ssh.hosts` with a `/` in it is a path."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from heliostat.core.errors import FileError, Problem
from heliostat.core.hosts import expand, is_file
from heliostat.core.spec import Origin, Spec

MOST = 100_000  # lines


def as_sets(spec: Spec) -> str | None:
    """The hosts of the file's inventories as a `--set` that takes their place; nothing if there are none."""
    hosts = hosts_of(spec)
    return None if hosts is None else f"ssh.hosts={json.dumps(hosts)}"


def named_in(origins: Iterable[Origin], named: Sequence[str]) -> Iterator[Origin]:
    """Hosts come from where the person wrote them."""
    for origin in origins:
        hosts = origin.path == "ssh.hosts"
        yield replace(origin, source="file", place=", ".join(named)) if hosts else origin


def hosts_of(spec: Spec) -> tuple[str, ...] | None:
    """All hosts and patterns, each once, those of files in their place; nothing when there is no such file.

    Every mistake in them is told at once.
    """
    if spec.where != "ssh" or not any(map(is_file, spec.ssh.hosts)):
        return None
    problems: list[Problem] = []
    hosts = [host for entry in spec.ssh.hosts for host in _entry(entry, spec, problems)]
    if problems:
        raise FileError(problems)
    return tuple(dict.fromkeys(hosts))


def _entry(entry: str, spec: Spec, problems: list[Problem]) -> Iterator[str]:
    if not is_file(entry):
        yield entry
        return
    path = Path(spec.folder or ".", os.path.expanduser(entry))
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[:MOST]
    except (OSError, UnicodeDecodeError) as error:
        problems.append(Problem(f"`ssh.hosts`: {entry} cannot be read: {error}", spec.source))
        return
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        if len(text.split()) > 1 or text.startswith("["):
            wanted = "a line names one host or pattern, such as node[01-16].lab"
            problems.append(Problem(f"{wanted}, not `{text}`", entry, number, 1))
            continue
        try:
            expand(text)
        except ValueError as error:
            problems.append(Problem(str(error), entry, number, 1))
        else:
            yield text
