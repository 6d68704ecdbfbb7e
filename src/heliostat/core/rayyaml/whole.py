"""The whole of Ray's file, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heliostat.core import units
from heliostat.core.decode.check import FLOOR_RAY, image_versions
from heliostat.core.decode.forms import slug
from heliostat.core.decode.log import Log, nearest
from heliostat.core.decode.tree import Mark, Scalar, Table
from heliostat.core.defaults import BY_GROUND
from heliostat.core.draft import Draft
from heliostat.core.rayyaml import aws, azure, docker, gcp, local, start, usual
from heliostat.core.rayyaml.commands import Pins, on_host, setup
from heliostat.core.rayyaml.keys import GONE, TOP, provider_keys
from heliostat.core.rayyaml.nodes import (
    Kind,
    kinds,
    say_count,
    say_idle,
    say_resources,
    valid_name,
)
from heliostat.core.rayyaml.reader import At, Reader

_WHERE = {"local": "ssh", "gcp": "gce", "azure": "azure", "aws": "ec2"}
_ALSO = {"gce": "gcp", "google": "gcp", "ec2": "aws", "amazon": "aws", "ssh": "local", "onprem": "local"}
_KUBERNETES = "Ray's launcher does no Kubernetes any more; write a heliostat file with `where: kubernetes`"
_NO_PLACE = {
    "kubernetes": _KUBERNETES,
    "kuberay": _KUBERNETES,
    "external": "a provider of your own cannot be used; the places are gce, azure, ec2, ssh and others",
    "readonly": "it describes a cluster that is there already; heliostat has nothing to bring up",
    "fake_multinode": "write `where: local`: several nodes on this machine",
    "fake_multinode_docker": "write `where: compose`: several nodes in containers on this machine",
    **dict.fromkeys(("aliyun", "vsphere", "spark"), "heliostat has no such place"),
}


class Whole:
    """Reads one file once."""

    def __init__(self, tree: Table, log: Log) -> None:
        self.log = log
        self.mark = tree.mark
        self.draft = Draft(log)
        self.pins = Pins(self.draft)
        self.top = Reader(tree, (), log)
        for name, why in GONE.items():
            if found := self.top.take(name, "any"):
                log.add(found.mark, f"`{name}` is {why}")
        self.top.check(TOP)

    def read(self) -> Draft:
        self._name()
        found = self._provider()
        if found is None:
            return self.draft
        where, nodes = found
        for kind in nodes:
            say_count(kind, self.draft)
        heads = next((kind.path for kind in nodes if kind.head), ("head",))
        groups = [kind.path for kind in nodes if not kind.head]
        contained = self._docker(heads, groups)
        for kind in nodes:
            self._node(kind, where)
        self._auth(where)
        self._commands(nodes, own_python=not contained)
        self._start(nodes)
        self._times(nodes, where)
        self._files()
        self._others()
        self._release()
        self._shorten()
        return self.draft

    def _name(self) -> None:
        name = self.top.take("cluster_name", "text")
        if name is None:
            self.log.add(self.mark, "`cluster_name` is missing")
        elif valid_name(name.value):
            self.draft.put(("cluster",), name.value, name.mark, name.key)
        else:
            meant = slug(name.value)
            self.draft.put(("cluster",), meant or name.value, name.mark, name.key)
            if meant:
                self.draft.near(name.mark, name.key, f"the cluster is called {meant} here")

    def _provider(self) -> tuple[str, list[Kind]] | None:
        keys = self.top.reader("provider")
        if keys is None:
            self.log.add(self.mark, "`provider` is missing")
            return None
        kind = keys.take("type", "text")
        if kind is None:
            self.log.add(keys.mark, "`provider.type` is missing: local, gcp, azure or aws")
        elif kind.value in _NO_PLACE:
            self.log.add(kind.there, f"`provider.type` is {kind.value}: {_NO_PLACE[kind.value]}")
        elif kind.value not in _WHERE:
            hint = nearest(kind.value, _WHERE, _ALSO)
            self.log.add(
                kind.there, f"`provider.type` wants local, gcp, azure or aws, not `{kind.value}`", hint
            )
        else:
            self.draft.put(("where",), _WHERE[kind.value], kind.mark, kind.key)
            return _WHERE[kind.value], self._site(keys, kind.value)
        return None

    def _site(self, keys: Reader, kind: str) -> list[Kind]:
        for at in usual.of_others(keys, kind):
            self.draft.lost(at.mark, at.key, f"it belongs to another provider; {kind} does not read it")
        keys.check(provider_keys(kind))
        if module := keys.take("module", "text"):
            self.log.add(module.mark, "`provider.module` names a provider of your own, which cannot be used")
        if (reuse := keys.take("cache_stopped_nodes", "flag")) and reuse.value:
            self.draft.lost(reuse.mark, reuse.key, "`down` removes nodes, it never parks them")
        if (inside := keys.take("use_internal_ips", "flag")) and inside.value:
            self.draft.put((_WHERE[kind], "network", "public_ip"), False, inside.mark, inside.key)
        if kind == "local":
            nodes = local.provider(keys, self.top, self.draft)
        else:
            found = kinds(self.top, self.draft)
            nodes = usual.nodes(kind, self.top, self.draft) if found is None else found
        if kind == "gcp":
            gcp.provider(keys, self.draft)
        elif kind == "azure":
            azure.provider(keys, self.draft, [node.path for node in nodes])
        elif kind == "aws":
            aws.provider(keys, self.draft)
        for at in keys.rest():
            self.draft.lost(at.mark, at.key, "heliostat brings its nodes up itself")
        return nodes

    def _docker(self, head: tuple[str, ...], groups: Sequence[tuple[str, ...]]) -> bool:
        keys = self.top.reader("docker")
        return keys is not None and docker.whole(keys, head, groups, self.draft)

    def _node(self, kind: Kind, where: str) -> None:
        keys = kind.keys
        config = keys.reader("node_config") if keys.path[:1] == ("available_node_types",) else keys
        resources = keys.take("resources", "table")
        if config is not None and where in ("gce", "azure", "ec2"):
            {"gce": gcp, "azure": azure, "ec2": aws}[where].node(config, kind.path, self.draft)
        if resources:
            say_resources(resources.value, resources.key, kind.path, self.draft)
        if labels := keys.take("labels", "table"):
            texts = {name.text: part.text for name, part in labels.value if isinstance(part, Scalar)}
            self.draft.put((*kind.path, "labels"), texts, labels.mark, labels.key)
        if inside := keys.reader("docker"):
            docker.of_group(inside, kind.path, self.draft)
        if priority := keys.take("priority", "whole"):
            self.draft.lost(priority.mark, priority.key, "Ray's autoscaler chooses the group that fits best")
        if config is not None and keys.path[:1] != ("provider",):
            gcp.unknown(config, self.draft)

    def _auth(self, where: str) -> None:
        keys = self.top.reader("auth")
        if keys is None:
            return
        if where == "ssh":
            local.auth(keys, self.draft)
            return
        for name in ("ssh_user", "ssh_private_key", "ssh_public_key"):
            if at := keys.take(name, "text"):
                text = "heliostat makes a login of its own on each machine"
                self.draft.ours(at.mark, at.key, text if name == "ssh_user" else f"{text}, with its own key")
        for at in keys.rest():
            self.draft.lost(at.mark, at.key, "heliostat chooses the way to its machines itself")

    def _commands(self, nodes: Sequence[Kind], *, own_python: bool) -> None:
        common = self._list("setup_commands")
        special = {True: self._list("head_setup_commands"), False: self._list("worker_setup_commands")}
        first = self._setup(common, own_python)
        if common and first:
            self.draft.put(("setup",), first, common.mark, common.key)
        for kind in nodes:
            own = kind.keys.take("worker_setup_commands", "commands")
            if own is not None and kind.head:
                self.draft.lost(own.mark, own.key, "Ray reads it for workers only")
                own = None
            at = own if own is not None else special[kind.head]
            rest = self._setup(at, own_python)
            whole = rest if own is not None else [*first, *rest]
            if at is not None and whole != first:
                origin = (
                    at.key if own is not None or not first else f"{common.key if common else ''} and {at.key}"
                )
                self.draft.put((*kind.path, "setup"), whole, at.mark, origin)
        if all(self.draft.leaf((*kind.path, "setup")) for kind in nodes):
            self.draft.tree.pop("setup", None)  # nobody would read it
        self._on_host(nodes)

    def _on_host(self, nodes: Sequence[Kind]) -> None:
        common = self._list("initialization_commands")
        if common and common.value:
            self.draft.put(("host_setup",), on_host(common.value), common.mark, common.key)
        for kind in nodes:
            own = kind.keys.take("initialization_commands", "commands")
            if own is not None and kind.head:
                self.draft.lost(own.mark, own.key, "Ray reads it for workers only")
            elif own is not None:
                self.draft.put((*kind.path, "host_setup"), on_host(own.value), own.mark, own.key)

    def _list(self, key: str) -> At | None:
        return self.top.take(key, "commands")

    def _setup(self, at: At | None, own_python: bool) -> list[str]:
        return setup(at.value, at.key, self.pins, own_python=own_python) if at else []

    def _start(self, nodes: Sequence[Kind]) -> None:
        for name, of_head in (("head_start_ray_commands", True), ("worker_start_ray_commands", False)):
            commands = self._list(name)
            if commands is None or not commands.value:
                continue
            if not any(start.starts_ray(command.text) for command in commands.value):
                self.draft.lost(
                    commands.mark, name, "nothing in it is `ray start`; heliostat starts Ray itself"
                )
                continue
            for kind in nodes:
                if kind.head == of_head:
                    said = {
                        key for key in ("cpus", "gpus", "memory", "shm") if self.draft.leaf((*kind.path, key))
                    }
                    start.read(commands.value, name, kind.path, self.draft, frozenset(said))

    def _times(self, nodes: Sequence[Kind], where: str) -> None:
        idle = self.top.take("idle_timeout_minutes", "number")
        used = [say_idle(kind, idle, self.draft) for kind in nodes]
        if idle and not any(used):
            self.draft.ours(idle.mark, idle.key, "no group of workers may shrink, so none ever goes")
        for key in ("idle", "lifetime"):
            # Ray's launcher never ends a cluster, and what it started shall not end here unasked.
            if getattr(BY_GROUND[where], key) is not None:
                self.draft.put((key,), "never", self.mark)

    def _files(self) -> None:
        mounts = self.top.take("file_mounts", "table")
        if mounts and mounts.value.entries:
            files: dict[str, str] = {}
            for remote, path in mounts.value:
                if isinstance(path, Scalar) and path.text:
                    files[remote.text] = path.text
                else:
                    self.log.add(path.mark, f"`file_mounts` wants a path for {remote.text}, not {path}")
            self.draft.put(("files",), files, mounts.mark, mounts.key)
        if (synced := self.top.take("cluster_synced_files", "list")) and synced.value:
            self.draft.lost(synced.mark, synced.key, "`files` brings files to every node, from here")
        if (always := self.top.take("file_mounts_sync_continuously", "flag")) and always.value:
            self.draft.lost(always.mark, always.key, "`helio push` sends files again")
        usual.ignored(self.top, self.draft)

    def _others(self) -> None:
        if (speed := self.top.take("upscaling_speed", "number")) and speed.value != 1:
            text = (
                f"{units.say_number(speed.value)} is not said to Ray's autoscaler, which keeps its own pace"
            )
            self.draft.lost(speed.mark, speed.key, text)
        if metadata := self.top.take("metadata", "any"):
            self.draft.lost(metadata.mark, metadata.key, "Ray does not read it either")
        for at in self.top.rest():
            self.draft.lost(at.mark, at.key, "heliostat has nothing like it")

    def _release(self) -> None:
        """The Ray of the file; one that is too old for a token runs without, and says so."""
        image = self.draft.leaf(("image",))
        release = image_versions(image.value)[0] if image else ""
        mark = image.mark if image else self.mark
        if self.pins.ray:
            release, mark, key = self.pins.ray
            self.draft.put(("ray",), release, mark, key)
        if self.pins.python:
            self.draft.put(("python",), *self.pins.python)
        network_only(release, mark, self.draft)

    def _shorten(self) -> None:
        """`workers: 3` for a group that has nothing else."""
        workers = self.draft.tree.get("workers")
        if workers is None:
            self.draft.put(("workers",), "0", self.mark)
        elif list(workers) == ["count"]:
            self.draft.tree["workers"] = replace(workers["count"])


def network_only(release: str, mark: Mark, draft: Draft) -> None:
    """A Ray without tokens, as the file has it: allowed, and said aloud."""
    if release and tuple(int(part) for part in release.split(".")[:2]) < FLOOR_RAY:
        draft.put(("auth",), "network-only", mark, f"Ray {release}")
        draft.warnings.append(
            f"Ray {release} has no token, so whoever reaches its ports can use the cluster: "
            "it is kept to the private network (auth: network-only). Ray 2.52 or newer has one"
        )
