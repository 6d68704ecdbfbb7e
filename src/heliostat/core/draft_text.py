"""A draft as the text of a heliostat file: its keys in our order, beside each where it came from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import wrap

from heliostat.core.decode.fields import TOP
from heliostat.core.decode.node_fields import GROUP
from heliostat.core.draft import Branch, Draft, Leaf, Value
from heliostat.core.encode import dump
from heliostat.core.remark import Level

_WIDTH = 100
_NUMBERS = ("cpus", "gpus", "count", "workers")
_SECTIONS = (
    (Level.LOST, "Not carried over:"),
    (Level.NEAR, "Carried over, but not exactly:"),
    (Level.OURS, "Done without being told, or decided by heliostat:"),
)


def text(draft: Draft, title: str, advice: tuple[str, ...] = ()) -> str:
    """Write the file: what it was made from, its keys, and what they do not say."""
    return "\n".join(_lines(draft, title, advice)) + "\n"


def _lines(draft: Draft, title: str, advice: tuple[str, ...]) -> Iterator[str]:
    for line in (title, *draft.warnings, *advice):
        yield from _comment(line)
    yield ""
    order = [field.key for field in TOP.fields if field.key in draft.tree]
    yield from _branch({key: draft.tree[key] for key in order}, 0, draft)
    for level, heading in _SECTIONS:
        together: dict[str, list[str]] = {}
        for remark in draft.of(level):
            together.setdefault(remark.text, []).append(f"{remark.key} (line {remark.line})")
        if together:
            yield ""
            yield f"# {heading}"
        for why, keys in together.items():
            yield from _comment(f"{', '.join(keys)}: {why}", "#   ")


def _comment(line: str, lead: str = "# ") -> Iterator[str]:
    pieces = wrap(line, _WIDTH - len(lead), break_long_words=False, break_on_hyphens=False) or [""]
    for number, piece in enumerate(pieces):
        yield f"{lead}{'  ' if number else ''}{piece}".rstrip()


def _branch(branch: Branch, depth: int, draft: Draft) -> Iterator[str]:
    indent = "  " * depth
    for key, part in branch.items():
        if isinstance(part, Leaf):
            yield from _leaf(key, part, indent, draft)
            continue
        yield f"{indent}{dump({key: None}).partition(':')[0]}:"
        yield from _branch(_ordered(part), depth + 1, draft)


def _ordered(branch: Branch) -> Branch:
    """A node's keys in our order; names of groups as they came."""
    order = list(GROUP.by_key)
    return {
        key: branch[key] for key in sorted(branch, key=lambda key: order.index(key) if key in order else 0)
    }


def _leaf(key: str, leaf: Leaf, indent: str, draft: Draft) -> Iterator[str]:
    lines = dump({key: _numbers(key, draft.shown(leaf.value))}).rstrip("\n").split("\n")
    origin = f"# from {_short(leaf.origin)}, line {leaf.mark.line}" if leaf.origin else "# Ray's own default"
    if len(lines) == 1 and len(indent + lines[0] + origin) < _WIDTH:
        yield f"{indent}{lines[0]}  {origin}"
        return
    yield f"{indent}{origin}"
    for line in lines:
        yield f"{indent}{line}".rstrip()


def _short(origin: str) -> str:
    """The end of a long name says enough beside its line.

    >>> _short('available_node_types."ray.head".resources.CPU')
    'resources.CPU'
    """
    parts = re.findall(r'"[^"]*"|[^."]+', origin)
    return origin if " " in origin else ".".join(parts[-2:])


def _numbers(key: str, value: Value) -> Value:
    """Numbers without quotes, where numbers are wanted."""
    if isinstance(value, dict) and key in ("gpus", "resources"):
        return {name: _numbers("count" if key == "resources" else name, part) for name, part in value.items()}
    if key in _NUMBERS and isinstance(value, str) and re.fullmatch(r"0|[1-9][0-9]*", value):
        return int(value)
    return value
