"""The file's `host_setup` as one script: POSIX sh, and all that it needs of a host.

It runs before anything else, also before there is a Python. What was done once for a cluster is not done
again until the commands change. Its log stays on the host, in the cache: what made a host unusable is worth
reading after the cluster is gone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from heliostat.ray.bootstrap import STEP, quoted

LOGS = "~/.cache/heliostat/host_setup"


def digest(commands: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(commands)).encode()).hexdigest()[:12]


def log_of(cluster_id: str, commands: Sequence[str]) -> str:
    """Where it is on the host."""
    return f"{LOGS}/{cluster_id}-{digest(commands)}.log"


def script(commands: Sequence[str], cluster_id: str, host: str) -> str:
    """Each command in turn; the first that fails ends it, with its exit code and what it said last."""
    given = {"id": cluster_id, "host": host, "digest": digest(commands)}
    head = " ".join(f"{name}={quoted(value)}" for name, value in given.items())
    runs = "\n".join(f"run {quoted(command)}" for command in commands)
    return f"#!/bin/sh\n{head}\n{_BEGIN.replace('STEP', STEP)}{runs}\n{_END}"


_BEGIN = r"""
set -u
usual=$(umask)
umask 077
mark=$HOME/.local/share/heliostat/ssh/$id/$host/host_setup/$digest
log=$HOME/.cache/heliostat/host_setup/$id-$digest.log
if [ -e "$mark" ]; then exit 0; fi
mkdir -p "${log%/*}" || exit
exec 9>"$log.lock" || exit
if command -v flock >/dev/null 2>&1; then flock 9; fi
if [ -e "$mark" ]; then exit 0; fi # somebody else has done it meanwhile

run() {
    printf 'STEP%s\n' "$1"
    printf '%s $ %s\n' "$(date '+%Y-%m-%d %H:%M:%S')" "$1" >>"$log" || exit
    start=$(($(wc -c <"$log") + 1))
    (umask "$usual" && exec /bin/sh -c "$1") </dev/null >>"$log" 2>&1 9>&-
    code=$?
    if [ "$code" -ne 0 ]; then
        tail -c "+$start" "$log" | tail -n 12 >&2
        exit "$code"
    fi
}

"""
_END = r"""
mkdir -p "${mark%/*}" && : >"$mark"
"""
