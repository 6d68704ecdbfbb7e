"""The Compose file of some of a cluster's services, as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from heliostat.core.resource import NODE, SERVICE, Resource
from heliostat.grounds.compose import services
from heliostat.grounds.compose.service import Names, config_text, program_text, service
from heliostat.grounds.compose.want import HOME, is_path


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
    used += [source for one in others for source in (one.key, *one.body["reads"])]
    configs = {one.key: config_text(one) for one in nodes}
    if nodes:
        configs["program"] = program_text() if program is None else program
    for one in others:
        configs |= {services.config_name(one.key, path): text for path, text in one.body["files"].items()}
    return {
        "name": names.project,
        "services": {
            **{one.key: service(one, labels=labels[one.key], names=names) for one in nodes},
            **{
                one.key: services.service(one, name=names.container(one.key), labels=labels[one.key])
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


def dump(data: Any) -> str:
    """As YAML for Compose, which would put variables in where `$` stands alone."""
    return yaml.dump(_plain(data), Dumper=_Dumper, sort_keys=False, width=100_000)


def _plain(data: Any) -> Any:
    if isinstance(data, str):
        return data.replace("$", "$$")
    if isinstance(data, Mapping):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    return data
