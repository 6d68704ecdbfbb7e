"""Reading, converting and comparing files of other programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from heliostat.core.decode import decode
from heliostat.core.foreign import Converted, convert
from heliostat.core.spec import Decoded, Spec

FILES = Path(__file__).parent / "files"


def read(text: str, source: str = "ray.yaml") -> Decoded:
    return decode(text, source=source, folder="/lab", env={})


def spec(text: str) -> Spec:
    """What a file means, wherever it stands."""
    return replace(read(text).spec, source="")


def converted(text: str) -> Converted:
    return convert(text, "ray.yaml")


def golden(name: str) -> str:
    return (FILES / name).read_text()
