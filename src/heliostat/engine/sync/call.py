"""One order to the program that a node runs for us. It travels with each order, so it is never an old one."""

from __future__ import annotations

import json
import pkgutil
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from heliostat.core.errors import HelioError, Unavailable
from heliostat.core.resource import Ref
from heliostat.core.trouble import trouble
from heliostat.engine.ports import Result, Shell

PACKAGE = "heliostat.engine.sync.there"
MODULES = (
    "store",
    "trees",
    "lay",
    "keep",
    "runs",
    "target",
    "give",
    "spread",
    "main",
)  # each after what it imports
FIRST = "import sys,zlib;b=sys.stdin.buffer;exec(zlib.decompress(b.read(int(b.readline()))))"
LOAD = """
import sys, types
def load(package, texts):
    parts = package.split(".")
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = []
    for name, text in texts.items():
        module = types.ModuleType(package + "." + name)
        sys.modules[module.__name__] = module
        setattr(sys.modules[package], name, module)
        exec(compile(text, name + ".py", "exec"), module.__dict__)
    return module
load({package!r}, {texts!r}).main(b, sys.stdout.buffer)
"""


@cache
def program() -> bytes:
    """What the node reads before the order."""
    texts = {name: (pkgutil.get_data(PACKAGE, f"{name}.py") or b"").decode() for name in MODULES}
    packed = zlib.compress(LOAD.format(package=PACKAGE, texts=texts).encode())
    return b"%d\n%s" % (len(packed), packed)


async def order(
    shell: Shell,
    ref: Ref,
    name: str,
    ask: Mapping[str, Any],
    body: bytes = b"",
    *,
    on_output: Callable[[str, bytes], None] | None = None,
) -> dict[str, Any]:
    """Give it, and return the answer; with `on_output` the answer goes there instead."""
    line = json.dumps({"order": name, "home": ref.facts["home"], **ask}).encode()
    result = await shell.run(
        [ref.facts.get("python") or "python3", "-I", "-S", "-c", FIRST],
        stdin=b"".join((program(), line, b"\n", body)),
        on_output=on_output,
    )
    if result.code:
        raise refused(ref, result)
    if on_output:
        return {}
    try:
        answer: dict[str, Any] = json.loads(result.out)
    except ValueError:
        raise refused(ref, result) from None
    if "errno" in answer:
        raise refusal(ref, answer)
    return answer


def refusal(ref: Ref, answer: Mapping[str, Any]) -> HelioError:
    """The node's system said no."""
    error = OSError(answer["errno"], answer["strerror"], answer["filename"])
    return trouble(error, f"{ref.key} cannot do that with its files", instead="name another place")


def refused(ref: Ref, result: Result) -> HelioError:
    """It did not get to an answer."""
    said = result.err.decode(errors="replace").strip().splitlines()
    if result.code in (126, 127):
        return Unavailable(
            f"{ref.key} has no Python at {ref.facts.get('python') or 'python3'}", why=said[-1] if said else ""
        )
    why = said[-1] if said else f"the command there ended with {result.code} and said nothing"
    return Unavailable(f"files could not be exchanged with {ref.key}", why=why, fix="run this again")
