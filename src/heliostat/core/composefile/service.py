"""One service of a Compose file: what it is for, and how it starts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from heliostat.core.decode.log import Path
from heliostat.core.decode.tree import Items, Mark, Scalar, Table, Tree
from heliostat.core.rayyaml.reader import At, Reader

_STORES = re.compile(r"(?:^|/)(?:minio/minio|seaweedfs|garage|localstack|rustfs|minio)(?::|$|/)")
_FIRST_DEVICE = 128  # /dev/dri/renderD128 is the first GPU


class Role(StrEnum):
    HEAD = "head"
    WORKER = "worker"
    GRAFANA = "grafana"
    PROMETHEUS = "prometheus"
    STORE = "store"
    BUCKET = "bucket"
    NOTEBOOK = "notebook"
    OTHER = "other"


@dataclass
class Service:
    name: str
    mark: Mark
    keys: Reader
    image: str
    command: str  # what runs, a shell's inner words included
    command_mark: Mark

    @property
    def role(self) -> Role:
        if re.search(r"\bray\s+start\b", self.command):
            return Role.HEAD if "--head" in self.command else Role.WORKER
        image = self.image.partition("@")[0]
        for role, pattern in _ROLES.items():
            if pattern.search(image):
                return role
        return Role.NOTEBOOK if re.search(r"\bjupyter\b", self.command) else Role.OTHER


_ROLES: Mapping[Role, re.Pattern[str]] = {
    Role.GRAFANA: re.compile(r"grafana/grafana"),
    Role.PROMETHEUS: re.compile(r"prom/prometheus"),
    Role.BUCKET: re.compile(r"minio/mc(?::|$)"),
    Role.STORE: _STORES,
    Role.NOTEBOOK: re.compile(r"jupyter"),
}


def service(name: Scalar, table: Table, path: Path, keys: Reader) -> Service:
    del table, path
    image = keys.take("image", "text")
    words = [at for key in ("entrypoint", "command") if (at := keys.take(key, "any"))]
    text = "; ".join(script(at.value) for at in words)
    mark = next((at.mark for at in reversed(words)), name.mark)
    return Service(name.text, name.mark, keys, image.value if image else "", text, mark)


def script(tree: Tree) -> str:
    """The commands that a `command` runs, as a shell would read them on one line.

    >>> script(Scalar('/bin/sh -c "\\na &&\\n ray start\\nb"', Mark("x")))
    'a && ray start; b'
    """
    if isinstance(tree, Items):
        words = [item.text for item in tree.items if isinstance(item, Scalar)]
    else:
        text = tree.text if isinstance(tree, Scalar) else ""
        try:
            words = shlex.split(text)
        except ValueError:
            return text
    if (
        len(words) > 2
        and words[0].rpartition("/")[2] in ("sh", "bash")
        and re.fullmatch(r"-\w*c\w*", words[1])
    ):
        lines = [line.strip() for line in words[2].replace("\\\n", " ").strip().split("\n") if line.strip()]
        joined = "\n".join(line for line in lines if not line.startswith("#"))
        return re.sub(r"(&&|\|\||[;|])?\s*\n", lambda end: f"{end[1]} " if end[1] else "; ", joined)
    return shlex.join(words)


def variables(at: At | None) -> Iterator[tuple[str, str, Mark]]:
    """`environment`, as a mapping or as a list."""
    tree = at.value if at else None
    if isinstance(tree, Table):
        for key, part in tree:
            yield key.text, part.text if isinstance(part, Scalar) else "", key.mark
    for item in tree.items if isinstance(tree, Items) else ():
        if isinstance(item, Scalar):
            name, _, value = item.text.partition("=")
            yield name, value, item.mark


def mounts(at: At | None) -> Iterator[tuple[str, str, Mark]]:
    """`volumes`, short or long: what is mounted, where, and its place in the file."""
    for item in at.value.items if at and isinstance(at.value, Items) else ():
        if isinstance(item, Scalar):
            source, _, target = item.text.partition(":")
            yield (source, target, item.mark) if target else ("", source, item.mark)
        elif isinstance(item, Table):
            parts = {key.text: part.text for key, part in item if isinstance(part, Scalar)}
            mode = ":ro" if parts.get("read_only") in ("true", "True") else ""
            yield parts.get("source", ""), parts.get("target", "") + mode, item.mark


@dataclass(frozen=True, slots=True)
class Gpu:
    vendor: str
    devices: tuple[str, ...]
    count: int | None  # None: as many as there are
    mark: Mark


def gpus(keys: Reader, limits: Reader | None) -> Gpu | None:
    """The GPUs of a service: a reservation of devices, or AMD's device files."""
    devices = keys.take("devices", "any")
    nodes = [item.text for item in devices.value.items if isinstance(item, Scalar)] if devices else []
    if devices and any(node.startswith("/dev/kfd") for node in nodes):
        found = [re.search(r"renderD(\d+)", node) for node in nodes]
        numbers = tuple(str(int(one[1]) - _FIRST_DEVICE) for one in found if one)
        return Gpu("amd", numbers, len(numbers) or None, devices.mark)
    if devices:
        keys.left["devices"] = (Scalar("devices", devices.mark), devices.value)
    reserved = limits.take("devices", "any") if limits else None
    for table in reserved.value.items if reserved and isinstance(reserved.value, Items) else ():
        parts = {key.text: part for key, part in table} if isinstance(table, Table) else {}
        ids, count = parts.get("device_ids"), parts.get("count")
        names = (
            tuple(item.text for item in ids.items if isinstance(item, Scalar))
            if isinstance(ids, Items)
            else ()
        )
        text = count.text if isinstance(count, Scalar) else ""
        number = len(names) or (int(text) if text.isdigit() else None)
        return Gpu("nvidia", names, number, reserved.mark if reserved else table.mark)
    return None
