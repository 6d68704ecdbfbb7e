"""The keys at the top of the file: decoder, encoder, JSON Schema and docs/file.md come from this table."""

from __future__ import annotations

from heliostat.core.decode import forms
from heliostat.core.decode.cluster_kinds import DOCKER, LOGIN, NOTEBOOK, OBSERVE
from heliostat.core.decode.kinds import Choice, Flag, Text, limit, money
from heliostat.core.decode.log import Bad, Path
from heliostat.core.decode.node_fields import NODE, WORKERS
from heliostat.core.decode.shapes import Field, ListOf, MapOf, Record
from heliostat.core.decode.site_fields import SITE_FIELDS
from heliostat.core.decode.tree import Scalar
from heliostat.core.spec import GROUNDS, Spec

SERVICES = ("dashboard", "grafana", "prometheus", "notebook", "storage")


_COMMANDS = ListOf(Text("a command"), "a list of commands")
_WHERE = Choice(
    *GROUNDS,
    known={
        "gcp": "gce",
        "google": "gce",
        "aws": "ec2",
        "amazon": "ec2",
        "az": "azure",
        "k8s": "kubernetes",
        "kube": "kubernetes",
        "kuberay": "kubernetes",
        "docker": "compose",
        "docker_compose": "compose",
        "localhost": "local",
        "onprem": "ssh",
    },
)

TOP_FIELDS = (
    Field(
        "cluster",
        forms.name,
        "The cluster's name. The only key that a file must have.",
        example="gcd-tuning",
        needed=True,
    ),
    Field("where", _WHERE, "The place where the cluster stands.", "local", "gce"),
    Field(
        "ray",
        forms.version,
        "The release of Ray on the nodes; 2.52 or newer, because of its token.",
        "the release that this heliostat was verified with, or what `image` has",
        '"2.60.0"',
    ),
    Field(
        "python",
        forms.python,
        "The Python on the nodes: a version, made there if need be, or a path to an interpreter.",
        "the version that you use here",
        '"3.11"',
    ),
    Field(
        "image",
        forms.image,
        "Nodes work in containers of this image; `ray` is read from it.",
        "no containers",
        "rayproject/ray:2.60.0-py311",
    ),
    Field(
        "dockerfile", forms.path, "The image is built from this instead of pulled.", example="./Dockerfile"
    ),
    Field("docker", DOCKER, "How images are pulled and containers run.", example="{ pull: always }"),
    Field(
        "registry",
        MapOf(Text("a registry"), LOGIN),
        "How to sign in to private registries; never reaches jobs.",
        example="{ ghcr.io: { user: me, password: secret:GHCR_TOKEN } }",
    ),
    Field(
        "head",
        NODE,
        "The node that carries Ray's own services, and runs tasks unless it has `cpus: 0`.",
        "like a worker",
        "{ machine: n2-standard-4 }",
    ),
    Field(
        "workers",
        WORKERS,
        "The other nodes: a number, a range, one group, or several groups by name.",
        "by place, see below",
        "3",
    ),
    Field(
        "work",
        forms.path,
        "The folder that `run` sends, without what .gitignore and .helioignore name.",
        "the file's own folder",
        ".",
    ),
    Field(
        "files",
        MapOf(forms.remote, forms.path),
        "Files and folders for every node: path there, path here.",
        example="{ /data/config: ./config }",
    ),
    Field(
        "outputs",
        ListOf(forms.output, "a list of paths"),
        "What is fetched to ./outputs/<run>/ after each run, also after one that failed.",
        example="[ results/ ]",
    ),
    Field(
        "volumes",
        MapOf(forms.path, forms.mount),
        "Volumes or host folders, and where they are mounted; existing ones are never removed.",
        example="{ food11: /mnt }",
    ),
    Field(
        "setup",
        _COMMANDS,
        "Commands that make a node ready, in its Python or container.",
        example='[ "uv pip install -r requirements.txt" ]',
    ),
    Field(
        "host_setup",
        _COMMANDS,
        "Commands on the host itself, before any container.",
        example='[ "sudo modprobe fuse" ]',
    ),
    Field(
        "env",
        MapOf(forms.variable, forms.any_text),
        "Variables of every job.",
        example="{ OMP_NUM_THREADS: 1 }",
    ),
    Field(
        "secrets",
        ListOf(forms.secret_name, "a list of names"),
        "Names of variables that only jobs get; values come from your environment or .env.",
        example="[ HF_TOKEN ]",
    ),
    Field(
        "secrets_from",
        forms.path,
        "A file of NAME=value lines with secrets.",
        ".env, if there is one",
        "./team.env",
    ),
    Field(
        "storage",
        forms.storage,
        "Where jobs keep what must last; `embedded` is a store of the cluster's own.",
        example="s3://bucket/prefix",
    ),
    Field("observe", OBSERVE, "Prometheus and Grafana with Ray's own dashboards.", "false", "true"),
    Field("notebook", NOTEBOOK, "JupyterLab beside the cluster, wired to it.", "false", "true"),
    Field(
        "expose",
        MapOf(Choice(*SERVICES), forms.network),
        "Which networks may reach a service without a tunnel.",
        "nothing",
        "{ dashboard: 10.0.0.0/8 }",
    ),
    Field(
        "idle", limit(), "The whole cluster ends after that much idleness.", "by place, see below", "30 min"
    ),
    Field(
        "lifetime",
        limit(),
        "And by then in any case, whether your laptop is on or not.",
        "by place, see below",
        "8 h",
    ),
    Field(
        "budget",
        money(),
        "The cluster ends before it has cost more. Needs known prices, or `price`.",
        "none",
        "20 USD",
    ),
    Field(
        "auth",
        Choice("token", "network-only", known={"none": "network-only"}),
        "Who may use the cluster: who has its token, or whoever reaches its network.",
        "token",
        "network-only",
    ),
    Field(
        "tls",
        Flag(),
        "Whether nodes speak to one another by TLS, with the cluster's own authority.",
        "false",
        "true",
    ),
    Field(
        "tags",
        MapOf(Text("a tag"), forms.any_text),
        "Tags on everything that is made, for your bills.",
        example='{ cost-center: "42" }',
    ),
    Field(
        "proxy", forms.address, "The proxy for everything that nodes download.", "none", "http://proxy:3128"
    ),
    Field(
        "mirrors",
        MapOf(Choice("pypi", "python", "images", "apt"), Text("an address")),
        "Where nodes download from instead.",
        "the usual places",
        "{ pypi: https://mirror.lab/simple }",
    ),
    *SITE_FIELDS,
)

# What Ray's launcher, Compose, Kubernetes and SkyPilot call these keys.
_KNOWN = {
    "cluster_name": "cluster",
    "name": "cluster",
    "provider": "where",
    "place": "where",
    "cloud": "where",
    "ray_version": "ray",
    "python_version": "python",
    "head_node": "head",
    "head_node_type": "head",
    "worker": "workers",
    "nodes": "workers",
    "num_workers": "workers",
    "max_workers": "workers",
    "min_workers": "workers",
    "available_node_types": "workers",
    "workdir": "work",
    "working_dir": "work",
    "file_mounts": "files",
    "setup_commands": "setup",
    "initialization_commands": "host_setup",
    "environment": "env",
    "env_vars": "env",
    "env_file": "secrets_from",
    "dotenv": "secrets_from",
    "idle_timeout_minutes": "idle",
    "idle_timeout": "idle",
    "autostop": "idle",
    "timeout": "lifetime",
    "max_price": "budget",
    "monitoring": "observe",
    "jupyter": "notebook",
    "docker_image": "image",
    "container": "image",
    "k8s": "kubernetes",
    "gcp": "gce",
    "aws": "ec2",
    "ports": "expose",
    "password": "registry",
    "labels": "tags",
}


class _Top(Record[Spec]):
    """The whole file: an unknown key may be a known one in the wrong place."""

    def unknown(self, key: Scalar, path: Path) -> Bad:
        bad = super().unknown(key, path)
        homes = [field.key for field in self.fields if key.text in getattr(field.kind, "by_key", {})]
        if key.text in WORKERS.group.by_key:
            homes = [home for home in ("head", "workers") if home in homes or home == "workers"]
        if homes:
            bad.text += f"; it belongs into {' or '.join(f'`{home}`' for home in homes)}"
            bad.nearest = ""
        return bad


TOP = _Top(Spec, TOP_FIELDS, known=_KNOWN)
