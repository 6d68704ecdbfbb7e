"""The whole of a Compose file, service by service."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from heliostat.core import units
from heliostat.core.composefile.service import Gpu, Role, Service, gpus, mounts, service, variables
from heliostat.core.decode.check import image_versions
from heliostat.core.decode.forms import NAME, TAKEN, slug
from heliostat.core.decode.log import Log, Path
from heliostat.core.decode.tree import Items, Mark, Scalar, Table, is_empty
from heliostat.core.draft import Draft
from heliostat.core.rayyaml import start
from heliostat.core.rayyaml.docker import shm
from heliostat.core.rayyaml.reader import At, Reader, plain
from heliostat.core.rayyaml.whole import network_only

_SECRET = re.compile(r"PASSWORD|PASSWD|SECRET|TOKEN|ACCESS_KEY|API_?KEY|CREDENTIAL", re.IGNORECASE)
_DEALT = re.compile(r"(?:HIP|ROCR|CUDA|NVIDIA)_VISIBLE_DEVICES")
_SHOWN = re.compile(r"RAY_(?:GRAFANA|PROMETHEUS)_\w+")
_STORE = re.compile(r"AWS_(?:ACCESS_KEY_ID|SECRET_ACCESS_KEY|ENDPOINT_URL\w*|DEFAULT_REGION|REGION)")
_STARTED = ("container_name", "restart", "depends_on", "healthcheck", "expose", "networks", "hostname",
            "user", "network_mode", "init", "stdin_open", "tty", "profiles", "platform",
            "pull_policy", "links")  # fmt: skip
_SERVICE = "heliostat starts and watches its services itself"
_SETS_UP = re.compile(r"(?:mkdir|chown|chmod)\b.*/tmp/ray\b|ray\s+metrics\s+launch-prometheus")


class Whole:
    """Reads one file once."""

    def __init__(self, tree: Table, log: Log) -> None:
        self.log = log
        self.mark = tree.mark
        self.draft = Draft(log, fills=True)
        self.top = Reader(tree, (), log)
        self.services = list(self._services())

    def _services(self) -> list[Service]:
        found = self.top.take("services", "table")
        made: list[Service] = []
        for name, table in found.value if found else ():
            if isinstance(table, Table):
                path = ("services", name.text)
                made.append(service(name, table, path, Reader(table, path, self.log)))
            elif not is_empty(table):
                self.log.add(table.mark, f"`services.{name.text}` wants a mapping, not {table}")
        return made

    def of(self, *roles: Role) -> list[Service]:
        return [one for one in self.services if one.role in roles]

    def read(self) -> Draft:
        heads, workers = self.of(Role.HEAD), self.of(Role.WORKER)
        if not heads:
            self.log.add(
                self.mark, "no service starts Ray's head (`ray start --head`): there is no cluster in it"
            )
            return self.draft
        for other in heads[1:]:
            self.log.add(
                other.mark, f"`services.{other.name}` starts a second head; one file holds one cluster"
            )
        self._name()
        self.draft.put(("where",), "compose", self.mark, "services")
        self._around(heads[0])
        self._image(heads[0])
        self._node(heads[0], ("head",), heads[0])
        self._workers(workers, heads[0])
        self._left()
        network_only(image_versions(heads[0].image)[0], heads[0].mark, self.draft)
        return self.draft

    def _name(self) -> None:
        name = self.top.take("name", "text")
        text = name.value if name else "ray"
        mark = name.mark if name else self.mark
        good = text if re.fullmatch(NAME, text) else slug(text) or "ray"
        self.draft.put(("cluster",), good, mark, "name" if name else "services")
        if name and good != text:
            self.draft.near(mark, "name", f"the cluster is called {good} here")

    def _around(self, head: Service) -> None:
        """What stands beside Ray: figures, a store, a notebook."""
        shown, store = self.of(Role.GRAFANA), self.of(Role.STORE)
        gathers = bool(self.of(Role.PROMETHEUS)) or "launch-prometheus" in head.command
        if shown:
            self.draft.put(("observe",), True, shown[0].mark, f"services.{shown[0].name}")
        elif gathers:
            mark = next((one.mark for one in self.of(Role.PROMETHEUS)), head.command_mark)
            self.draft.put(("observe",), {"prometheus": True, "grafana": False}, mark, "Prometheus")
        if store:
            self.draft.put(("storage",), "embedded", store[0].mark, f"services.{store[0].name}")
        for notebook in self.of(Role.NOTEBOOK)[:1]:
            self._notebook(notebook)
        for one in self.of(Role.GRAFANA, Role.PROMETHEUS, Role.STORE, Role.BUCKET):
            self._replaced(one)
        for one in self.of(Role.OTHER):
            self.draft.lost(
                one.mark, f"services.{one.name}", "heliostat has nothing like it; start it beside the cluster"
            )
            one.keys.left.clear()

    def _replaced(self, one: Service) -> None:
        """A service that heliostat brings itself: its image, command and volumes are not needed."""
        if one.role is Role.BUCKET:
            text = "the store's bucket is made by heliostat and called helio: jobs find it as HELIO_STORAGE"
            self.draft.near(one.mark, f"services.{one.name}", text)
        else:
            self.draft.ours(one.mark, f"services.{one.name}", "heliostat brings its own")
        self._ports(one)
        for name, _, mark in variables(one.keys.take("environment", "any")):
            if _SECRET.search(name):
                self._password(one, f"environment.{name}", mark)
            elif "ANONYMOUS" in name:
                self.draft.lost(mark, f"services.{one.name}.environment.{name}", "everybody must sign in")
        if re.search(r"secret|password", one.command, re.IGNORECASE):
            self._password(one, "command", one.command_mark)
        one.keys.left.clear()

    def _password(self, one: Service, name: str, mark: Mark) -> None:
        text = "a password in the file; heliostat generates its own and keeps them out of files"
        self.draft.lost(mark, f"services.{one.name}.{name}", text)

    def _ports(self, one: Service) -> None:
        ports = one.keys.take("ports", "any")
        if ports and isinstance(ports.value, Items):
            shown = ", ".join(str(plain(port)) for port in ports.value.items)
            text = (
                f"{shown}: nothing is published; `helio open` goes through a tunnel, `expose` opens a service"
            )
            self.draft.lost(ports.mark, ports.key, text)

    def _notebook(self, one: Service) -> None:
        key = f"services.{one.name}"
        said: dict[str, str] = {}
        build = one.keys.take("build", "any")
        if build:
            said["dockerfile"] = _dockerfile(build)
        elif one.image:
            said["image"] = one.image
        for source, _, mark in mounts(one.keys.take("volumes", "any")):
            if source.startswith((".", "~", "/")) and "work" not in said:
                said["work"] = source
            else:
                self.draft.lost(mark, f"{key}.volumes", f"{source}: the notebook has one folder, `work`")
        self.draft.put(("notebook",), said or True, one.mark, key)
        self._ports(one)
        self._environment(one, None)
        if one.command:
            self.draft.ours(
                one.command_mark, f"{key}.command", "JupyterLab is started with a token of its own"
            )
        one.keys.take("command", "any")
        self._rest(one)

    def _image(self, head: Service) -> None:
        build = head.keys.take("build", "any")
        if build:
            self.draft.put(("dockerfile",), _dockerfile(build), build.mark, build.key)
        elif head.image:
            self.draft.put(("image",), head.image, head.mark, f"services.{head.name}.image")
        else:
            self.log.add(head.mark, f"`services.{head.name}` has neither image nor build")

    def _workers(self, workers: Sequence[Service], head: Service) -> None:
        """Workers that are alike become one group; the others a group each."""
        drafts: list[tuple[Service, Draft, Gpu | None, int]] = []
        for one in workers:
            own = Draft(self.log, remarks=self.draft.remarks, fills=True)
            outer, self.draft = self.draft, own
            replicas = self._replicas(one)
            gpu = self._node(one, ("workers",), head)
            self.draft = outer
            drafts.append((one, own, gpu, replicas))
        if not drafts:
            self.draft.put(("workers",), "0", head.mark, "services")
            return
        groups = _alike(drafts)
        for members in groups:
            one, own, gpu, _ = members[0]
            path: Path = ("workers",) if len(groups) == 1 else ("workers", slug(one.name) or "worker")
            count = sum(member[3] for member in members)
            self.draft.put((*path, "count"), str(count), one.mark, f"services.{one.name}")
            for key, leaf in own.tree.get("workers", {}).items():
                self.draft.put((*path, key), leaf.value, leaf.mark, leaf.origin)
            devices = [device for member in members if member[2] for device in member[2].devices]
            self._gpus(path, gpu, devices, one)

    def _gpus(self, path: Path, gpu: Gpu | None, devices: Sequence[str], one: Service) -> None:
        if gpu is None:
            return
        had = self.draft.leaf((*path, "gpus"))
        if not gpu.count and not had:
            text = "all GPUs of the host; one is taken here, `gpus` says how many"
            self.draft.near(gpu.mark, f"services.{one.name}.deploy", text)
        count = had.value if had else str(gpu.count or 1)
        said: dict[str, object] = {"count": count, "vendor": gpu.vendor}
        if sorted(devices) != [str(number) for number in range(len(devices))]:
            said["devices"] = list(gpu.devices)
        else:
            text = f"devices {', '.join(devices)} are dealt out, {count} to each worker"
            self.draft.ours(gpu.mark, f"services.{one.name}", text if devices else "the GPUs are dealt out")
        self.draft.put((*path, "gpus"), said, gpu.mark, f"services.{one.name}")

    def _replicas(self, one: Service) -> int:
        deploy, scale = one.keys.reader("deploy"), one.keys.take("scale", "whole")
        replicas = deploy.take("replicas", "whole") if deploy else None
        if deploy:
            one.keys.left["deploy"] = (
                Scalar("deploy", deploy.mark),
                Table(tuple(deploy.left.values()), deploy.mark),
            )
        at = replicas or scale
        return int(at.value) if at else 1

    def _node(self, one: Service, path: Path, head: Service) -> Gpu | None:
        """What a node of Ray is: sizes, GPUs, volumes, variables, flags."""
        key = f"services.{one.name}"
        if one is not head and one.image and one.image != head.image:
            self.draft.put((*path, "image"), one.image, one.mark, f"{key}.image")
        if (size := one.keys.take("shm_size", "text")) and shm(size.value):
            self.draft.put((*path, "shm"), shm(size.value), size.mark, size.key)
        gpu = self._limits(one, path)
        for source, target, mark in mounts(one.keys.take("volumes", "any")):
            self._mount(source, target, mark, key, path)
        self._environment(one, path)
        self._ports(one)
        commands = [part.strip() for part in re.split(r"&&|;", one.command)]
        kept = "; ".join(part for part in commands if not _SETS_UP.match(part))
        start.read([Scalar(kept, one.command_mark)], f"{key}.command", path, self.draft, frozenset())
        self._rest(one)
        return gpu

    def _limits(self, one: Service, path: Path) -> Gpu | None:
        deploy = one.keys.reader("deploy")
        resources = deploy.reader("resources") if deploy else None
        limits = resources.reader("limits") if resources else None
        reserved = resources.reader("reservations") if resources else None
        memory = (limits.take("memory", "text") if limits else None) or one.keys.take("mem_limit", "text")
        cpus = (limits.take("cpus", "text") if limits else None) or one.keys.take("cpus", "text")
        if memory and shm(memory.value):
            self.draft.put((*path, "memory"), shm(memory.value), memory.mark, memory.key)
        if cpus:
            self.draft.put((*path, "cpus"), units.say_number(float(cpus.value)), cpus.mark, cpus.key)
        return gpus(one.keys, reserved)

    def _mount(self, source: str, target: str, mark: Mark, key: str, path: Path) -> None:
        if target.startswith("/tmp/ray"):  # noqa: S108 - read, not used
            self.draft.ours(
                mark, f"{key}.volumes", "heliostat keeps what Ray writes in a volume of the cluster's own"
            )
        elif not source:
            self.draft.lost(mark, f"{key}.volumes", f"{target}: a volume needs a name in `volumes`")
        else:
            self.draft.add((*path, "volumes"), {source: target}, mark, f"{key}.volumes")

    def _environment(self, one: Service, path: Path | None) -> None:
        stored = bool(self.of(Role.STORE))
        for name, value, mark in variables(one.keys.take("environment", "any")):
            key = f"services.{one.name}.environment.{name}"
            if _DEALT.fullmatch(name):
                self.draft.ours(mark, key, "set as devices are dealt out")
            elif _SHOWN.fullmatch(name):
                self.draft.ours(mark, key, "set by `observe`")
            elif stored and _STORE.fullmatch(name):
                self.draft.ours(mark, key, "jobs get the store's own address and generated keys")
            elif name in TAKEN or name.startswith("HELIO_"):
                self.draft.ours(mark, key, "set by heliostat")
            elif _SECRET.search(name):
                self._secret(name, mark, key)
            elif path is None:
                self.draft.lost(mark, key, "write it into `env`")
            else:
                self.draft.add((*path, "env"), {name: _filled(value)}, mark, key)

    def _secret(self, name: str, mark: Mark, key: str) -> None:
        had = self.draft.leaf(("secrets",))
        names = had.value if had else []
        if name not in names:
            self.draft.put(("secrets",), [*names, name], mark, key)
        text = "its value stays out of the file; put it into your environment or .env"
        self.draft.lost(mark, key, text)

    def _rest(self, one: Service) -> None:
        for at in list(one.keys.rest()):
            if at.path[-1] in _STARTED:
                self.draft.ours(at.mark, at.key, _SERVICE)
            elif at.path[-1] != "deploy":
                self.draft.lost(at.mark, at.key, "heliostat has nothing like it")

    def _left(self) -> None:
        """The top of the file."""
        used = {name for path in _volumes(self.draft) for name in path}
        volumes = self.top.take("volumes", "table")
        for name, part in volumes.value if volumes else ():
            if name.text in used:
                external = isinstance(part, Table) and part.get("external") is not None
                text = (
                    "it is there already, and is never removed" if external else "made when it is not there"
                )
                self.draft.ours(name.mark, f"volumes.{name.text}", text)
            else:
                self.draft.ours(
                    name.mark, f"volumes.{name.text}", "heliostat makes the volumes of its services itself"
                )
        for at in self.top.rest():
            if at.path[-1].startswith("x-"):  # read where it is merged in
                continue
            level = self.draft.ours if at.path[-1] in ("version", "networks") else self.draft.lost
            level(
                at.mark,
                at.key,
                _SERVICE if at.path[-1] in ("version", "networks") else "heliostat has nothing like it",
            )


def _dockerfile(build: At) -> str:
    if isinstance(build.value, Scalar):
        return f"{build.value.text.rstrip('/')}/Dockerfile"
    parts = {key.text: part.text for key, part in build.value if isinstance(part, Scalar)}
    return f"{parts.get('context', '.').rstrip('/')}/{parts.get('dockerfile', 'Dockerfile')}"


def _filled(value: str) -> str:
    """Compose's variables as ours: braces always, and one form of default."""
    braced = re.sub(r"(?<!\$)\$([A-Za-z_]\w*)", r"${\1}", value)
    return re.sub(
        r"\$\{(\w+)(?:(-)|:?[?][^}]*)", lambda found: f"${{{found[1]}{':-' if found[2] else ''}", braced
    )


def _alike(
    drafts: Sequence[tuple[Service, Draft, Gpu | None, int]],
) -> list[list[tuple[Service, Draft, Gpu | None, int]]]:
    """Workers that say the same, GPUs' numbers aside, when those are the first of the host."""
    groups: dict[str, list[tuple[Service, Draft, Gpu | None, int]]] = {}
    devices = sorted(device for _, _, gpu, _ in drafts if gpu for device in gpu.devices)
    dealt = devices == [str(number) for number in range(len(devices))]
    for member in drafts:
        _, own, gpu, _ = member
        said = {key: leaf.value for key, leaf in own.tree.get("workers", {}).items()}
        card = replace(gpu, mark=Mark(""), devices=() if dealt else gpu.devices) if gpu else None
        groups.setdefault(repr((said, card)), []).append(member)
    return list(groups.values())


def _volumes(draft: Draft) -> list[dict[str, str]]:
    """Every `volumes` of the draft."""
    found: list[dict[str, str]] = []
    branches = [draft.tree]
    while branches:
        for key, part in branches.pop().items():
            if isinstance(part, dict):
                branches.append(part)
            elif key == "volumes":
                found.append(part.value)
    return found
