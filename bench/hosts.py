"""64 real hosts with sshd and a `ray` that is a stub: its start sleeps 1 s. From nothing to all started.

Logins, agents, directories, node programs and launchers are real; Ray is not. All hosts share the cores of
this machine, and a login alone costs them a fifth of a second: it is the launcher's cost, no lab's.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.row import Row
from bench.thousand import spec_of, up
from heliostat.core.owner import Owner
from heliostat.grounds.ssh.ground import SshGround
from tests.rig.rig import Rig, missing

COUNTS = (16, 64)
GOAL = 8.0  # seconds for 64
PYTHON = "/opt/stub/bin/python"
STUB = {
    "__init__.py": "",
    "_private/__init__.py": "",
    "_private/node.py": "class Node:\n    pass\n",
    "_private/services.py": (
        "import subprocess, types\n"
        "def start_ray_process(command, process_type):\n"
        "    quiet = dict.fromkeys(('stdin', 'stdout', 'stderr'), subprocess.DEVNULL)\n"
        "    return types.SimpleNamespace(process=subprocess.Popen(command, **quiet))\n"
    ),
    "scripts/__init__.py": "",
    "scripts/scripts.py": (
        "import threading\n"
        "from ray._private import services\n"
        "LISTEN = 'import signal, socket as s, sys; _, ip, port = sys.argv; '\n"
        "LISTEN += 'held = s.create_server((ip, int(port))); signal.pause()'\n"
        "class start:\n"
        "    @staticmethod\n"
        "    def main(args, prog_name):\n"
        "        said = dict(word.lstrip('-').partition('=')[::2] for word in args)\n"
        "        if 'head' in said:\n"
        "            listen = ['/usr/bin/python3', '-I', '-S', '-c', LISTEN]\n"
        "            listen += [said['node-ip-address'], said['port']]\n"
        "            services.start_ray_process(listen, 'gcs_server')\n"
        "        threading.Event().wait(1)\n"
        "        services.start_ray_process(['sleep', '3600'], 'raylet')\n"
    ),
}


def rows(runs: int) -> Iterator[Row]:
    if lacking := missing():
        raise SystemExit(f"the bench of hosts needs {lacking}")
    folder = Path(tempfile.mkdtemp(prefix="hs", dir="/tmp"))
    try:
        stub(folder / "stub")
        with Rig(shares=[f"{folder}/stub:/opt/stub"]) as rig:
            rig.new(max(COUNTS))
            os.environ |= {"HELIO_SSH_CONFIG": str(rig.config), "HELIO_STATE": str(folder / "state")}
            for count in COUNTS:
                taken = sorted(
                    once([host.name for host in rig.many(range(1, count + 1))]) for _ in range(runs)
                )
                yield Row(
                    name=f"{count} hosts over ssh, a stub of Ray that sleeps 1 s, to started",
                    ours=taken[len(taken) // 2],
                    limit=GOAL if count == 64 else None,
                    limit_name="the goal for 64" if count == 64 else "",
                    note=f"median of {runs}; a stub, no Ray",
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def stub(at: Path) -> None:
    """A virtual environment made by hand, with that for its Ray."""
    packages = at / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/ray"
    for name, text in STUB.items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text)
    (at / "bin").mkdir()
    (at / "bin/python").symlink_to("/usr/bin/python3")
    (at / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    for path in (at.parent, at, *at.rglob("*")):
        if not path.is_symlink():  # the mode of what it leads to is the machine's
            path.chmod(0o755 if path.is_dir() else 0o644)


def once(names: list[str]) -> float:
    """Seconds until all are started; what was made is gone again."""

    async def whole() -> float:
        spec = spec_of(f"n{secrets.token_hex(3)}", names, PYTHON)
        ground = SshGround(spec)
        owner = Owner(await ground.principal(spec), spec.cluster)
        began = time.perf_counter()
        await up(ground, spec, owner)
        taken = time.perf_counter() - began
        async for outcome in ground.delete(await ground.find(owner)):
            if outcome.error:
                raise outcome.error
        ground.close()
        return taken

    return asyncio.run(whole())
