"""A proxy and a package index in one, for hosts without another way out; it remembers what it was asked."""

from __future__ import annotations

import base64
import http.server
import io
import threading
import zipfile
from typing import Self

LOGIN = ("me", "pr0xy-pass")
INDEX = "http://pypi.lab/simple"


def wheel(version: str = "9.9.9") -> bytes:
    """A package that calls itself Ray, as small as can be."""
    info, made = f"ray-{version}.dist-info", io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("ray/__init__.py", f"__version__ = '{version}'\n")
        file.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: ray\nVersion: {version}\nProvides-Extra: default\n",
        )
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
    return made.getvalue()


def name(version: str = "9.9.9") -> str:
    return f"ray-{version}-py3-none-any.whl"


class Index:
    """Started on an address that hosts reach; `asked` holds each address and whether it signed in."""

    def __init__(self, address: str) -> None:
        asked: list[tuple[str, bool]] = []
        wanted = "Basic " + base64.b64encode(":".join(LOGIN).encode()).decode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                proxied = self.path.startswith("http://")
                known = not proxied or self.headers.get("Proxy-Authorization") == wanted
                asked.append((self.path, known))
                found = {"/simple/ray/": f'<a href="/{name()}">{name()}</a>'.encode()}
                found[f"/{name()}"] = wheel()
                body = found.get(self.path.removeprefix("http://pypi.lab")) if known else None
                self.send_response(200 if body else 404 if known else 407)
                self.send_header(
                    "Content-Type", "text/html" if self.path.endswith("/") else "application/zip"
                )
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                """Nothing on the screen."""

        self.asked = asked
        self._server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.proxy = f"http://{':'.join(LOGIN)}@{address}:{self._server.server_port}"
        self.direct = f"http://{address}:{self._server.server_port}/simple"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
