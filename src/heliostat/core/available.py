"""Which keys each place honours today. Any other given key is refused by name, never ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from heliostat.core.decode.log import Log, Path, dotted
from heliostat.core.decode.tree import Mark
from heliostat.core.spec import GROUNDS, Spec

Refusal = tuple[Path, str]

_EVERYWHERE = frozenset({"cluster", "where"})
_JOB = frozenset({"work", "outputs", "env", "secrets", "secrets_from"})
_NODE = frozenset(
    {"cpus", "memory", "shm", "gpus", "resources", "labels", "env", "start_args", "python", "setup"}
)


def _nodes(node: frozenset[str], group: frozenset[str]) -> frozenset[str]:
    """The same keys for the head and for every group, and those of groups alone."""
    return frozenset({*(f"head.{key}" for key in node), *(f"workers.{key}" for key in node | group)})


# A row for each place that exists. A key stands for everything below it.
HONOURED: Mapping[str, frozenset[str]] = {
    "local": _EVERYWHERE
    | _JOB
    | {"ray", "python", "files", "setup", "storage", "auth", "tags"}
    | _nodes(_NODE, frozenset({"count", "at_least"})),
    "ssh": _EVERYWHERE
    | _JOB
    | {"ray", "python", "files", "setup", "host_setup", "storage", "auth", "tags", "ssh"}
    | {"proxy", "mirrors.pypi", "mirrors.python"}
    | _nodes(_NODE | {"host_setup"}, frozenset({"count", "at_least"})),
    "compose": _EVERYWHERE
    | _JOB
    | {"ray", "python", "image", "dockerfile", "docker.pull", "registry", "volumes", "setup", "storage"}
    | {"auth", "tags", "compose", "observe", "notebook", "expose"}
    | _nodes(_NODE | {"image", "volumes"}, frozenset({"count", "at_least"})),
}


def _fixed_counts(spec: Spec) -> Iterator[Refusal]:
    for group in spec.workers:
        path = ("workers", group.name, "count")
        if group.count is None:
            yield path, "`count: per-gpu`"
        elif group.count.low != group.count.high:
            yield path, f"a range such as {group.count.low}..{group.count.high}"


def _own_store(spec: Spec) -> Iterator[Refusal]:
    if spec.storage == "embedded":
        yield ("storage",), "`storage: embedded`"


def _shares(spec: Spec) -> Iterator[Refusal]:
    """Ray's start command takes whole numbers, and devices of this machine are known by number only."""
    groups = [(("workers", group.name), group.node, group.count) for group in spec.workers]
    for path, node, count in ((("head",), spec.head, None), *groups):
        if node.cpus is not None and node.cpus != int(node.cpus):
            yield (*path, "cpus"), f"a part of a CPU such as {node.cpus:g}"
        if node.gpus is None:
            continue
        if node.gpus.count != int(node.gpus.count):
            yield (*path, "gpus"), f"a part of a GPU such as {node.gpus.count:g}"
        if node.gpus.model:
            yield (*path, "gpus"), f"choosing GPUs by model such as {node.gpus.model}"
        if node.gpus.devices and count and count.high > 1:
            yield (*path, "gpus"), "giving the same `devices` to more than one worker"


def _ipv4(spec: Spec) -> Iterator[Refusal]:
    """Containers have no other address."""
    for service, network in spec.expose.items():
        if ":" in network:
            yield ("expose", service), f"an IPv6 network such as {network}"


# Values of honoured keys that do not work there yet.
REFUSED: Mapping[str, tuple[Callable[[Spec], Iterator[Refusal]], ...]] = {
    "local": (_fixed_counts, _own_store, _shares),
    "ssh": (_fixed_counts, _own_store),
    "compose": (_fixed_counts, _shares, _ipv4),
}


def check(spec: Spec, log: Log) -> tuple[str, ...]:
    """Add what is not available yet to the log; return notes about what is no mistake."""
    notes = tuple(_unused(spec, log))
    if spec.where not in HONOURED:
        there = ", ".join(HONOURED)
        return (*notes, f"where: {spec.where} is not available yet; this heliostat can use: {there}")
    if spec.auth == "network-only" and spec.where == "local":
        open_to_all = "everybody who has an account on this machine can run what they like as you"
        notes = (*notes, f"WARNING: auth: network-only, so the cluster has no token: {open_to_all}")
    for path in _refused(spec, log):
        log.add(log.given[path].key, f"`{path[-1]}` is not available yet on {spec.where}")
    for rule in REFUSED.get(spec.where, ()):
        for path, what in rule(spec):
            log.add(log.mark(path) or Mark(spec.source), f"{what} is not available yet on {spec.where}")
    return notes


def honours(where: str, key: str) -> bool:
    """Whether a key, such as `workers.spot`, or anything below it works at that place.

    >>> honours("local", "workers.cpus"), honours("local", "workers.spot")
    (True, False)
    """
    parts = key.split(".")
    above = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
    row = HONOURED[where]
    return bool(above & row) or any(known.startswith(f"{key}.") for known in row)


def _refused(spec: Spec, log: Log) -> Iterator[Path]:
    """The shortest given paths that the place does not honour."""
    groups = {group.name for group in spec.workers}
    refused: set[Path] = set()
    for path in log.given:
        grouped = path[0] == "workers" and len(path) > 1 and path[1] in groups
        plain = (path[0], *path[2:]) if grouped else path
        inside_refused = any(path[:length] in refused for length in range(1, len(path)))
        if path[0] not in GROUNDS and not inside_refused and not honours(spec.where, ".".join(plain)):
            refused.add(path)
            yield path


def _unused(spec: Spec, log: Log) -> Iterator[str]:
    for place in GROUNDS:
        given = log.given.get((place,))
        if given and place != spec.where:
            yield f"{given.key}: `{dotted((place,))}` is not used, because `where` is {spec.where}"
