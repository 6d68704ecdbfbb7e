"""`--set a.b=value` laid over the file's tree."""

from __future__ import annotations

import re
from collections.abc import Sequence

from heliostat.core.decode.compose import compose_value
from heliostat.core.decode.log import Log, Path, dotted
from heliostat.core.decode.tree import Mark, Scalar, Table, Tree, is_empty
from heliostat.core.errors import FileError, Problem

_PART = re.compile(r'(?:"([^"]+)"|([^."=]+))([.=])')


def lay_over(tree: Table, sets: Sequence[str], log: Log) -> Table:
    """Apply each `a.b=value` in turn; what it names may be new or stand in the file.

    >>> top = Table((), Mark("helio.yaml"))
    >>> lay_over(top, ["workers.count=3"], Log()).get("workers").get("count").text
    '3'
    """
    for text in sets:
        path, written = _split(text)
        mark = Mark(f"--set {dotted(path) or text}")
        if not path:
            log.add(mark, "--set wants KEY=VALUE, such as workers.count=3")
            continue
        try:
            tree = _put(tree, path, compose_value(written, mark), mark)
        except FileError as error:
            log.problems.extend(error.problems)
    return tree


def _split(text: str) -> tuple[Path, str]:
    """The keys before the first `=` outside quotes, and what follows it; no keys when it is malformed."""
    path: list[str] = []
    position = 0
    while found := _PART.match(text, position):
        path.append(found[1] or found[2])
        position = found.end()
        if found[3] == "=":
            return tuple(path), text[position:]
    return (), ""


def _put(tree: Table, path: Path, value: Tree, mark: Mark, above: Path = ()) -> Table:
    name, rest = path[0], path[1:]
    key = next((key for key, _ in tree if key.text == name), None)
    if rest:
        old = tree.get(name)
        if old is None or is_empty(old):
            old = Table((), mark)
        if not isinstance(old, Table):
            where = dotted((*above, name))
            text = f"`{where}` is {old} in the file and has no parts; set it whole: --set {where}=…"
            raise FileError([Problem(text, mark.source)])
        value = _put(old, rest, value, mark, (*above, name))
    entry = (Scalar(name, mark if key is None or not rest else key.mark), value)
    if key is None:
        return Table((*tree, entry), tree.mark)
    return Table(tuple(entry if was.text == name else (was, kept) for was, kept in tree), tree.mark)
