"""What a command on a node finds in its environment, so that Ray's own commands find the cluster."""

from __future__ import annotations

import posixpath

from heliostat.core.downloads import download_env, near
from heliostat.core.names import group_of, nodes_of
from heliostat.core.resource import Ref
from heliostat.core.spec import Spec

LOOPBACK = ("127.", "localhost:", "[::1]:")


def surroundings(spec: Spec, ref: Ref, head: Ref | None) -> dict[str, str]:
    """The file's `env`, the way to Ray, and where the token lies on that node: a path, so no secret."""
    group = group_of(ref.key)  # the autoscaler's nodes are in no file, their groups are
    own = next((node.env for name, node, _ in nodes_of(spec) if group_of(name) == group), {})
    gcs = head.facts.get("gcs", "") if head else ""
    downloads = download_env(spec)
    if spec.proxy:
        downloads |= near(gcs.rpartition(":")[0], *(one.facts.get("host", "") for one in (head, ref) if one))
    env = {"RAY_USAGE_STATS_ENABLED": "0", **downloads, **spec.env, **own, "HELIO_CLUSTER": spec.cluster}
    if head is None:
        return env
    if gcs:
        env["RAY_ADDRESS"] = gcs
        if gcs.startswith(LOOPBACK):  # else Ray makes the host's address of it, where nothing of ours listens
            env["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    token = head.facts.get("token_path")
    if token is None:
        return {**env, "RAY_AUTH_MODE": "disabled"}
    below = posixpath.relpath(token, head.facts["home"])  # every node has it at the same place in its home
    path = posixpath.join(ref.facts["home"], below)
    return {**env, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": path}
