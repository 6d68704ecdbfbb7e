"""A part of the file that is passed on to somebody else as it is: YAML 1.2's plain types."""

from __future__ import annotations

import re
from typing import Any

from heliostat.core.decode.kinds import Kind, Plain, Schema
from heliostat.core.decode.log import Bad, Log, Path, dotted
from heliostat.core.decode.tree import Items, Scalar, Table, Tree, is_empty

_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}
_AMBIGUOUS = re.compile(r"[-+]?0[0-9_]+|[-+]?0[xob][0-9a-fA-F]+|[-+]?[0-9][0-9]*(?::[0-9]+)+")


class Free(Kind[dict[str, Any]]):
    """Any mapping. A number that YAML's versions read differently must be written plainly or in quotes."""

    word = "a mapping"

    def read(self, tree: Tree, path: Path, log: Log) -> dict[str, Any]:
        if is_empty(tree):
            return {}
        if not isinstance(tree, Table):
            raise Bad(tree.mark, f"`{dotted(path)}` wants {self.word}, not {tree}")
        whole: dict[str, Any] = self._plain(tree, path, log)
        return whole

    def _plain(self, tree: Tree, path: Path, log: Log) -> Any:
        if isinstance(tree, Table):
            return {key.text: self._plain(part, (*path, key.text), log) for key, part in tree}
        if isinstance(tree, Items):
            return [self._plain(item, path, log) for item in tree.items]
        return self._scalar(tree, path, log) if tree.plain else tree.text

    def _scalar(self, scalar: Scalar, path: Path, log: Log) -> Any:
        text = scalar.text
        if text.lower() in _CONSTANTS and text in {text.lower(), text.upper(), text.capitalize()}:
            return _CONSTANTS[text.lower()]
        if _AMBIGUOUS.fullmatch(text):
            what = f"`{dotted(path)}` has {scalar}, which YAML's versions read differently"
            log.catch(Bad(scalar.mark, f"{what}; write a plain number, or put it in quotes"), path)
        if re.fullmatch(r"[-+]?[0-9]+", text):
            return int(text)
        if re.fullmatch(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", text):
            return float(text)
        return text

    def write(self, value: dict[str, Any]) -> Plain:
        return value

    def show(self, value: dict[str, Any], tree: Tree) -> str:
        del tree
        return ", ".join(value)

    def schema(self) -> Schema:
        return {"type": ["object", "null"]}
