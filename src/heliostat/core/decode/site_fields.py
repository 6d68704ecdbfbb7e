"""The keys that belong to one place each: ssh, compose, kubernetes, gce, azure, ec2."""

from __future__ import annotations

from heliostat.core.decode import forms
from heliostat.core.decode.free import Free
from heliostat.core.decode.kinds import Choice, Flag, Text
from heliostat.core.decode.shapes import Field, ListOf, MapOf, Record
from heliostat.core.spec import AzureSite, ComposeSite, Ec2Site, GceSite, KubernetesSite, Network, SshSite

_SUBNET = Field("subnet", Text(), "The subnet in which the nodes stand.", "the default one", "ray-subnet")
_PUBLIC = Field("public_ip", Flag(), "Whether nodes get public addresses.", "by place, see below", "false")
_VPC = Field("vpc", Text(), "The network in which the nodes stand.", "the default one", "lab-net")
_VNET = Field(
    "vnet", Text(), "The virtual network in which the nodes stand.", "one of the cluster's own", "lab-net"
)
_ZONES = Field(
    "zones",
    ListOf(Text("a zone")),
    "Where nodes may stand, in order of preference.",
    "all of the region",
    "[us-west1-a, us-west1-b]",
    also="zone",
)


def _network(*fields: Field) -> Field:
    return Field(
        "network",
        Record(Network, fields),
        "An existing network to use.",
        "the default one",
        "{ public_ip: false }",
    )


SSH = Record(
    SshSite,
    (
        Field(
            "hosts",
            ListOf(Text("a host")),
            "The hosts, by name or pattern; with a `/` in it, a file of such lines.",
            example='["node[01-16].lab"]',
        ),
        Field("user", Text(), "Who logs in.", "as ~/.ssh/config says", "me"),
        Field("head", Text("a host"), "Which host carries the head.", "the first", "node01.lab"),
        Field(
            "key",
            forms.path,
            "The private key; it never leaves this machine.",
            "as ~/.ssh/config says",
            "~/.ssh/id",
        ),
        Field("jump", Text("a host"), "A host to go through.", "as ~/.ssh/config says", "gate"),
    ),
)

COMPOSE = Record(
    ComposeSite,
    (Field("context", Text(), "The Docker context to use.", "the current one", "gpu-box"),),
)

KUBERNETES = Record(
    KubernetesSite,
    (
        Field("namespace", Text(), "The namespace.", "the context's own", "s123"),
        Field("context", Text(), "The context of your kubeconfig.", "the current one", "lab"),
        Field(
            "mode",
            Choice("auto", "plain", "kuberay"),
            "Who makes the pods: KubeRay's operator, or heliostat itself.",
            "auto: KubeRay where it is installed",
            "plain",
        ),
        Field(
            "requests",
            MapOf(Text(), forms.any_text),
            "What pods request, where that differs from what they may use.",
            example="{ cpu: 100m }",
        ),
        Field(
            "template",
            Free(),
            "Anything else of a pod, laid over what heliostat makes.",
            example="{ spec: { priorityClassName: low } }",
        ),
    ),
)

GCE = Record(
    GceSite,
    (
        Field("project", Text(), "The project.", "the one of your gcloud configuration", "my-project"),
        _ZONES,
        Field(
            "service_account",
            Text(),
            "The service account that nodes run as.",
            "one without any rights",
            "ray@my-project.iam.gserviceaccount.com",
        ),
        _network(_VPC, _SUBNET, _PUBLIC),
    ),
    known={"project_id": "project", "availability_zone": "zones"},
)

AZURE = Record(
    AzureSite,
    (
        Field(
            "subscription",
            Text(),
            "The subscription.",
            "the one of `az account show`",
            "00000000-0000-0000-0000-000000000000",
        ),
        Field("resource_group", Text(), "The resource group.", "one of the cluster's own", "lab-rg"),
        Field("location", Text(), "The location.", example="uksouth"),
        _network(_VNET, _SUBNET, _PUBLIC),
        Field("identity", Text(), "The managed identity that nodes run as.", "none", "ray-nodes"),
    ),
    known={"subscription_id": "subscription", "region": "location"},
)

EC2 = Record(
    Ec2Site,
    (
        Field("region", Text(), "The region.", "the one of your AWS configuration", "eu-west-1"),
        _ZONES,
        _network(_VPC, _SUBNET, _PUBLIC),
    ),
    known={"availability_zone": "zones"},
)

_DOC = "Only for `where: {}`."
SITE_FIELDS = tuple(
    Field(key, kind, _DOC.format(key))
    for key, kind in (
        ("ssh", SSH),
        ("compose", COMPOSE),
        ("kubernetes", KUBERNETES),
        ("gce", GCE),
        ("azure", AZURE),
        ("ec2", EC2),
    )
)
