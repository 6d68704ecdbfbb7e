"""A Ray head on loopback, kept in memory: dashboard and agent as programs on the other side, with faults.

>>> async def hello() -> bytes:
...     async with FakeHead() as head:
...         head.jobs["a1"] = FakeJob(id="a1", entrypoint="echo hi")
...         head.jobs["a1"].start(head).write(b"hi\\n").end(0)
...         return b"".join([chunk async for chunk in head.api().follow("a1")])
>>> import asyncio; asyncio.run(hello())
b'hi\\n'
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from heliostat.ray.client import RestApi
from heliostat.ray.http import Http
from heliostat.testing.httpd import Faults, Reply, Request, Server

TOKEN = "a-token-of-tests"  # noqa: S105  # guards a server that lives for one test
NODE = "0" * 56
HEADER = b"2026-11-19 06:14:45,147\tINFO job_manager.py:581 -- Runtime env is setting up.\n"


@dataclass
class FakeJob:
    """A job as Ray's job manager has it; the methods are what its supervisor does."""

    id: str
    entrypoint: str = "true"
    metadata: dict[str, str] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    status: str = "PENDING"
    code: int | None = None
    message: str = ""
    error_type: str | None = None
    agent: str | None = None
    node: str | None = None
    log: bytearray | None = None
    watched: bool = False
    forgotten: bool = False  # its supervisor went with a head before it could start

    def start(self, head: FakeHead, *, before: bytes = b"") -> Self:
        """It runs; `before` is what it prints before Ray writes its own line."""
        self.status, self.agent, self.node, self.watched = "RUNNING", head.agent_url, NODE, True
        line = f"Running entrypoint for job {self.id}: {self.entrypoint}\n".encode()
        self.log = bytearray(HEADER + before + line)
        return self

    def write(self, data: bytes) -> Self:
        assert self.log is not None, "a job that waits writes nothing"  # noqa: S101  # a mistake in a test
        self.log += data
        return self

    def end(self, code: int | None, status: str = "") -> Self:
        self.status = status or ("SUCCEEDED" if code == 0 else "FAILED")
        self.code, self.watched = code, False
        return self

    def shown(self) -> dict[str, Any]:
        """As the Jobs API shows it."""
        return {
            "type": "SUBMISSION",
            "submission_id": self.id,
            "status": self.status,
            "entrypoint": self.entrypoint,
            "message": self.message,
            "error_type": self.error_type,
            "start_time": 1795068885142,
            "metadata": self.metadata,
            "driver_agent_http_address": self.agent,
            "driver_node_id": self.node,
            "driver_exit_code": self.code,
        }


class FakeHead:
    """Two servers that answer as a head's dashboard and its agent do."""

    def __init__(self, token: str | None = TOKEN, version: str = "2.60.0") -> None:
        self.token = token
        self.version = version
        self.jobs: dict[str, FakeJob] = {}
        self.nodes: list[dict[str, Any]] = [fake_node("head", head=True)]
        self.usage: dict[str, dict[str, tuple[float, float]]] = {}
        self.on_submit: Callable[[FakeJob], Awaitable[None]] | None = None
        self.dashboard = Server(self._dashboard)
        self.agent = Server(self._agent)
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.dashboard.start()
        await self.agent.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await self.dashboard.stop()
        await self.agent.stop()

    @property
    def agent_url(self) -> str:
        return f"http://127.0.0.1:{self.agent.port}"

    @property
    def faults(self) -> tuple[Faults, Faults]:
        """Of the dashboard, and of the agent."""
        return self.dashboard.faults, self.agent.faults

    def api(self, token: str | None = TOKEN) -> RestApi:
        """A client of this head."""
        agents: dict[str, Http] = {}

        def agent(url: str) -> Http:
            return agents.setdefault(url, _server("the agent", urlsplit(url).port or 80, token))

        return RestApi(_server("Ray's dashboard", self.dashboard.port, token), agent)

    def _refused(self, request: Request) -> Reply | None:
        given = request.headers.get("authorization")
        if self.token is None or given == f"Bearer {self.token}":
            return None
        return (
            Reply(403, b"Forbidden: Invalid authentication token") if given else Reply(401, b"Unauthorized")
        )

    async def _agent(self, request: Request) -> Reply:
        if refused := self._refused(request):
            return refused
        name = request.path.removeprefix("/logs/job-driver-").removesuffix(".log")
        job = self.jobs.get(name)
        if job is None or job.log is None:
            return Reply(404)
        start = int(request.headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        size = len(job.log)
        if start >= size:
            return Reply(416, headers={"Content-Range": f"bytes */{size}"})
        place = {"Content-Range": f"bytes {start}-{size - 1}/{size}"}
        return Reply(206, bytes(memoryview(job.log)[start:]), headers=place)

    async def _dashboard(self, request: Request) -> Reply:
        if refused := self._refused(request):
            return refused
        path = request.path
        if path == "/api/jobs/":
            return await self._submit(request) if request.method == "POST" else self._list()
        if path.startswith("/api/jobs/"):
            return self._job(request.method, *path.removeprefix("/api/jobs/").partition("/")[::2])
        answers: dict[str, Callable[[], Any]] = {
            "/api/version": lambda: {
                "version": "4",
                "ray_version": self.version,
                "session_name": "session_x",
            },
            "/api/v0/nodes": lambda: _state(self.nodes),
            "/api/v0/actors": lambda: _state(self._actors(parse_qs(request.query))),
            "/api/cluster_status": lambda: {
                "data": {"clusterStatus": {"loadMetricsReport": {"usageByNode": self.usage}}}
            },
        }
        return _json(answers[path]()) if path in answers else Reply(404)

    def _list(self) -> Reply:
        return _json([job.shown() for job in self.jobs.values()])

    def _actors(self, query: dict[str, list[str]]) -> list[dict[str, str]]:
        """The supervisors; the only actors that anybody asks for."""
        every = query["filter_predicates"][-1] == "!="  # than DEAD
        waiting = [job for job in self.jobs.values() if every and job.status == "PENDING"]
        found = [*(job for job in self.jobs.values() if job.watched), *waiting]
        rows = [(job, "ALIVE" if job.watched else "PENDING_CREATION") for job in found if not job.forgotten]
        return [{"name": f"_ray_internal_job_actor_{job.id}", "state": state} for job, state in rows]

    async def _submit(self, request: Request) -> Reply:
        body = json.loads(request.body)
        name = body["submission_id"]
        if name in self.jobs:
            return Reply(
                500, f"Traceback …\nValueError: Job with submission_id {name} already exists.\n.".encode()
            )
        job = FakeJob(id=name, entrypoint=body["entrypoint"], metadata=body.get("metadata") or {}, asked=body)
        self.jobs[name] = job
        if self.on_submit:
            task = asyncio.ensure_future(self.on_submit(job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return _json({"job_id": name, "submission_id": name})

    def _job(self, method: str, name: str, verb: str) -> Reply:
        job = self.jobs.get(name)
        if job is None:
            return Reply(404, f"Job {name} does not exist".encode())
        if verb == "stop":
            if job.status == "RUNNING":  # for one that waits Ray says yes and does nothing
                job.end(None, "STOPPED")
            return _json({"stopped": True})
        if method == "DELETE":
            del self.jobs[name]
            return _json({"deleted": True})
        return _json(job.shown())


def fake_node(name: str, *, head: bool = False, alive: bool = True, **total: float) -> dict[str, Any]:
    """A row of Ray's node list."""
    return {
        "node_id": NODE if head else name.encode().hex().ljust(56, "0"),
        "node_ip": "127.0.0.1",
        "is_head_node": head,
        "state": "ALIVE" if alive else "DEAD",
        "state_message": None if alive else "Unexpected termination: health check failed",
        "resources_total": total or {"CPU": 2.0},
        "labels": {"helio-node": name},
    }


def _server(name: str, port: int, token: str | None) -> Http:
    async def route() -> tuple[str, int]:
        return "127.0.0.1", port

    return Http(name, route, token)


def _json(content: Any) -> Reply:
    return Reply(200, json.dumps(content).encode())


def _state(rows: list[Any]) -> dict[str, Any]:
    return {"result": True, "data": {"result": {"total": len(rows), "result": rows}}}
