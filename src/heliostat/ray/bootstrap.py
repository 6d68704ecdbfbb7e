"""The one script that makes a machine ready for Ray: POSIX sh, idempotent, a pure function of its parameters.

It finds or makes a Python with exactly that Ray, once per machine and digest, shared by all clusters of an
account. Nothing needs root. Where it downloads from, it learns from its environment, as pip and uv do. What
it does it says in lines that begin with `helio-step`; where the Python is, in the last, `helio-python PATH`.
Its log stays on the machine beside what it made.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

STEP, PYTHON = "helio-step ", "helio-python "
DEFAULT_PYTHON = "3.11"  # what uv fetches when nobody says which
NOTHING_FITS = 21  # exit code: neither uv nor a Python that fits
EXTRAS = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the environment must have."""

    ray: str  # an exact version
    python: str = ""  # 3.11 or 3.11.7; empty: any that Ray runs on
    bundle: str = ""  # wheels that were brought along for it, by their folder's name below `bundles`

    @property
    def digest(self) -> str:
        text = json.dumps({"ray": self.ray, "python": self.python}, sort_keys=True)  # by whatever way it came
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def script(wanted: Wanted) -> str:
    """The whole text; its parameters are data at its top.

    >>> print(script(Wanted(ray="2.60.0", python="3.11")).splitlines()[1])
    ray='2.60.0' python='3.11' default='3.11' digest='446a65ef6750' bundle=''
    """
    given = {
        "ray": wanted.ray,
        "python": wanted.python,
        "default": DEFAULT_PYTHON,
        "digest": wanted.digest,
        "bundle": wanted.bundle,
    }
    head = " ".join(f"{name}={quoted(value)}" for name, value in given.items())
    return f"#!/bin/sh\n{head}\n{BODY}"


def quoted(value: str) -> str:
    """One word for sh."""
    return "'" + value.replace("'", "'\\''") + "'"


BODY = r"""
set -eu
umask 077
cache=$HOME/.cache/heliostat
at=$cache/python/$digest
log=$at.log
wheels=$cache/${bundle:+bundles/}${bundle:-wheels}
step() { printf 'helio-step %s\n' "$1"; printf '%s %s\n' "$(date '+%Y-%m-%d %H:%M:%S')" "$1" >>"$log"; }
finish() { printf 'helio-python %s\n' "$at/bin/python"; exit 0; }
ready() { [ -e "$at/.ready" ] && [ -x "$at/bin/python" ]; }

if ready; then finish; fi
mkdir -p "$cache/python"
exec 9>"$at.lock"
if command -v flock >/dev/null 2>&1; then flock 9; fi
if ready; then finish; fi # another cluster has made it meanwhile

# shellcheck disable=SC2317  # the trap below calls it
failed() {
    code=$?
    if [ "$code" -ne 0 ]; then
        printf 'helio: it ended with exit code %s; the end of %s:\n' "$code" "$log" >&2
        tail -n 12 "$log" >&2 || true
    fi
    exit "$code"
}
trap failed EXIT
rm -rf "$at"

# Packages that were brought along are enough; then no network is touched.
set --
if [ -d "$wheels" ]; then
    set -- --no-index --find-links "$wheels"
fi

uv=
for each in uv "$HOME/.local/bin/uv" "$HOME/.cargo/bin/uv" "$cache/bin/uv"; do
    if command -v "$each" >/dev/null 2>&1; then uv=$each; break; fi
done

fits() {
    "$1" -c 'import sys, venv, ensurepip
wanted = sys.argv[1]
found = ".".join(map(str, sys.version_info[:3]))
good = sys.version_info >= (3, 10) and (not wanted or (found + ".").startswith(wanted + "."))
sys.exit(not good)' "$python" >/dev/null 2>&1
}

if [ -n "$uv" ]; then
    step "making a Python ${python:-$default} with uv"
    "$uv" venv --quiet --python "${python:-$default}" "$at" >>"$log" 2>&1
    step "installing Ray $ray"
    "$uv" pip install --quiet --python "$at/bin/python" "$@" "ray[default]==$ray" >>"$log" 2>&1
else
    base=
    for each in ${python:+"python${python%.*}" "python$python"} \
        python3 python3.13 python3.12 python3.11 python3.10 /usr/bin/python3 /usr/local/bin/python3; do
        if command -v "$each" >/dev/null 2>&1 && fits "$each"; then base=$each; break; fi
    done
    if [ -z "$base" ]; then
        step "found neither uv nor a Python ${python:-3.10 or newer} with venv"
        exit 21
    fi
    step "making an environment of $(command -v "$base")"
    "$base" -m venv "$at" >>"$log" 2>&1
    step "installing Ray $ray"
    set -- --quiet --disable-pip-version-check "$@"
    "$at/bin/python" -m pip install "$@" "ray[default]==$ray" >>"$log" 2>&1
fi
found=$("$at/bin/python" -c 'from importlib.metadata import version; print(version("ray"))' 2>>"$log")
if [ "$found" != "$ray" ]; then
    printf 'installed Ray %s instead of %s\n' "$found" "$ray" >>"$log"
    exit 1
fi
: >"$at/.ready"
finish
"""
