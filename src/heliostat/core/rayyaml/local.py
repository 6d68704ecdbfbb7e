"""Ray's provider local: `where: ssh`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from heliostat.core.decode.tree import Table
from heliostat.core.draft import Draft
from heliostat.core.rayyaml.nodes import HEAD, Kind
from heliostat.core.rayyaml.reader import At, Reader

_NO = ("available_node_types", "head_node_type", "head_node", "worker_nodes")


def provider(keys: Reader, top: Reader, draft: Draft) -> list[Kind]:
    """Read the hosts; the nodes are a head and one group of workers."""
    for name in _NO:
        found = top.take(name, "any")
        if found:
            draft.log.add(
                found.mark, f"`{name}` cannot stand beside `provider: {{type: local}}`, in Ray neither"
            )
    head, workers = keys.take("head_ip", "text"), keys.take("worker_ips", "list")
    if coordinator := keys.take("coordinator_address", "text"):
        text = "heliostat has no coordinator of hosts; write head_ip and worker_ips instead"
        draft.log.add(coordinator.mark, f"`{coordinator.key}`: {text}")
    elif head is None:
        draft.log.add(keys.mark, "`provider.head_ip` is missing")
    elif workers is None:
        draft.log.add(keys.mark, "`provider.worker_ips` is missing; write [] for a head alone")
    if external := keys.take("external_head_ip", "text"):
        text = (
            f"write `HostName {external.value}` for {head.value if head else 'the head'} into ~/.ssh/config"
        )
        draft.lost(external.mark, external.key, text)
    hosts = _hosts(head, workers, draft)
    return [Kind(HEAD, _empty(keys), head=True), _group(keys, top, workers, len(hosts) - 1, draft)]


def _hosts(head: At | None, workers: At | None, draft: Draft) -> list[str]:
    hosts = [head.value] if head else []
    for worker in workers.value if workers else ():
        if worker.text in hosts:
            draft.near(worker.mark, "provider.worker_ips", f"{worker.text} is named twice; it counts once")
        else:
            hosts.append(worker.text)
    if head:
        draft.put(("ssh", "hosts"), hosts, workers.mark if workers else head.mark, "provider.worker_ips")
        draft.put(("ssh", "head"), head.value, head.mark, head.key)
    return hosts


def _empty(keys: Reader) -> Reader:
    return Reader(Table((), keys.mark), ("provider",), keys.log)


def _group(keys: Reader, top: Reader, workers: At | None, hosts: int, draft: Draft) -> Kind:
    """As many workers as there are hosts, unless the file says fewer."""
    least, most = top.take("min_workers", "whole"), top.take("max_workers", "whole")
    for at in (least, most):
        if at and at.value > hosts:
            draft.near(at.mark, at.key, f"there are {hosts} hosts for workers: so many")
    high = min(most.value if most else hosts, hosts)
    low = min(least.value if least else high, high)
    at = least or most or workers
    mark, origin = (at.mark, at.key) if at else (keys.mark, "")
    return Kind(("workers",), _empty(keys), low=low, high=high, mark=mark, origin=origin)


def auth(keys: Reader, draft: Draft) -> None:
    """Who logs in, with which key, through which host."""
    for theirs, ours in (("ssh_user", "user"), ("ssh_private_key", "key")):
        if at := keys.take(theirs, "text"):
            draft.put(("ssh", ours), at.value, at.mark, at.key)
    if public := keys.take("ssh_public_key", "text"):
        draft.ours(public.mark, public.key, "logging in needs the private key only")
    if proxy := keys.take("ssh_proxy_command", "text"):
        jump = jump_host(proxy.value)
        if jump:
            draft.put(("ssh", "jump"), jump, proxy.mark, proxy.key)
        else:
            text = f"write `ProxyCommand {proxy.value}` for these hosts into ~/.ssh/config, which is honoured"
            draft.lost(proxy.mark, proxy.key, text)
    if (node_id := keys.take("ssh_proxy_use_node_id", "flag")) and node_id.value:
        draft.lost(node_id.mark, node_id.key, "hosts are reached by their names")


def jump_host(command: str) -> str:
    """The host of a proxy command that only goes through it; empty for any other.

    >>> jump_host("ssh -q -W %h:%p me@gate"), jump_host("nc -x proxy:1234 %h %p")
    ('me@gate', '')
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    if words[:1] != ["ssh"] or "%h:%p" not in command:
        return ""
    hosts = list(_hosts_of(words[1:]))
    plain = all(word in ("-W", "-q", "%h:%p", *hosts) for word in words[1:])
    return hosts[0] if len(hosts) == 1 and plain else ""


def _hosts_of(words: Sequence[str]) -> list[str]:
    return [word for word in words if re.fullmatch(r"(?!-)[\w.@:-]+", word)]
