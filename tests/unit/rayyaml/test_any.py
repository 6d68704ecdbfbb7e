"""Any file made of supported keys: accepted, and what convert writes means the same."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.rayyaml.support import converted, spec

names = st.from_regex(r"[a-z][a-z0-9._]{0,10}", fullmatch=True)
labels = st.from_regex(r"[a-z]([a-z0-9._]{0,9}[a-z0-9])?", fullmatch=True)  # as Ray wants them
texts = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=30).filter(
    str.strip
)
commands = st.lists(
    st.one_of(
        texts,
        st.sampled_from(["pip install ray==2.55.0 numpy", "which ray || pip install -U ray", "ray stop"]),
    ),
    max_size=3,
)
starts = st.lists(
    st.sampled_from(
        ["ray stop", "ray start --head --num-cpus=2", "A=1 ray start --min-worker-port=2", "./other"]
    ),
    max_size=2,
)
resources = st.fixed_dictionaries({}, optional={
    "CPU": st.integers(0, 64), "GPU": st.integers(0, 8), "fast": st.integers(1, 9),
    "memory": st.just(8 * 10**9), "object_store_memory": st.just(10**9),
})  # fmt: skip
everywhere = {
    "idle_timeout_minutes": st.integers(0, 90),
    "upscaling_speed": st.sampled_from([1.0, 2.0]),
    "file_mounts": st.dictionaries(names.map("/data/{}".format), names.map("./{}".format), max_size=2),
    "cluster_synced_files": st.lists(names, max_size=1),
    "rsync_exclude": st.lists(st.sampled_from(["**/.git", "*.log"]), max_size=2),
    "rsync_filter": st.just([".gitignore"]),
    "metadata": st.dictionaries(names, names, max_size=1),
    "initialization_commands": commands,
    "setup_commands": commands,
    "head_setup_commands": commands,
    "worker_setup_commands": commands,
    "head_start_ray_commands": starts,
    "worker_start_ray_commands": starts,
    "max_workers": st.integers(0, 9),
    "auth": st.fixed_dictionaries({}, optional={
        "ssh_user": names, "ssh_private_key": names, "ssh_proxy_command": texts,
    }),
    "docker": st.fixed_dictionaries({}, optional={
        "image": st.just("lab/x:1"), "worker_image": st.just("lab/y:1"), "container_name": names,
        "pull_before_run": st.booleans(), "use_podman": st.booleans(),
        "run_options": st.lists(texts, max_size=2),
    }),
}  # fmt: skip
node = st.fixed_dictionaries(
    {"node_config": st.fixed_dictionaries({}, optional={"machineType": names, "other": names})},
    optional={"resources": resources, "max_workers": st.integers(0, 5), "idle_timeout_s": st.integers(0, 90),
              "labels": st.dictionaries(labels, labels, max_size=2), "worker_setup_commands": commands},
)  # fmt: skip


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    whole = draw(st.fixed_dictionaries({"cluster_name": names}, optional=everywhere))
    if draw(st.booleans()):
        ips = draw(st.lists(names, max_size=4, unique=True))
        return {**whole, "provider": {"type": "local", "head_ip": "head-host", "worker_ips": ips}}
    whole["provider"] = {"type": "gcp", "project_id": draw(names), "availability_zone": "us-west1-a"}
    if draw(st.booleans()):
        types = draw(st.dictionaries(names, node, min_size=1, max_size=3))
        whole |= {"available_node_types": types, "head_node_type": next(iter(types))}
    return whole


@settings(deadline=None, max_examples=40)
@given(files())
def test_what_convert_writes_means_what_was_read(whole: dict[str, Any]) -> None:
    text = yaml.safe_dump(whole, sort_keys=False)
    assert spec(converted(text).text) == spec(text)
