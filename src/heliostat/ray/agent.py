"""Ask a machine that carries nodes: the agent is sent there first, and stays for as long as we ask."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from heliostat.core.errors import (
    Conflict,
    HelioError,
    LeftBehind,
    MissingPart,
    TimedOut,
    Unavailable,
)
from heliostat.core.trouble import trouble
from heliostat.engine.ports import Result

MODULES = ("processes", "belongings", "copies", "agent")
NO_PYTHON, NO_PYTHON_BUT_OURS = 97, 98

# Any Python will do that is new enough: those named, the cluster's own, the machine's. One that is too old,
# or broken, has read nothing yet when it gives up.
SCRIPT = r"""
ours="$HOME/.local/share/heliostat/ssh"
for python in "$@" "$ours"/*/*/python "$HOME"/.cache/heliostat/python/*/bin/python3 \
        python3 /usr/bin/python3 /usr/local/bin/python3 /opt/*/bin/python3; do
    case $python in "~/"*) python=$HOME/${python#"~/"} ;; esac
    command -v "$python" >/dev/null 2>&1 || continue
    [ "$("$python" -I -S -c 'import sys; print(sys.version_info >= (3, 8) and "fit")' 2>&1)" = fit ] ||
        continue
    exec "$python" -I -S -c 'import json, sys
agent = json.loads(sys.stdin.buffer.readline())
exec(agent["loader"])'
done
[ -d "$ours" ] && exit 98
exit 97
"""
LOADER = """
import types
for name, text in agent["modules"]:
    parts = name.split(".")
    for size in range(1, len(parts)):
        above = ".".join(parts[:size])
        sys.modules.setdefault(above, types.ModuleType(above)).__path__ = []
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
sys.modules["heliostat.ray.node_program.agent"].serve(sys.stdin.buffer, sys.stdout)
"""
_KINDS: Mapping[str, type[HelioError]] = {
    "conflict": Conflict,
    "unavailable": Unavailable,
    "timeout": TimedOut,
    "left": LeftBehind,
    "missing": MissingPart,
}


@cache
def modules() -> tuple[tuple[str, str], ...]:
    source = importlib.resources.files("heliostat.ray.node_program")
    return tuple(
        (f"heliostat.ray.node_program.{name}", source.joinpath(f"{name}.py").read_text(encoding="utf-8"))
        for name in MODULES
    )


class Answering(Protocol):
    """What stays on a machine: a line to it, a line from it; a Result once it has ended."""

    async def ask(self, question: bytes) -> bytes | Result: ...


def command(pythons: Sequence[str] = ()) -> list[str]:
    """What runs there; these Pythons are tried first."""
    return ["sh", "-c", SCRIPT, "sh", *pythons]


@cache
def opening() -> bytes:
    """The agent itself. It travels on standard input: never in anybody's process list."""
    return json.dumps({"loader": LOADER, "modules": modules()}).encode() + b"\n"


async def ask(
    agent: Answering, host: str, orders: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]] | None:
    """The answer to each order; nothing where no Python runs and hence nothing of ours either."""
    answer = await agent.ask(json.dumps(list(orders)).encode())
    if not isinstance(answer, Result):
        return list(json.loads(answer))
    if answer.code == NO_PYTHON:
        return None
    raise _ended(host, answer)


def _ended(host: str, result: Result) -> HelioError:
    """It said no word."""
    if result.code == NO_PYTHON_BUT_OURS:
        return MissingPart(
            f"no Python on {host} can be used",
            why="looked for python3, 3.8 or newer; clusters of yours have left directories there",
            fix="install python3 there, or give python: the path of one",
        )
    said = (result.err or result.out).decode(errors="replace").strip()
    return Unavailable(
        f"{host} gave no answer that can be read",
        why=said.rpartition("\n")[2] or f"exit code {result.code}",
        fix=f"try `ssh {host} python3 --version`",
    )


def verdict(answer: Mapping[str, Any], host: str, what: str) -> Mapping[str, Any]:
    """The answer, or the error that it tells of."""
    if answer.get("ok"):
        return answer
    if "refusal" in answer:
        told = answer["refusal"]
        kind = _KINDS.get(told["kind"], Unavailable)
        raise kind(f"{host}: {told['what']}", why=told["why"], fix=told["fix"])
    system = answer["system"]
    raise trouble(OSError(system["errno"], system["why"]), f"{host}: {what}")
