"""A small Debian with a Python for images, from what this machine has installed: nothing is downloaded."""

from __future__ import annotations

import io
import os
import re
import subprocess
import tarfile
from pathlib import Path

PACKAGES = (
    "base-files", "base-passwd", "bash", "coreutils", "dash", "findutils", "grep", "gzip", "hostname",
    "libc-bin", "libgomp1", "libstdc++6", "procps", "python3", "sed", "tar",
)  # fmt: skip
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64",
         "usr/bin/awk": "mawk", "usr/bin/which": "which.debianutils"}  # fmt: skip
FOLDERS = {"tmp": 0o1777, "var/tmp": 0o1777, "root": 0o700, "proc": 0o755, "sys": 0o755, "dev": 0o755,
           "run": 0o755, "etc": 0o755, "home": 0o755, "mnt": 0o755, "opt": 0o755,
           "usr/local/bin": 0o755}  # fmt: skip
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\n",
    "etc/group": "root:x:0:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
LEFT_OUT = re.compile(r"/usr/share/(doc|man|locale|info|lintian|bug)/|/usr/lib/python3/dist-packages/")


def missing() -> str:
    """What this machine lacks to copy from; empty when nothing."""
    if not Path("/var/lib/dpkg/status").exists() or not os.path.islink("/bin"):
        return "a Debian of today"
    lacking = [name for name in PACKAGES if name not in _needs()]
    return ", ".join(lacking)


def _needs() -> dict[str, set[str]]:
    """Each installed package, also under the names that it provides, and the names that it needs."""
    form = "${binary:Package}\t${db:Status-Status}\t${Pre-Depends}, ${Depends}\t${Provides}\n"
    told = subprocess.run(["dpkg-query", "-W", "-f", form], capture_output=True, text=True, check=True).stdout
    found: dict[str, set[str]] = {}
    for line in told.splitlines():
        name, state, needs, provides = line.split("\t")
        if state == "installed":
            plain = name.partition(":")[0]
            found[plain] = set(re.findall(r"(?:^|[,|])\s*([\w.+-]+)", needs))
            for other in re.findall(r"(?:^|,)\s*([\w.+-]+)", provides):
                found.setdefault(other, {plain})
    return found


def files() -> list[str]:
    """Every file of these packages and of what they need, where it really lies."""
    needs, todo, done = _needs(), list(PACKAGES), set[str]()
    while todo:
        name = todo.pop()
        if name in needs and name not in done:
            done.add(name)
            todo += needs[name]
    told = subprocess.run(
        ["dpkg-query", "-L", *sorted(done)], capture_output=True, text=True, check=False
    ).stdout
    paths = (path for path in told.splitlines() if path.startswith("/") and not LEFT_OUT.search(path))
    real = {os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)) for path in paths}
    return sorted(path for path in real if os.path.islink(path) or os.path.isfile(path))


def write(tar: Path) -> None:
    """All of it as the archive of an image."""
    with tarfile.open(tar, "w") as archive:
        for name, mode in FOLDERS.items():
            info = tarfile.TarInfo(f"./{name}")
            info.type, info.mode = tarfile.DIRTYPE, mode
            archive.addfile(info)
        for name, target in LINKS.items():
            info = tarfile.TarInfo(f"./{name}")
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
        for name, text in FILES.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
        for path in files():
            if path.lstrip("/") not in {**FILES, **LINKS}:
                archive.add(path, arcname=f".{path}", recursive=False)
        if os.path.exists("/etc/ld.so.cache"):
            archive.add("/etc/ld.so.cache", arcname="./etc/ld.so.cache")
