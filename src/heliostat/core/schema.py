"""The JSON Schema of the file, from the same table as the decoder, so that editors complete and check it."""

from __future__ import annotations

from typing import Any

from heliostat.core.decode.fields import TOP
from heliostat.core.decode.kinds import DEFINITIONS
from heliostat.core.decode.node_fields import GROUP


def json_schema() -> dict[str, Any]:
    """Describe every key of helio.yaml.

    >>> sorted(json_schema()["required"])
    ['cluster']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A heliostat cluster",
        "description": "One file that describes a Ray cluster on any place.",
        **TOP.schema(),
        "$defs": {**DEFINITIONS, "group": GROUP.schema()},
    }
