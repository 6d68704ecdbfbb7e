"""What the cluster of containers is, and what is run on it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from tests.machine import Machine
from tests.rig.docker import LAB_IMAGE, RAY_IMAGE, Engine

FILE = f"""\
cluster: box
where: compose
image: {RAY_IMAGE}
docker: {{ pull: never }}
head: {{ cpus: 1, shm: 200 MB }}
workers: {{ count: 2, cpus: 1, shm: 200 MB }}
volumes: {{ food11: /mnt, mine: "/mine" }}
observe: {{ prometheus: true, grafana: false }}
storage: embedded
notebook: {{ image: {LAB_IMAGE} }}
secrets: [ BOX_SECRET ]
setup: [ "echo prepared >/opt/prepared" ]
"""
HELLO = """\
import os, socket
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

ray.init(log_to_driver=False)

@ray.remote(num_cpus=1)
def where():
    return socket.gethostname(), open("/opt/prepared").read().strip(), len(os.environ["BOX_SECRET"])

nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
print(*sorted(ray.get([where.options(scheduling_strategy=On(one, soft=False)).remote() for one in nodes])))
open("/mine/left", "w").write("by a job")
"""
STORED = """\
import os
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
# The first job by helio, the second by Ray's own command, the third by a driver in the cell.
CELL = """\
!helio run --no-work -- sh -c 'echo sent by $HELIO_RUN'
!ray job submit -- python -c 'print(6 * 7)'
import ray
print(f"{ray.init().address_info and len(ray.nodes())} nodes")
"""
NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "id": "a1",
            "metadata": {},
            "source": CELL,
            "outputs": [],
            "execution_count": None,
        }
    ],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
SECRET = "a-word-that-nobody-else-has"


def of_ours(engine: Engine, kind: str) -> list[str]:
    return engine.docker(kind, "ls", "-q", "--filter", "label=heliostat.kind").split()


@contextmanager
def opened(box: Machine, what: str) -> Iterator[str]:
    """`helio open`, as long as the context: the address that it shows."""
    import json
    import signal

    words = [sys.executable, "-m", "heliostat", "open", what, "--no-browser", "--json"]
    with subprocess.Popen(words, cwd=box.folder, env=box.env, stdout=subprocess.PIPE, text=True) as door:
        try:
            out: IO[str] | None = door.stdout
            assert out is not None
            yield json.loads(out.readline())["url"]
        finally:
            door.send_signal(signal.SIGINT)
            door.wait(30)
