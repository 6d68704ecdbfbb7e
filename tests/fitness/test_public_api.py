"""What people may rely on: a change of it shows up in review, as a change of public_api.txt."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import heliostat

SNAPSHOT = Path(__file__).with_name("public_api.txt")


def described() -> Iterator[str]:
    """Every public name, its methods and its fields."""
    for name in heliostat.__all__:
        thing = getattr(heliostat, name)
        if inspect.isfunction(thing):
            yield f"{name}{inspect.signature(thing)}"
        elif issubclass(thing, enum.Enum):
            yield f"{name}: {', '.join(thing.__members__)}"
        elif issubclass(thing, BaseException):
            yield f"{name}({', '.join(base.__name__ for base in thing.__bases__)})"
        else:
            yield name
            yield from (f"    .{line}" for line in members(thing))


def members(thing: type[Any]) -> Iterator[str]:
    if dataclasses.is_dataclass(thing):
        yield from (f"{field.name}: {field.type}" for field in dataclasses.fields(thing))
    for name, member in vars(thing).items():
        if isinstance(member, property):
            yield f"{name}  # {inspect.signature(member.fget).return_annotation if member.fget else ''}"
        elif inspect.isfunction(member) and not name.startswith("_"):
            yield f"{name}{inspect.signature(member)}"


def test_the_public_names_are_as_they_were() -> None:
    now = "".join(f"{line}\n" for line in described())
    then = SNAPSHOT.read_text()
    change = "".join(difflib.unified_diff(then.splitlines(True), now.splitlines(True), "before", "now"))
    assert not change, f"a change that is meant goes into {SNAPSHOT.name}:\n{change}"


def test_dir_and_star_agree_with_what_there_is() -> None:
    assert set(heliostat.__all__) <= set(dir(heliostat))
    found: dict[str, object] = {}
    exec("from heliostat import *", found)  # noqa: S102 - a person's own words
    assert set(heliostat.__all__) <= set(found)


def test_importing_it_loads_nothing_of_weight() -> None:
    code = "import heliostat, json, sys; print(json.dumps([n for n in sys.modules if n != 'heliostat']))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=30).stdout
    names: list[str] = json.loads(out)
    assert not [name for name in names if name.startswith("heliostat.")]
    assert not {"asyncio", "rich", "yaml", "ray", "h11", "click", "dataclasses", "inspect"} & set(names)
