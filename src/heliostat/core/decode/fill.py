"""`${VAR}` and `${VAR:-default}` in values; `$$` stands for one dollar sign."""

from __future__ import annotations

import re
from collections.abc import Mapping

from heliostat.core.decode.log import Log
from heliostat.core.decode.tree import Items, Scalar, Table, Tree

_DOLLAR = re.compile(r"\$\$|\$\{([^}]*)\}?")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


def fill(tree: Tree, env: Mapping[str, str], log: Log) -> Tree:
    """Fill variables into every value of the tree; keys stay as they are."""
    if isinstance(tree, Scalar):
        return _scalar(tree, env, log) if "$" in tree.text else tree
    if isinstance(tree, Items):
        return Items(tuple(fill(item, env, log) for item in tree.items), tree.mark)
    return Table(tuple((key, fill(value, env, log)) for key, value in tree), tree.mark)


def escape(text: str) -> str:
    """Write text so that filling gives it back.

    >>> escape("cost $5 ${X}")
    'cost $5 $${X}'
    """
    return re.sub(r"\$(?=[${])", "$$", text)


def _scalar(scalar: Scalar, env: Mapping[str, str], log: Log) -> Scalar:
    used = False

    def value(found: re.Match[str]) -> str:
        nonlocal used
        if found[0] == "$$":
            return "$"
        used = True
        return _variable(found, scalar, env, log)

    text = _DOLLAR.sub(value, scalar.text)
    return Scalar(text, scalar.mark, scalar.plain, scalar.text if used else "")


def _variable(found: re.Match[str], scalar: Scalar, env: Mapping[str, str], log: Log) -> str:
    parts = _NAME.fullmatch(found[1])
    if parts is None or not found[0].endswith("}") or "${" in (parts[2] or ""):
        log.add(
            scalar.mark,
            f"`{found[0]}` is not understood; write `${{NAME}}` or `${{NAME:-default}}`, "
            f"and `$${{…}}` for what the shell on the nodes shall fill in",
        )
        return ""
    name, default = parts[1], parts[2]
    given = env.get(name)
    if default is not None:
        return given or default
    if given is None:
        log.add(
            scalar.mark,
            f"the variable {name} is not set; set it, write `${{{name}:-default}}`, "
            f"or `$${{{name}}}` for what the shell on the nodes shall fill in",
        )
        return ""
    return given
