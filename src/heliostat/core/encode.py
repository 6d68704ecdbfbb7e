"""A Spec back to the file that means it: `decode(encode(spec))` is that spec again."""

from __future__ import annotations

import re
from typing import Any

from heliostat.core.decode.fields import TOP
from heliostat.core.decode.fill import escape
from heliostat.core.defaults import BY_GROUND
from heliostat.core.spec import Spec

# PyYAML quotes what YAML 1.1 would misread; these are YAML 1.2's, for editors and other programs.
_NUMBER_LIKE = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|0[ox][0-9a-fA-F]+")


def encode(spec: Spec) -> str:
    """Write the canonical file: keys in the order of the documentation, nothing that is a default anyway.

    >>> print(encode(Spec(cluster="demo", outputs=("results/",))), end="")
    cluster: demo
    where: local
    outputs:
    - results/
    """
    return dump(plain(spec))


def plain(spec: Spec) -> dict[str, Any]:
    """The same as lists, mappings, texts, numbers and flags."""
    given = dict(TOP.parts(spec))
    given["where"] = spec.where
    defaults = BY_GROUND[spec.where]
    for key in ("idle", "lifetime"):
        # Left out it would mean the place's default again.
        if getattr(spec, key) is None and getattr(defaults, key) is not None:
            given[key] = "never"
    return {field.key: _escaped(given[field.key]) for field in TOP.fields if field.key in given}


def dump(data: dict[str, Any]) -> str:
    """Write plain data as YAML; a text that any YAML might take for something else is quoted."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, _data: object) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
        style = "|" if "\n" in value and not value.startswith((" ", "\n")) else None
        style = "'" if _NUMBER_LIKE.fullmatch(value) else style
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    written: str = yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return written


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, dict):
        return {key: _escaped(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_escaped(part) for part in value]
    return value
