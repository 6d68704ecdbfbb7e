"""The node program as files to lay down on a node, and how it is started there."""

from __future__ import annotations

import hashlib
from functools import cache

MODULES = ("launch", "node", "ports", "processes", "setup", "watch")
FOLDER = "heliostat/ray/node_program"
START = f'''"""Start the node program (a configuration's path), or, named before, setup or launcher."""
import sys

if sys.argv[1] == "launch":
    from {FOLDER.replace("/", ".")}.launch import main
elif sys.argv[1] == "setup":
    from {FOLDER.replace("/", ".")}.setup import main
else:
    from {FOLDER.replace("/", ".")}.node import main
sys.exit(main(sys.argv[2:] if sys.argv[1] in ("launch", "setup") else sys.argv[1:]))
'''


@cache
def files() -> dict[str, str]:
    """Relative path to text. The package's own path, so that imports read the same here and there."""
    import pkgutil  # `status` is loaded without it

    package = FOLDER.replace("/", ".")
    texts = {name: (pkgutil.get_data(package, f"{name}.py") or b"").decode() for name in MODULES}
    return {"__main__.py": START, **{f"{FOLDER}/{name}.py": text for name, text in texts.items()}}


@cache
def digest() -> str:
    """Names this version of it."""
    text = "\0".join(f"{name}\0{text}" for name, text in sorted(files().items()))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def argv(python: str, folder: str, config: str) -> list[str]:
    """How it is started: isolated, without site packages, hence in a few milliseconds."""
    return [python, "-I", "-S", folder, config]


def runs_program(cmdline: bytes) -> bool:
    """Whether a process with these arguments (as /proc shows them) is a node program.

    >>> runs_program(b"py\\0-I\\0-S\\0/home/me/c/program/0123\\0/home/me/c/nodes/head/config.json\\0")
    True
    >>> runs_program(b"py\\0-u\\0/home/me/c/program/0123\\0launch\\0{}\\0")
    False
    """
    words = cmdline.split(b"\0")
    return (
        len(words) > 4
        and words[1:3] == [b"-I", b"-S"]
        and b"/program/" in words[3]
        and words[4].endswith(b"/config.json")
    )
