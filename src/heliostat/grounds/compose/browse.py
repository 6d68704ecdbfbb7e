"""A page of what the store holds: folders, files, downloads. Runs on a node, which has the keys.

Standard library only; it is sent as text, with a call of `main` behind it, says its port, and ends when its
input does. It listens inside its own container alone.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import json
import os
import shutil
import sys
import threading
import time
import urllib.request
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, urlsplit
from xml.etree import ElementTree as ET

REGION = "us-east-1"
S3 = "{http://s3.amazonaws.com/doc/2006-03-01/}"


def signed(
    method: str, endpoint: str, path: str, query: dict[str, str], keys: tuple[str, str], now: float
) -> tuple[str, dict[str, str]]:
    """The address and the headers of a request, signed as S3 wants it (version 4)."""
    host = urlsplit(endpoint).netloc
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    asked = "&".join(f"{quote(k, safe='')}={quote(v, safe='')}" for k, v in sorted(query.items()))
    where = quote(path, safe="/-_.~")
    headers = {"host": host, "x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-date": stamp}
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    whole = f"{method}\n{where}\n{asked}\n{lines}\n{names}\nUNSIGNED-PAYLOAD"
    scope = f"{stamp[:8]}/{REGION}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(whole.encode()).hexdigest()])
    key = ("AWS4" + keys[1]).encode()
    for word in scope.split("/"):
        key = hmac.new(key, word.encode(), "sha256").digest()
    sign = hmac.new(key, text.encode(), "sha256").hexdigest()
    said = f"AWS4-HMAC-SHA256 Credential={keys[0]}/{scope}, SignedHeaders={names}, Signature={sign}"
    return f"{endpoint}{where}?{asked}", {**headers, "Authorization": said}


def size(count: int) -> str:
    """As a person reads it.

    >>> size(10), size(2_500_000)
    ('10 B', '2.5 MB')
    """
    number, units = float(count), iter(("B", "KB", "MB", "GB", "TB"))
    unit = next(units)
    while number >= 1000 and unit != "TB":
        number, unit = number / 1000, next(units)
    return f"{number:.3g} {unit}"


def listing(text: bytes, prefix: str, bucket: str) -> str:
    """The page of one folder, from what the store said."""
    tree = ET.fromstring(text)  # noqa: S314  (the cluster's own store wrote it)
    rows = []
    for one in tree.iter(f"{S3}CommonPrefixes"):
        name = one.findtext(f"{S3}Prefix") or ""
        rows.append((f"/?prefix={quote(name)}", name[len(prefix) :], "", ""))
    for one in tree.iter(f"{S3}Contents"):
        name = one.findtext(f"{S3}Key") or ""
        count = size(int(one.findtext(f"{S3}Size") or 0))
        changed = (one.findtext(f"{S3}LastModified") or "")[:19]
        rows.append((f"/get?key={quote(name)}", name[len(prefix) :], count, changed))
    more = tree.findtext(f"{S3}NextContinuationToken") or ""
    lines = [
        f'<tr><td><a href="{link}">{html.escape(name)}</a><td>{count}<td>{changed}'
        for link, name, count, changed in rows
    ]
    up = prefix.rstrip("/").rpartition("/")[0]
    above = f'<p><a href="/?prefix={quote(up + "/" if up else "")}">up</a>' if prefix else ""
    after = f'<p><a href="/?prefix={quote(prefix)}&after={quote(more)}">more</a>' if more else ""
    title = html.escape(f"s3://{bucket}/{prefix}")
    return (
        f'<!doctype html><meta charset="utf-8"><title>{title}</title><h1>{title}</h1>{above}'
        f"<table>{''.join(lines) or '<tr><td>nothing here'}</table>{after}"
    )


class Page(BaseHTTPRequestHandler):
    endpoint = bucket = ""
    keys = ("", "")

    def ask(self, key: str, query: dict[str, str]) -> HTTPResponse:
        path = f"/{self.bucket}/{key}" if key else f"/{self.bucket}"
        url, headers = signed("GET", self.endpoint, path, query, self.keys, time.time())
        asked = urllib.request.Request(url, headers=headers)  # noqa: S310  (the store's own address)
        answer: HTTPResponse = urllib.request.urlopen(asked, timeout=30)  # noqa: S310
        return answer

    def do_GET(self) -> None:
        said = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        try:
            if urlsplit(self.path).path == "/get":
                self.file(said.get("key", ""))
            else:
                self.folder(said.get("prefix", ""), said.get("after", ""))
        except OSError as error:
            self.send_error(502, "the store does not answer", str(error))

    def folder(self, prefix: str, after: str) -> None:
        query = {"list-type": "2", "delimiter": "/", "prefix": prefix}
        with self.ask("", query | ({"continuation-token": after} if after else {})) as answer:
            body = listing(answer.read(), prefix, self.bucket).encode()
        self.head("text/html; charset=utf-8", len(body))
        self.wfile.write(body)

    def file(self, key: str) -> None:
        with self.ask(key, {}) as answer:
            self.head("application/octet-stream", answer.length or 0, key.rpartition("/")[2])
            shutil.copyfileobj(answer, self.wfile)

    def head(self, kind: str, length: int, name: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", "default-src 'none'; connect-src 'self'")
        if name:
            self.send_header("Content-Disposition", f"attachment; filename*=UTF-8''{quote(name)}")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quiet."""


def main(endpoint: str, bucket: str, keys: str) -> None:
    with open(keys, encoding="utf-8") as file:
        pair = json.load(file)["identities"][0]["credentials"][0]
    Page.endpoint, Page.bucket = endpoint, bucket
    Page.keys = pair["accessKey"], pair["secretKey"]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.write(1, f"{server.server_port}\n".encode())
    sys.stdin.buffer.read()  # until whoever asked is gone
