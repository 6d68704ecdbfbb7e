"""A registry for images, as small as Docker allows, with one login; run as a program: PORT USER PASSWORD."""

from __future__ import annotations

import base64
import hashlib
import itertools
import os
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BLOBS: dict[str, bytes] = {}
MANIFESTS: dict[str, tuple[str, bytes]] = {}  # by tag and by digest: what it is, and itself
UPLOADS: dict[str, bytes] = {}
NUMBERS = itertools.count()


class Registry(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    login = ""

    def answer(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def let_in(self) -> bool:
        if self.headers.get("Authorization") == self.login:
            return True
        self.body()
        self.answer(401, b'{"errors":[{"code":"UNAUTHORIZED"}]}', WWW_Authenticate='Basic realm="lab"')
        return False

    def do_GET(self) -> None:
        if not self.let_in():
            return
        digest = self.path.rpartition("/")[2]
        if self.path == "/v2/":
            self.answer(200, b"{}")
        elif "/blobs/" in self.path and digest in BLOBS:
            self.answer(200, BLOBS[digest], Docker_Content_Digest=digest)
        elif "/manifests/" in self.path and digest in MANIFESTS:
            kind, body = MANIFESTS[digest]
            self.answer(200, body, Content_Type=kind, Docker_Content_Digest=digest_of(body))
        else:
            self.answer(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}')

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        if self.let_in():
            self.body()
            name = str(next(NUMBERS))
            UPLOADS[name] = b""
            self.answer(202, Location=f"{self.path.rstrip('/')}/{name}", Range="0-0")

    def do_PATCH(self) -> None:
        if self.let_in():
            name = self.path.rpartition("/")[2]
            UPLOADS[name] += self.body()
            self.answer(202, Location=self.path, Range=f"0-{len(UPLOADS[name]) - 1}")

    def do_PUT(self) -> None:
        if not self.let_in():
            return
        body = self.body()
        if found := re.search(r"/uploads/(\d+)\?.*digest=([^&]+)", self.path):
            whole = UPLOADS.pop(found[1]) + body
            digest = digest_of(whole)
            BLOBS[digest] = whole
        else:
            digest = digest_of(body)
            kept = str(self.headers["Content-Type"]), body
            MANIFESTS[digest] = MANIFESTS[self.path.rpartition("/")[2]] = kept
        self.answer(201, Docker_Content_Digest=digest, Location=self.path)

    def log_message(self, *_: object) -> None:
        """Quiet."""


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def main(port: str, user: str, password: str) -> None:
    Registry.login = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), Registry)
    os.write(1, b"ready\n")
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
