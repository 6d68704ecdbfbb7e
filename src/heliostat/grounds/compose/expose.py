"""What may be reached without a tunnel, by whom, and the one container that lets them through. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from heliostat.core.resource import HEAD
from heliostat.core.spec import Spec
from heliostat.grounds.compose.beside import Beside
from heliostat.grounds.compose.service import PORTS
from heliostat.grounds.compose.texts import text_of
from heliostat.grounds.compose.want import image_of

DOOR = "door"
# What the file calls it: where it is inside the cluster's network. Outside it has the same port.
WHERE: Mapping[str, str] = {
    "dashboard": f"{HEAD}:{PORTS['dashboard']}",
    "grafana": "grafana:3000",
    "prometheus": "prometheus:9090",
    "notebook": "notebook:8888",
    "storage": "storage:8333",
}


def door(spec: Spec) -> Beside:
    """The service; its ports are the only ones that are published."""
    told = [
        {"port": port_of(service), "to": WHERE[service], "network": network}
        for service, network in sorted(spec.expose.items())
    ]
    ports = tuple(port_of(service) for service in sorted(spec.expose))
    listens = f"[s.create_connection(('127.0.0.1', port), 3) for port in {list(ports)}]"
    named = ", ".join(f"{service} on port {port_of(service)} for {network}"
                      for service, network in sorted(spec.expose.items()))  # fmt: skip
    return Beside(
        key=DOOR,
        image=image_of(spec, spec.head),
        port=ports[0],
        argv=("python3", "-I", "-S", "/etc/heliostat/program.py"),
        healthy=f'python3 -I -S -c "import socket as s; {listens}"',
        text=f"a door: {named}",
        files={"/etc/heliostat/door.json": json.dumps(told, sort_keys=True)},
        program=DOOR,
        ports=ports,
        built=bool(spec.dockerfile and not spec.head.image),
    )


def port_of(service: str) -> int:
    """Where it listens, inside and outside.

    >>> port_of("dashboard"), port_of("storage")
    (8265, 8333)
    """
    return int(WHERE[service].rpartition(":")[2])


def door_text() -> str:
    """The program of its container."""
    return f"{text_of('door')}\n\nmain()\n"
