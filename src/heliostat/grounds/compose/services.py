"""What stands beside Ray: a service for each that the file asks for; their images are named here. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from heliostat.core.names import nodes_of
from heliostat.core.resource import HEAD, Resource
from heliostat.core.spec import Spec
from heliostat.grounds.compose import entry
from heliostat.grounds.compose.beside import Beside, resource_of
from heliostat.grounds.compose.service import PORTS
from heliostat.grounds.compose.want import VOLUME

PROMETHEUS, GRAFANA, STORAGE = "prometheus", "grafana", "storage"
BOARDS = "dashboards"  # the volume through which Grafana gets the dashboards that Ray itself writes
BOARDS_AT = f"{entry.HOME}/metrics"
KEYS = "keys"  # the volume through which the store gets the credentials that a node has made
BUCKET, S3_PORT = "helio", 8333
EMBEDDED = "embedded"
SCRAPE = 5  # seconds between two looks at a node


def beside(spec: Spec) -> Iterator[Beside]:
    """Every service that the file asks for."""
    if spec.observe.prometheus:
        yield prometheus(spec)
    if spec.observe.grafana:
        yield grafana()
    if spec.storage == EMBEDDED:
        yield storage()
    if spec.notebook is not None:
        from heliostat.grounds.compose.notebook import notebook

        yield notebook(spec, spec.notebook)
    if spec.expose:
        from heliostat.grounds.compose.expose import door

        yield door(spec)


def resources(spec: Spec) -> Iterator[Resource]:
    """A volume, where it needs one, and a container for each."""
    tags = {"tags": dict(spec.tags)}
    if spec.observe.grafana:
        yield Resource(kind=VOLUME, key=BOARDS, text="a volume for Ray's dashboards", body=tags)
    if spec.storage == EMBEDDED:
        yield Resource(kind=VOLUME, key=KEYS, text="a volume for the store's credentials", body=tags)
    for one in beside(spec):
        if one.volume:
            text = f"a volume for {one.key}"
            yield Resource(kind=VOLUME, key=one.key, text=text, body=tags, data=one.key == STORAGE)
        yield resource_of(one, spec)


def prometheus(spec: Spec) -> Beside:
    """It counts as healthy once it gets figures from every node."""
    targets = [f"{name}:{PORTS['metrics']}" for name, _, _ in nodes_of(spec)]
    targets += [f"{HEAD}:{PORTS['autoscaler_metrics']}", f"{HEAD}:{PORTS['dashboard_metrics']}"]
    config = {
        "global": {"scrape_interval": f"{SCRAPE}s", "evaluation_interval": f"{SCRAPE}s"},
        "scrape_configs": [{"job_name": "ray", "static_configs": [{"targets": targets}]}],
    }
    query = f'count(up{{job="ray"}} == 1) == {len(targets)}'
    return Beside(
        key=PROMETHEUS,
        image="prom/prometheus:v2.53.5",
        port=9090,
        argv=(
            "/bin/prometheus",
            "--config.file=/etc/heliostat/prometheus.yml",
            "--storage.tsdb.path=/prometheus",
            f"--storage.tsdb.retention.time={max(1, int(spec.observe.retention))}s",
        ),
        volume="/prometheus",
        healthy=f"test -n \"$(promtool query instant http://127.0.0.1:9090 '{query}')\"",
        text=f"Prometheus, with figures from {len(targets)} places",
        files={"/etc/heliostat/prometheus.yml": yaml.safe_dump(config, sort_keys=False)},
    )


_SOURCE = {
    "apiVersion": 1,
    "datasources": [
        {"name": "Prometheus", "type": "prometheus", "access": "proxy", "isDefault": True,
         "url": f"http://{PROMETHEUS}:9090"}
    ],
}  # fmt: skip
_PROVIDER = {
    "apiVersion": 1,
    "providers": [
        {
            "name": "Ray",
            "folder": "Ray",
            "type": "file",
            "options": {"path": f"{BOARDS_AT}/grafana/dashboards"},
        }
    ],
}
PASSWORD = "/var/lib/grafana/helio-password"  # noqa: S105  (where it is, not what)


def grafana() -> Beside:
    """With a password that it makes itself, in its own volume; nobody gets in without it."""
    make = f"umask 077; test -s {PASSWORD} || head -c 24 /dev/urandom | base64 >{PASSWORD}; exec /run.sh"
    return Beside(
        key=GRAFANA,
        image="grafana/grafana:11.6.0",
        port=3000,
        argv=("/bin/sh", "-c", make),
        volume="/var/lib/grafana",
        healthy='wget -q -O- http://127.0.0.1:3000/api/health | grep -q \'"database": *"ok"\'',
        text="Grafana, with Ray's own dashboards",
        files={
            "/etc/grafana/provisioning/datasources/ray.yml": yaml.safe_dump(_SOURCE, sort_keys=False),
            "/etc/grafana/provisioning/dashboards/ray.yml": yaml.safe_dump(_PROVIDER, sort_keys=False),
        },
        env={
            "GF_SECURITY_ADMIN_PASSWORD__FILE": PASSWORD,
            "GF_USERS_ALLOW_SIGN_UP": "false",
            "GF_AUTH_ANONYMOUS_ENABLED": "false",
            "GF_ANALYTICS_REPORTING_ENABLED": "false",
            "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
            "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
            "GF_NEWS_NEWS_FEED_ENABLED": "false",
            "GF_SECURITY_DISABLE_GRAVATAR": "true",
        },
        reads={BOARDS: BOARDS_AT},
        user="0:0",  # what Ray writes, only its own account may read
    )


# The parts of the store that know no credentials listen inside their own container alone. It is ready once
# the bucket takes a file: its first space on the disk is made a moment after the bucket.
_STORE = f"""
rm -f /tmp/ready
until test -s /keys/s3.json; do sleep 0.2; done
say() {{ echo "$1" | weed shell -master=127.0.0.1:9333 2>/dev/null; }}
(
    until say s3.bucket.list | grep -qw {BUCKET}; do
        say 's3.bucket.create -name {BUCKET}' >/dev/null
        sleep 0.3
    done
    echo first >/tmp/first
    until weed filer.copy /tmp/first http://127.0.0.1:8888/buckets/{BUCKET}/ >/dev/null 2>&1; do
        sleep 0.3
    done
    say 'fs.rm /buckets/{BUCKET}/first' >/dev/null
    touch /tmp/ready
) &
exec weed server -dir=/data -ip=127.0.0.1 -ip.bind=127.0.0.1 -volume.max=0 -master.telemetry=false \\
    -s3 -s3.ip.bind=0.0.0.0 -s3.port={S3_PORT} -s3.config=/keys/s3.json
"""


def storage() -> Beside:
    """An S3 store with one bucket, and credentials that a node makes."""
    return Beside(
        key=STORAGE,
        image="chrislusf/seaweedfs:4.48",
        port=S3_PORT,
        argv=("/bin/sh", "-c", _STORE.strip()),
        volume="/data",
        healthy="test -e /tmp/ready",
        text=f"an S3 store, with the bucket {BUCKET}",
        reads={KEYS: "/keys"},
        user="0:0",  # the credentials may be read by their account alone
    )


def variables(spec: Spec) -> dict[str, str]:
    """What the head must know of them, so that its dashboard shows figures."""
    if not spec.observe.prometheus:
        return {}
    told = {
        "RAY_PROMETHEUS_HOST": f"http://{PROMETHEUS}:9090",
        "RAY_PROMETHEUS_NAME": "Prometheus",
        "RAY_METRICS_OUTPUT_ROOT": BOARDS_AT,
    }
    return told | ({"RAY_GRAFANA_HOST": f"http://{GRAFANA}:3000"} if spec.observe.grafana else {})


def volumes_of(spec: Spec, *, head: bool) -> dict[str, str]:
    """Where a node leaves what they read."""
    boards = {BOARDS: BOARDS_AT} if spec.observe.grafana and head else {}
    return {**boards, **({KEYS: entry.KEYS} if spec.storage == EMBEDDED else {})}


def store(spec: Spec) -> dict[str, str]:
    """What a node must know to use the store; empty without one."""
    if spec.storage != EMBEDDED:
        return {}
    return {"endpoint": f"http://{STORAGE}:{S3_PORT}", "url": f"s3://{BUCKET}"}
