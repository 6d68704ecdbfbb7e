"""Start Ray's daemons by Ray's own `start` command, on loopback where asked, without its idle waits.

Runs on the node, with the node's Python, below the node program. Whatever of this a Ray release does not
know is left as Ray has it, except the loopback recipe, without which a node must not start. See docs/adr.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from heliostat.ray.node_program.watch import whole

CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # at 0, Ray's daemons take loopback for their address
OWN = ("gcs_server", "dashboard", "monitor")  # of the head alone
LATER = ("start_monitor", "start_ray_client_server", "start_log_monitor")  # nobody waits for these
NAP = 0.05  # Ray polls every 0.1 to 2 s while it starts; this is soon enough and costs nothing


def stay_on_loopback(services: Any) -> None:
    """Keep 127.0.0.1 what it is: Ray would turn it into the host's address."""
    if not hasattr(services, "resolve_ip_for_localhost"):
        raise SystemExit(
            "this Ray cannot be kept on loopback: ray._private.services.resolve_ip_for_localhost is gone"
        )
    services.resolve_ip_for_localhost = lambda host: host


def poll_often() -> None:
    """Shorten the sleeps of Ray's start command, in this process only."""
    sleep = time.sleep

    def nap(seconds: float) -> None:
        sleep(min(seconds, NAP))

    time.sleep = nap  # type: ignore[assignment]


@contextmanager
def without(names: Iterable[str]) -> Iterator[None]:
    """Hide some of this process's environment from what is started meanwhile."""
    hidden = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)


def record_spawned(services: Any, path: str, private: Sequence[str]) -> None:
    """Write down each daemon with its arguments, so that the supervisor can start it again.

    What is `private` stays with the head's own services: through the raylet it would reach jobs, and a Ray
    that a job starts inside ours would take our store and our ports for its own.
    """
    start = getattr(services, "start_ray_process", None)
    if start is None:
        return

    one_by_one = threading.Lock()  # the environment is the whole process's

    def recorded(command: list[str], process_type: str, *args: Any, **kwargs: Any) -> Any:
        with one_by_one:
            with without(() if process_type in OWN else private):
                info = start(command, process_type, *args, **kwargs)
                env = {**os.environ, **(kwargs.get("env_updates") or {})}
            line = {"role": process_type, "argv": command, "env": env, "pid": info.process.pid}
            with open(path, "a", encoding="utf-8", opener=lambda p, f: os.open(p, f, 0o600)) as file:
                file.write(json.dumps(line) + "\n")
        return info

    services.start_ray_process = recorded


def alive_first(node: Any) -> None:
    """Begin with what makes a node alive, and wait for the dashboard while the rest is on its way.

    Nodes join only once the head's raylet is there, and the Jobs API is the dashboard's; what else Ray starts
    would only take the processor from them.
    """
    cls = node.Node
    if not all(hasattr(cls, name) for name in ("start_api_server", "start_ray_processes", *LATER)):
        return
    last: list[Callable[[], Any]] = []
    for name in LATER:
        setattr(cls, name, postponed(getattr(cls, name), last))
    whole: Callable[..., None] = cls.__init__
    first: Callable[..., Any] = cls.start_api_server
    then: Callable[..., Any] = cls.start_ray_processes
    waiting: list[Future[Any]] = []

    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        whole(self, *args, **kwargs)
        while last:
            last.pop(0)()

    def start_api_server(self: Any, *args: Any, **kwargs: Any) -> None:
        params = self._ray_params
        self._webui_url = (
            f"{params.dashboard_host}:{params.dashboard_port}"  # the raylet and other nodes ask for it
        )
        self.get_gcs_client().internal_kv_put(b"webui:url", self._webui_url.encode(), True, b"dashboard")
        waiting.append(ThreadPoolExecutor(1).submit(first, self, *args, **kwargs))

    def start_ray_processes(self: Any) -> None:
        then(self)
        while waiting:
            waiting.pop(0).result()

    cls.__init__ = made
    cls.start_api_server, cls.start_ray_processes = start_api_server, start_ray_processes


def postponed(method: Callable[..., Any], until: list[Callable[[], Any]]) -> Callable[..., None]:
    """The same method, noted down instead of called."""

    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        until.append(lambda: method(self, *args, **kwargs))

    return noted


def wait_for(address: str, patience: float) -> None:
    """Wait until the head accepts connections."""
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + patience
    pause = 0.02
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=2).close()
        except OSError as error:
            if time.monotonic() > deadline:
                raise SystemExit(
                    f"the head did not answer at {address} within {patience:.0f} s: {error}"
                ) from None
            time.sleep(pause)
            pause = min(pause * 1.5, 0.25)
        else:
            return


def main(arguments: Sequence[str]) -> None:
    """Take the node program's order (JSON) and become `ray start`."""
    order = json.loads(arguments[0])
    # Read once, when Ray is imported: `start --address` refuses at 0, the daemons need it at 0 for loopback.
    os.environ[CLUSTERS] = "1"
    # Ray's retries are counted, and here they are quick; the supervisor's deadline is the real limit.
    own = os.environ.get("RAY_NUM_REDIS_GET_RETRIES")
    os.environ["RAY_NUM_REDIS_GET_RETRIES"] = str(int(order["patience"] / NAP))
    scripts = importlib.import_module("ray.scripts.scripts")
    services = importlib.import_module("ray._private.services")
    os.environ.pop("RAY_NUM_REDIS_GET_RETRIES")
    if own is not None:
        os.environ["RAY_NUM_REDIS_GET_RETRIES"] = own
    if order["loopback"]:
        stay_on_loopback(services)
        os.environ[CLUSTERS] = "0"
    else:
        os.environ.pop(CLUSTERS)
    record_spawned(services, order["spawned"], order["private"])
    alive_first(importlib.import_module("ray._private.node"))
    if order["head"]:
        wait_for(order["head"], order["patience"])
    poll_often()
    try:
        scripts.start.main(args=order["args"], prog_name="ray start")
    except SystemExit as end:
        if (
            not end.code
        ):  # whoever looks may be another program by now: the one that gave the order was killed
            with open(whole(order["spawned"]), "w", encoding="utf-8"):
                pass
        raise
