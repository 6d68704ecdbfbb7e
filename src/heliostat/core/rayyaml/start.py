"""What the commands that start Ray say: flags become keys, heliostat starts Ray itself."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heliostat.core import units
from heliostat.core.decode.forms import TAKEN
from heliostat.core.decode.log import Path
from heliostat.core.decode.tree import Mark, Scalar
from heliostat.core.draft import Draft

# Flags that take no value.
_BARE = {"--head", "--block", "--disable-usage-stats", "--no-redirect-output", "--ray-debugger-external",
         "--enable-resource-isolation", "--verbose", "-v", "--no-redirect-worker-output",
         "--no-monitor", "--enable-object-reconstruction", "--allow-full-cluster-shutdown"}  # fmt: skip
# Why heliostat needs them not; without a word where it does the very same.
_OURS = {
    "--head": "", "--block": "", "--address": "", "--autoscaling-config": "",
    "--node-ip-address": "heliostat finds the address of each node", "--node-name": "",
    "--port": "heliostat chooses this port and tells it to nodes and jobs",
    "--redis-port": "heliostat chooses this port and tells it to nodes and jobs",
    "--temp-dir": "heliostat keeps what Ray writes in the cluster's own directory",
    "--dashboard-host": "the dashboard listens on loopback: `helio open dashboard`, or the key `expose`",
    "--dashboard-port": "heliostat chooses this port: `helio open dashboard`",
    "--include-dashboard": "the dashboard carries the Jobs API, so it is always there",
    "--dashboard-agent-listen-port": "heliostat chooses this port",
    "--dashboard-agent-grpc-port": "heliostat chooses this port",
    "--runtime-env-agent-port": "heliostat chooses this port",
    "--metrics-export-port": "heliostat chooses this port and tells Prometheus",
    "--ray-client-server-port": "heliostat chooses this port",
    "--redis-password": "the cluster's token guards it", "--redis-shard-ports": "Ray has none any more",
    "--disable-usage-stats": "", "--verbose": "", "-v": "",
}  # fmt: skip
# Passed on to `ray start` as they are.
_KEPT = {"--object-manager-port", "--node-manager-port", "--min-worker-port", "--max-worker-port",
         "--worker-port-list", "--plasma-directory", "--object-spilling-directory", "--log-style",
         "--log-color", "--include-log-monitor", "--system-reserved-cpu", "--system-reserved-memory",
         "--cgroup-path", "--enable-resource-isolation", "--no-redirect-output", "--ray-debugger-external",
         "--proxy-server-url"}  # fmt: skip
_SIZES = {"--memory": "memory", "--object-store-memory": "shm"}
_NUMBERS = {"--num-cpus": "cpus", "--num-gpus": "gpus"}
_OUTPUT = re.compile(r"\s(?:[0-9]?|&)>{1,2}\s*(?:&[0-9]|[^\s;&|]+)")
_BEFORE = re.compile(r"sudo|nohup|exec|-[a-zA-Z]+")
_QUIET = re.compile(r"ray\s+stop\b.*|ulimit\s+-[a-zA-Z]+\s+\S+|true|source\s+~/\.bashrc")


@dataclass(frozen=True, slots=True)
class Flag:
    name: str
    value: str
    mark: Mark


def starts_ray(command: str) -> bool:
    return re.search(r"\bray\s+start\b", command) is not None


def read(commands: Sequence[Scalar], key: str, path: Path, draft: Draft, skip: frozenset[str]) -> None:
    """Say with keys of the node at `path` what these commands say; `skip` is what was said already."""
    for command in commands:
        try:
            parts = list(_simple(command.text))
        except ValueError:
            draft.lost(command.mark, key, "a quote in it is never closed")
            continue
        for words in parts:
            _one(words, command.mark, key, path, draft, skip)


def _simple(text: str) -> Iterator[list[str]]:
    """The single commands of one line or several, as words; where output goes is left out."""
    text = _OUTPUT.sub("", text.replace("\\\n", " ").strip())
    text = re.sub(r"(&&|\|\||[;|&])?[ \t]*\n\s*", lambda end: f"{end[1] or ';'} ", text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    for word in lexer:
        if set(word) <= set(";&|"):
            yield words
            words = []
        else:
            words.append(word)
    yield words


def _one(words: list[str], mark: Mark, key: str, path: Path, draft: Draft, skip: frozenset[str]) -> None:
    words = words[1:] if words[:1] == ["export"] else words
    while words and (found := re.fullmatch(r"([A-Za-z_]\w*)=(.*)", words[0], re.DOTALL)):
        _variable(found[1], found[2], mark, key, path, draft)
        words = words[1:]
    while len(words) > 2 and _BEFORE.fullmatch(words[0]):
        words = words[1:]
    text = " ".join(words)
    if not words or _QUIET.fullmatch(text):
        return
    if words[:2] != ["ray", "start"]:
        draft.lost(mark, key, f"heliostat starts Ray itself; what `{text}` does belongs into `setup`")
        return
    for flag in _flags(words[2:], mark):
        _flag(flag, key, path, draft, skip)


def _variable(name: str, value: str, mark: Mark, key: str, path: Path, draft: Draft) -> None:
    if name in TAKEN or name.startswith("HELIO_"):
        draft.lost(mark, key, f"{name} is set by heliostat")
    elif "$" in value or "`" in value:
        draft.lost(mark, key, f"{name}: no shell fills in `{value}` in `env`")
    else:
        draft.add((*path, "env"), {name: value}, mark, key)


def _flags(words: Sequence[str], mark: Mark) -> Iterator[Flag]:
    left = list(words)
    while left:
        name, equals, value = left.pop(0).partition("=")
        if not equals and name not in _BARE and left and not left[0].startswith("--"):
            value = left.pop(0)
        yield Flag(name.replace("_", "-") if name.startswith("--") else name, value, mark)


def _flag(flag: Flag, key: str, path: Path, draft: Draft, skip: frozenset[str]) -> None:
    where = f"{key} {flag.name}"
    if flag.name in _OURS:
        if _OURS[flag.name]:
            draft.ours(flag.mark, where, _OURS[flag.name])
    elif "$" in flag.value or "`" in flag.value:
        draft.lost(flag.mark, where, f"no shell fills in `{flag.value}`")
    elif flag.name in _NUMBERS:
        _say(_NUMBERS[flag.name], flag.value, flag, where, path, draft, skip)
    elif flag.name in _SIZES:
        size = units.say_size(int(flag.value)) if flag.value.isdigit() else flag.value
        _say(_SIZES[flag.name], size, flag, where, path, draft, skip)
    elif flag.name in ("--resources", "--labels"):
        _mapping(flag, where, path, draft)
    elif flag.name in _KEPT:
        had = draft.leaf((*path, "start_args"))
        text = flag.name if not flag.value else f"{flag.name}={flag.value}"
        draft.put((*path, "start_args"), [*(had.value if had else []), text], flag.mark, key)
    else:
        draft.lost(flag.mark, where, "this is no flag of `ray start` that heliostat knows")


def _say(
    ours: str, value: str, flag: Flag, where: str, path: Path, draft: Draft, skip: frozenset[str]
) -> None:
    if ours in skip:
        draft.ours(flag.mark, where, f"the node's `resources` say `{ours}`, and are stronger in Ray too")
    else:
        draft.put((*path, ours), value, flag.mark, where)


def _mapping(flag: Flag, where: str, path: Path, draft: Draft) -> None:
    try:
        given = json.loads(flag.value) if flag.value.startswith("{") else _pairs(flag.value)
    except ValueError:
        draft.lost(flag.mark, where, f"`{flag.value}` cannot be read")
        return
    values = {str(name): str(part) for name, part in given.items()}
    draft.add((*path, flag.name.strip("-")), values, flag.mark, where)


def _pairs(text: str) -> dict[str, str]:
    parts = [part.split("=", 1) for part in text.split(",") if part]
    if any(len(part) < 2 for part in parts):
        raise ValueError(text)
    return {name.strip(): value.strip() for name, value in parts}
