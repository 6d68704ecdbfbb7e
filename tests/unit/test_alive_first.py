"""The order in which Ray's parts are started, on a stand-in that is shaped like Ray's own class."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from heliostat.ray.node_program.launch import LATER, alive_first


def module(told: list[str], *, dashboard: BaseException | None = None) -> SimpleNamespace:
    """Like `ray._private.node`, in the order of Ray 2.60."""

    class Node:
        _ray_params = SimpleNamespace(dashboard_host="127.0.0.1", dashboard_port=8265)

        def __init__(self) -> None:
            self.start_monitor()
            self.start_ray_client_server()
            self.start_api_server(include_dashboard=True, raise_on_failure=True)
            self.start_ray_processes()
            told.append("registered")

        def start_monitor(self) -> None:
            told.append("monitor")

        def start_ray_client_server(self) -> None:
            told.append("client server")

        def start_log_monitor(self) -> None:
            told.append("log monitor")

        def start_api_server(self, **_: Any) -> None:
            if dashboard:
                raise dashboard
            told.append("dashboard")

        def start_ray_processes(self) -> None:
            self.start_log_monitor()
            told.append("raylet")

        def get_gcs_client(self) -> SimpleNamespace:
            return SimpleNamespace(internal_kv_put=lambda *_: None)

    return SimpleNamespace(Node=Node)


def test_what_makes_it_alive_comes_first() -> None:
    told: list[str] = []
    ray = module(told)
    alive_first(ray)
    ray.Node()
    assert set(told[:2]) == {"dashboard", "raylet"}
    assert told[2:] == ["registered", "monitor", "client server", "log monitor"]


def test_a_dashboard_that_does_not_start_is_an_error() -> None:
    told: list[str] = []
    ray = module(told, dashboard=RuntimeError("no port"))
    alive_first(ray)
    with pytest.raises(RuntimeError, match="no port"):
        ray.Node()
    assert "monitor" not in told


@pytest.mark.parametrize("name", [*LATER, "start_api_server", "start_ray_processes"])
def test_a_ray_without_one_of_these_starts_as_it_always_does(name: str) -> None:
    ray = module([])
    delattr(ray.Node, name)
    before = dict(vars(ray.Node))
    alive_first(ray)
    assert dict(vars(ray.Node)) == before
