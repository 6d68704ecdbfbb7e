"""The Compose file of some of a cluster's services, as text. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from heliostat.core.resource import NODE, SERVICE, Resource
from heliostat.grounds.compose import beside
from heliostat.grounds.compose.expose import DOOR, door_text
from heliostat.grounds.compose.notebook import LAB, lab_text
from heliostat.grounds.compose.service import Names, config_text, program_text, service
from heliostat.grounds.compose.want import HOME, is_path

PROGRAMS = {LAB: lab_text, DOOR: door_text}


def compose_file(
    wanted: Sequence[Resource],
    labels: Mapping[str, Mapping[str, str]],
    names: Names,
    *,
    program: str | None = None,
) -> dict[str, Any]:
    """Networks and volumes are there already, with labels of their own: Compose only uses them."""
    nodes = [one for one in wanted if one.kind == NODE]
    others = [one for one in wanted if one.kind == SERVICE]
    used = [HOME] if nodes else []
    used += [source for one in nodes for source in one.body["volumes"] if not is_path(source)]
    used += [source for one in others for source in beside.volumes_of(one.key, one.body)]
    configs = {one.key: config_text(one) for one in nodes}
    if nodes:
        configs["program"] = program_text() if program is None else program
    for one in others:
        if wanted_program := one.body["program"]:
            configs[wanted_program] = Long(PROGRAMS[wanted_program]()) if program is None else program
        configs |= {beside.config_name(one.key, path): text for path, text in one.body["files"].items()}
    return {
        "name": names.project,
        "services": {
            **{one.key: service(one, labels=labels[one.key], names=names) for one in nodes},
            **{
                one.key: beside.service(one, name=names.container(one.key), labels=labels[one.key])
                for one in others
            },
        },
        "networks": {"cluster": {"name": names.network, "external": True}},
        "volumes": {key: {"name": names.volume(key), "external": True} for key in sorted(set(used))},
        "configs": {name: {"content": text} for name, text in sorted(configs.items())},
    }


class _Dumper(yaml.SafeDumper):
    """Long texts as blocks, no aliases: a person may want to read it."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  (its signature is PyYAML's)
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


class Long(str):
    """A text too long for YAML's own writer, which looks at each letter: it is put in as JSON writes it."""

    __slots__ = ()


def dump(data: Any) -> str:
    """As YAML for Compose, which would put variables in where `$` stands alone."""
    long: dict[str, str] = {}
    text = yaml.dump(_plain(data, long), Dumper=_Dumper, sort_keys=False, width=100_000)
    for word, whole in long.items():
        text = text.replace(word, json.dumps(whole.replace("$", "$$")), 1)
    return text


def _plain(data: Any, long: dict[str, str]) -> Any:
    if isinstance(data, Long):
        word = f"helio-long-text-{len(long)}"
        long[word] = data
        return word
    if isinstance(data, str):
        return data.replace("$", "$$")
    if isinstance(data, Mapping):
        return {key: _plain(value, long) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value, long) for value in data]
    return data
