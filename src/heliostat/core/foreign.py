"""Files of other programs: which one it is, and the heliostat file that it means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from heliostat.core.decode.compose import compose
from heliostat.core.decode.log import Log
from heliostat.core.decode.tree import Table
from heliostat.core.draft import Draft
from heliostat.core.errors import FileError, Problem, UsageError
from heliostat.core.remark import Level, Remark

RAY = "Ray's cluster YAML"
COMPOSE = "a Compose file"
_BOTH = "Ray's cluster YAML (`ray up`) and Compose files"


@dataclass(frozen=True, slots=True)
class Read:
    """Another program's file as the decoder takes it."""

    tree: Table
    notes: tuple[str, ...]
    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """The text of the heliostat file, and what it could not say."""

    text: str
    kind: str
    warnings: tuple[str, ...]
    remarks: tuple[Remark, ...]


def read(tree: Table, log: Log) -> Read | None:
    """Ray's cluster YAML as a file of ours; None when it is none. A Compose file wants to be converted."""
    from heliostat.core.rayyaml import is_ray, translate

    if is_ray(tree):
        draft = translate(tree, log)
        if log.problems and not (draft.leaf(("cluster",)) and draft.leaf(("where",))):
            raise FileError(_sorted(log))
        return Read(draft.table(tree.mark), tuple(_notes(draft, tree.mark.source)), _told(draft))
    if is_compose(tree):
        source = tree.mark.source
        raise UsageError(
            f"{source} is a Compose file, not a heliostat file",
            fix=f"helio convert {source} writes the heliostat file that it means",
        )
    return None


def convert(text: str, source: str) -> Converted:
    """Write the heliostat file that another program's file means."""
    if manifest := kubernetes_kind(text):
        raise UsageError(
            f"{source} is a Kubernetes manifest ({manifest})",
            why=f"`helio convert` reads {_BOTH}",
            fix="`helio init --where kubernetes` writes a file to start from; its section `kubernetes` takes "
            "the namespace, requests and any other part of a pod",
        )
    tree, log = compose(text, source), Log()
    draft, kind, title = _draft(tree, log, source)
    if log.problems:
        raise FileError(_sorted(log))
    from heliostat.core.draft_text import text as written

    return Converted(written(draft, title, _advice(draft)), kind, tuple(draft.warnings), _told(draft))


def _draft(tree: Table, log: Log, source: str) -> tuple[Draft, str, str]:
    from heliostat.core.rayyaml import is_ray, translate

    name = source.replace("\\", "/").rpartition("/")[2]
    if is_ray(tree):
        return (
            translate(tree, log),
            RAY,
            f"Made by `helio convert` from {name}, a cluster YAML of Ray's (`ray up`).",
        )
    if is_compose(tree):
        from heliostat.core.composefile import translate as from_compose

        return from_compose(tree, log), COMPOSE, f"Made by `helio convert` from {name}, a Compose file."
    ours = tree.get("cluster") is not None or tree.get("where") is not None
    raise UsageError(
        f"{source} is {'a heliostat file already' if ours else 'no file that can be converted'}",
        why=f"`helio convert` reads {_BOTH}",
        fix=f"helio check {source}" if ours else "helio init writes a file to start from",
    )


def is_compose(tree: Table) -> bool:
    return isinstance(tree.get("services"), Table)


def kubernetes_kind(text: str) -> str:
    """What a Kubernetes manifest describes; empty when it is none. Looked for before YAML is read: such
    files often hold several documents.

    >>> kubernetes_kind("apiVersion: ray.io/v1\\nkind: RayCluster\\n")
    'RayCluster'
    """
    if not re.search(r"^apiVersion:", text, re.MULTILINE):
        return ""
    kinds = re.findall(r"^kind:\s*['\"]?(\w+)", text, re.MULTILINE)
    return ", ".join(dict.fromkeys(kinds))


def _notes(draft: Draft, source: str) -> Iterator[str]:
    line = f"{source} is {RAY}; `helio convert {source}` shows the heliostat file that it means"
    for level in (Level.LOST, Level.NEAR):
        keys = list(dict.fromkeys(remark.key for remark in draft.of(level)))
        line += f"; {level}: {', '.join(keys)}" if keys else ""
    yield line
    yield from draft.warnings


def _told(draft: Draft) -> tuple[Remark, ...]:
    return tuple(draft.of(Level.LOST, Level.NEAR, Level.OURS))


def _advice(draft: Draft) -> tuple[str, ...]:
    never = draft.leaf(("lifetime",))
    if never is None or never.value != "never":
        return ()
    return ("It never ends by itself, as with `ray up`; `idle: 30 min` and `lifetime: 8 h` would end it.",)


def _sorted(log: Log) -> list[Problem]:
    return sorted(log.problems, key=lambda problem: (problem.line == 0, problem.line, problem.column))
