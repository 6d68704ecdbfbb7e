"""A cluster's REST API, asked as plainly as possible: the same eyes on every contestant."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

POLL = 0.05  # seconds; what any launcher could do
ENDED = ("SUCCEEDED", "FAILED", "STOPPED")


@dataclass(frozen=True, slots=True)
class Rest:
    address: str  # host:port of the dashboard
    token: str

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """An answer, or nothing while there is none."""
        request = urllib.request.Request(
            f"http://{self.address}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def nodes(self) -> Counter[str]:
        """How many nodes Ray counts as ALIVE and as DEAD."""
        answer = self.ask("/api/v0/nodes?detail=1&limit=1000")
        listed = answer["data"]["result"]["result"] if answer else []
        return Counter(node["state"] for node in listed)

    def job(self, entrypoint: str) -> str:
        """One POST, then a look every 50 ms until it has ended; its output."""
        made = self.ask("/api/jobs/", {"entrypoint": entrypoint})
        if made is None:
            raise ConnectionError("the Jobs API does not answer")
        path = f"/api/jobs/{made['submission_id']}"
        wait(lambda: (self.ask(path) or {}).get("status") in ENDED, f"the end of {entrypoint}")
        output: str = self.ask(f"{path}/logs")["logs"]
        return output

    def works(self) -> bool:
        """Whether a job gets through from end to end."""
        try:
            return "well" in self.job("echo well")
        except (ConnectionError, TimeoutError):
            return False


def wait(condition: Callable[[], bool], what: str, deadline: float = 90) -> float:
    """Seconds until it held."""
    began = time.perf_counter()
    while not condition():
        if time.perf_counter() - began > deadline:
            raise TimeoutError(f"not within {deadline:.0f} s: {what}")
        time.sleep(POLL)
    return time.perf_counter() - began


def within(condition: Callable[[], bool], deadline: float) -> float | None:
    """Seconds until it held, or nothing when it did not in time."""
    try:
        return wait(condition, "", deadline)
    except TimeoutError:
        return None
