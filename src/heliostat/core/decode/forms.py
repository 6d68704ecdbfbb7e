"""The forms that texts of the file must have: names, versions, paths, addresses."""

from __future__ import annotations

import re

from heliostat.core.decode.kinds import Text
from heliostat.core.decode.log import nearest
from heliostat.core.units import Malformed

# What heliostat itself tells `ray start`, and the key to use instead.
OURS = {
    "--head": "head",
    "--address": "",
    "--block": "",
    "--node-ip-address": "",
    "--temp-dir": "",
    "--num-cpus": "cpus",
    "--num-gpus": "gpus",
    "--memory": "memory",
    "--resources": "resources",
    "--labels": "labels",
    "--labels-file": "labels",
    "--node-name": "",
    "--dashboard-host": "expose",
    "--autoscaling-config": "workers",
    "--object-store-memory": "shm",
    "--include-dashboard": "",
    "--port": "",
    "--dashboard-port": "",
    "--dashboard-agent-listen-port": "",
    "--dashboard-agent-grpc-port": "",
    "--runtime-env-agent-port": "",
    "--metrics-export-port": "",
    "--ray-client-server-port": "",
}
# What a job finds is set by heliostat, so a file that sets it would be overruled in silence.
TAKEN = ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


def slug(text: str) -> str:
    """Turn any text into a valid name as near to it as can be.

    >>> slug("My Cluster_1")
    'my-cluster-1'
    """
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return plain[:40].rstrip("-") if plain[:1].isalpha() else f"c-{plain}"[:40].rstrip("-") if plain else ""


def _version(text: str) -> str:
    # `2.60` is the release 2.60.0, never the number 2.6.
    return f"{text}.0" if re.fullmatch(r"[0-9]+\.[0-9]+", text) else text


def _extra_flag(text: str) -> str:
    flag = text.partition("=")[0]
    if flag in OURS:
        key = OURS[flag]
        raise Malformed(f"may not have {flag}: heliostat sets it", f"the key `{key}`" if key else "")
    return text


def _job_variable(text: str) -> str:
    if text.startswith("HELIO_") or text in TAKEN:
        raise Malformed(f"may not have {text}: heliostat sets it")
    return text


def _inside(text: str) -> str:
    if text.startswith(("/", "~")) or ".." in text.split("/"):
        raise Malformed("wants paths inside the run's own folder: relative ones, without `..`")
    return text


def _secret(text: str) -> str:
    if re.fullmatch(SECRET, text):
        return text
    # The text may be the password itself: it is not repeated.
    raise Malformed("wants secret:NAME, never the password itself; put that into the environment or .env")


def _secret_name(text: str) -> str:
    if re.fullmatch(VARIABLE_NAME, text):
        return _job_variable(text)
    raise Malformed("wants names such as HF_TOKEN, never values; put those into the environment or .env")


def _storage_hint(text: str) -> str:
    scheme, marks, rest = text.partition("://")
    meant = {"gcs": "gs", "abfss": "abfs", "azure": "az", "s3a": "s3", "s3n": "s3", "minio": "s3"}.get(scheme)
    if marks:
        return f"{meant}://{rest}" if meant else ""
    return f"file://{text}" if text.startswith("/") else nearest(text, ["embedded"])


def _network_hint(text: str) -> str:
    return f"{text}/32" if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", text) else ""


NAME = r"[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?"
VARIABLE_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
VERSION = r"[0-9]+\.[0-9]+(?:\.[0-9]+)?(?:(?:rc|a|b)[0-9]+)?(?:\.(?:dev|post)[0-9]+)?"
PYTHON = r"3\.[0-9]+(?:\.[0-9]+)?|[~.]?[^\s]*/[^\s]+"
SECRET = rf"secret:{VARIABLE_NAME}"
STORAGE = r"embedded|(?:s3|gs|az|abfs)://[^/\s]+(?:/\S*)?|file:///\S*"
CIDR = r"[0-9]+(?:\.[0-9]+){3}/[0-9]+|[0-9a-fA-F:]*:[0-9a-fA-F:]*/[0-9]+"

any_text = Text(empty=True)
text = Text()
name = Text("a name of lower-case letters, digits and hyphens, at most 40", NAME, hint=slug)
group_name = Text("lower-case letters, digits and hyphens, at most 40", NAME, hint=slug)
version = Text("a version such as 2.60.0", VERSION, check=_version)
python = Text("a version such as 3.11, or a path to an interpreter on the nodes", PYTHON)
image = Text("an image such as rayproject/ray:2.60.0-py311", r"\S+")
path = Text("a path")
remote = Text("an absolute path on the nodes, or one that starts with ~/", r"(?:/|~/).*")
mount = Text("an absolute path to mount it at", r"/.*")
output = Text("a path inside the run's own folder", check=_inside)
variable = Text("a variable's name such as OMP_NUM_THREADS", VARIABLE_NAME, check=_job_variable)
secret = Text("secret:NAME", SECRET, check=_secret)
secret_name = Text("a name such as HF_TOKEN", VARIABLE_NAME, check=_secret_name)
storage = Text(
    "an address such as s3://bucket/prefix (gs://, az://, abfs://, file:///), or embedded",
    STORAGE,
    hint=_storage_hint,
)
network = Text("a network such as 10.0.0.0/8", CIDR, hint=_network_hint)
start_arg = Text("flags of `ray start`", check=_extra_flag)
address = Text("an address such as http://proxy:3128", r"[a-z][a-z0-9+.-]*://\S+")
