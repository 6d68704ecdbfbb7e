"""Which node stands on which host. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from heliostat.core.errors import UsageError
from heliostat.core.hosts import expand
from heliostat.core.names import nodes_of
from heliostat.core.resource import HEAD
from heliostat.core.spec import Group, Spec


def hosts_of(spec: Spec) -> tuple[str, ...]:
    """Every host of the file, once, in its order; the head's first.

    >>> from heliostat.core.spec import SshSite
    >>> hosts_of(Spec(cluster="c", ssh=SshSite(hosts=("n[1-2]", "gpu"), head="gpu")))
    ('gpu', 'n1', 'n2')
    """
    named = [host for pattern in spec.ssh.hosts for host in expand(pattern)]
    first = [spec.ssh.head] if spec.ssh.head else []
    return tuple(dict.fromkeys([*first, *named]))


def deal(spec: Spec) -> Mapping[str, str]:
    """Node to host: the head's own, then hosts that are called like a group, then in the file's order.

    >>> from heliostat.core.spec import Count, SshSite
    >>> two, one = Count(low=2, high=2), Count(low=1, high=1)
    >>> groups = (Group(name="cpu", count=two), Group(name="gpu", count=one))
    >>> dict(deal(Spec(cluster="c", workers=groups, ssh=SshSite(hosts=("a", "gpu1.lab", "b", "c")))))
    {'head': 'a', 'cpu-1': 'b', 'cpu-2': 'c', 'gpu-1': 'gpu1.lab'}
    """
    hosts = hosts_of(spec)
    if not hosts:
        raise UsageError(
            "the file names no hosts",
            why="where: ssh needs them",
            fix='add `ssh: { hosts: ["node[01-04].lab"] }`',
        )
    free = list(hosts[1:])
    workers = [(name, group) for name, _, group in nodes_of(spec) if group is not None]
    if len(workers) > len(free):
        raise UsageError(
            f"{len(workers)} workers need as many hosts beside the head's, and there are {len(free)}",
            why="a host carries one node of a cluster",
            fix="name more hosts, or ask for fewer workers",
        )
    dealt = {HEAD: hosts[0], **dict(_by_name(workers, free))}
    taken = set(dealt.values())
    rest = iter([host for host in free if host not in taken])
    return {name: dealt.get(name) or next(rest) for name, _, _ in nodes_of(spec)}


def _by_name(workers: list[tuple[str, Group]], free: list[str]) -> Iterator[tuple[str, str]]:
    called: dict[str, list[str]] = {group.name: [] for _, group in workers}
    for host in free:
        if stem(host) in called:
            called[stem(host)].append(host)
    its = {name: iter(hosts) for name, hosts in called.items()}
    for name, group in workers:
        called_so = next(its[group.name], None)
        if called_so is not None:
            yield name, called_so


def stem(host: str) -> str:
    """What a host is called without its number and its domain.

    >>> stem("me@gpu-07.lab"), stem("10.0.0.7")
    ('gpu', '')
    """
    return re.split(r"[.\d]", host.rpartition("@")[2])[0].rstrip("-_")
