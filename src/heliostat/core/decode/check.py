"""What single keys cannot know: whether the keys of a file fit one another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from heliostat.core import units
from heliostat.core.decode.log import Log, Path, dotted
from heliostat.core.decode.tree import Mark
from heliostat.core.hosts import expand, is_file
from heliostat.core.spec import Group, Node, Origin, Spec

FLOOR_RAY = (2, 52)  # older releases have no token
LOGIN = {"grafana", "notebook", "storage"}  # services that ask for a password themselves
OWN_HOSTS = ("local", "ssh", "compose")
PRICED = ("gce", "azure", "ec2")  # places whose prices can be known
OPEN = {"0.0.0.0/0", "::/0"}
LABEL = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"  # Ray's own rule, and a comma would begin another

Finding = tuple[Path, str]


def derive(spec: Spec, log: Log) -> tuple[Spec, tuple[Origin, ...]]:
    """Read Ray's release from the image where the file does not say it."""
    release, _ = image_versions(spec.image or "")
    if spec.ray is not None or not release:
        return spec, ()
    origin = Origin(path="ray", value=release, source="image", place=str(log.mark(("image",)) or ""))
    return replace(spec, ray=release), (origin,)


def check(spec: Spec, log: Log) -> None:
    """Add every contradiction to the log, except about keys that could not be read."""
    for rule in RULES:
        for path, text in rule(spec):
            if log.sound(dotted(path)) and path not in log.wrong:
                log.add(log.mark(path) or Mark(spec.source), text)


def image_versions(image: str) -> tuple[str, str]:
    """The releases of Ray and of Python that the name of one of Ray's own images tells.

    >>> image_versions("rayproject/ray:2.60.0-py311-cpu"), image_versions("my/own:7")
    (('2.60.0', '3.11'), ('', ''))
    """
    found = re.search(r"(?:^|/)ray(?:-ml|-llm)?:([0-9]+\.[0-9]+\.[0-9]+)(?:[^-]*)(?:-py(3)([0-9]+))?", image)
    if not found:
        return "", ""
    return found[1], f"{found[2]}.{found[3]}" if found[2] else ""


def _nodes(spec: Spec) -> Iterator[tuple[Path, Node]]:
    yield ("head",), spec.head
    for group in spec.workers:
        yield _at(group), group.node


def _at(group: Group, *key: str) -> Path:
    return ("workers", group.name, *key)


def _release(spec: Spec) -> Iterator[Finding]:
    if spec.ray and tuple(int(part) for part in re.findall(r"\d+", spec.ray)[:2]) < FLOOR_RAY:
        if spec.auth == "token":
            text = (
                f"Ray {spec.ray} has no token authentication, which came with 2.52; take a newer one, "
                "or write `auth: network-only` and keep the network private"
            )
            yield ("ray",), text
        open_to = [service for service, network in spec.expose.items() if network in OPEN]
        for service in open_to:
            yield (
                ("expose",),
                f"`expose.{service}` opens Ray {spec.ray}, which has no token, to the whole world",
            )


def _image(spec: Spec) -> Iterator[Finding]:
    if spec.image and spec.dockerfile:
        yield ("dockerfile",), "`image` and `dockerfile` contradict each other: one is pulled, one is built"
    ray, python = image_versions(spec.image or "")
    if ray and spec.ray and spec.ray != ray:
        yield ("ray",), f"`ray` is {spec.ray}, but the image has {ray}; leave `ray` out or change one of them"
    if python and spec.python and not spec.python.startswith(python) and "/" not in spec.python:
        yield ("python",), f"`python` is {spec.python}, but the image has {python}; leave `python` out"


def _counts(spec: Spec) -> Iterator[Finding]:
    for group in spec.workers:
        grows = group.count is not None and group.count.low < group.count.high
        if group.idle is not None and not grows:
            yield (
                _at(group, "idle"),
                (
                    f"`idle` of {group.name} needs a `count` that is a range such as 0..4; "
                    "for the whole cluster write `idle` at the top"
                ),
            )
        if group.count is None and spec.where not in OWN_HOSTS:
            yield _at(group, "count"), f"`count: per-gpu` is for hosts of your own, not for {spec.where}"


def _exposed(spec: Spec) -> Iterator[Finding]:
    there = {
        "dashboard": True,
        "grafana": spec.observe.grafana,
        "prometheus": spec.observe.prometheus,
        "notebook": spec.notebook is not None,
        "storage": spec.storage == "embedded",
    }
    needs = {"grafana": "observe: true", "prometheus": "observe: true", "notebook": "notebook: true"}
    for service, network in spec.expose.items():
        path = ("expose",)
        if not there[service]:
            yield path, f"`expose.{service}` needs `{needs.get(service, 'storage: embedded')}`"
        if not _is_network(network):
            yield path, f"`expose.{service}` wants a network such as 10.0.0.0/8, not `{network}`"
        guarded = service in LOGIN or (service == "dashboard" and spec.auth == "token")
        if network in OPEN and not guarded:
            yield (
                path,
                f"`expose.{service}` may not be {network}: no login guards it; name a network of your own",
            )


def _is_network(text: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _money(spec: Spec) -> Iterator[Finding]:
    if spec.budget is None or spec.where in PRICED:
        return
    free = [".".join(path) for path, node in _nodes(spec) if node.price is None]
    if free:
        yield ("budget",), f"`budget` needs to know what nodes cost: add `price` to {' and '.join(free)}"


def _hosts(spec: Spec) -> Iterator[Finding]:
    if spec.where != "ssh":
        return
    if not spec.ssh.hosts:
        yield ("ssh", "hosts"), "`where: ssh` needs `ssh: { hosts: [...] }`"
        return
    names: list[str] = []
    for pattern in spec.ssh.hosts:
        try:
            names += expand(pattern)
        except ValueError as error:
            yield ("ssh", "hosts"), f"`ssh.hosts`: {error}"
            return
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        yield ("ssh", "hosts"), f"`ssh.hosts` names {', '.join(twice)} twice"
    unread = any(map(is_file, spec.ssh.hosts))  # whoever reads the inventories looks for the head there
    if spec.ssh.head and spec.ssh.head not in names and not unread:
        yield ("ssh", "head"), f"`ssh.head` is {spec.ssh.head}, which `ssh.hosts` does not name"


def _variables(spec: Spec) -> Iterator[Finding]:
    for name in spec.secrets:
        if name in spec.env:
            yield ("secrets",), f"{name} stands in `env` and in `secrets`; keep the one in `secrets`"


def _resources(spec: Spec) -> Iterator[Finding]:
    keys = {"CPU": "cpus", "GPU": "gpus", "memory": "memory", "object_store_memory": "shm"}
    for path, node in _nodes(spec):
        for name in node.resources:
            if name in keys:
                yield (*path, "resources"), f"`resources` may not hold {name}: use the key `{keys[name]}`"
        for label, value in node.labels.items():
            if label.startswith("ray.io/") or label == "helio-node":
                yield (*path, "labels"), f"`labels` may not hold {label}: it is set without you"
            elif not all(re.fullmatch(LABEL, part) for part in (label.rpartition("/")[2], value or "x")):
                words = f"`labels` wants letters, digits and -_. in `{label}: {value}`, at most 63"
                yield (*path, "labels"), words
        if node.shm and node.memory and node.shm >= node.memory:
            shm, memory = units.say_size(node.shm), units.say_size(node.memory)
            yield (*path, "shm"), f"`shm` is {shm}, which leaves nothing of `memory`, {memory}"


def _limits(spec: Spec) -> Iterator[Finding]:
    if spec.idle and spec.lifetime and spec.idle > spec.lifetime:
        idle, lifetime = units.say_time(spec.idle), units.say_time(spec.lifetime)
        yield ("idle",), f"`idle` is {idle}, longer than `lifetime`, {lifetime}"


RULES: tuple[Callable[[Spec], Iterator[Finding]], ...] = (
    _release,
    _image,
    _counts,
    _exposed,
    _money,
    _hosts,
    _variables,
    _resources,
    _limits,
)
