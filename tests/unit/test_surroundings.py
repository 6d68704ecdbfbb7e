"""What a command on a node finds: the way to Ray, the token as a path of that node, the file's own."""

from __future__ import annotations

from heliostat.core.owner import Owner
from heliostat.core.resource import NODE, Ref
from heliostat.core.spec import Count, Group, Node, Spec
from heliostat.ray.surroundings import surroundings

GPU = Group(name="gpu", count=Count(low=1, high=3), node=Node(env={"A": "group"}))
SPEC = Spec(cluster="demo", env={"A": "file"}, workers=(GPU,))


def node(key: str, **facts: str) -> Ref:
    return Ref(kind=NODE, key=key, id=key, owner=Owner("me", "demo"), facts=facts)


HEAD = node("head", home="/h/demo", gcs="10.0.0.5:6379", token_path="/h/demo/token")


def test_the_head_is_found_with_its_token() -> None:
    assert surroundings(SPEC, HEAD, HEAD) == {
        "A": "file",
        "HELIO_CLUSTER": "demo",
        "RAY_ADDRESS": "10.0.0.5:6379",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": "/h/demo/token",
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def test_a_worker_has_its_groups_env_and_the_token_in_its_own_home() -> None:
    for name in ("gpu-1", "gpu-3"):
        env = surroundings(SPEC, node(name, home="/elsewhere/demo"), HEAD)
        assert (env["A"], env["RAY_AUTH_TOKEN_PATH"]) == ("group", "/elsewhere/demo/token"), name


def test_on_loopback_ray_is_told_to_leave_the_address_alone() -> None:
    local = node("head", home="/h", gcs="127.0.0.1:6379", token_path="/h/token")
    assert surroundings(SPEC, local, local)["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
    assert "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" not in surroundings(SPEC, HEAD, HEAD)


def test_without_a_token_a_stray_one_of_the_account_is_not_used() -> None:
    open_head = node("head", home="/h", gcs="10.0.0.5:6379")
    assert surroundings(SPEC, open_head, open_head)["RAY_AUTH_MODE"] == "disabled"
    assert "RAY_ADDRESS" not in surroundings(SPEC, HEAD, None)
