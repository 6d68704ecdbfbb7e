"""A Python with Ray that hosts of the rig can run: the machine's own, with this environment's packages."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

SYSTEM = "/usr/bin/python3"
FOLDER = "/opt/helio-ray"
PYTHON = f"{FOLDER}/bin/python"


def missing() -> str:
    """Why there is none; empty when there is."""
    packages = Path(sysconfig.get_path("purelib"))
    if not (packages / "ray").is_dir():
        return "Ray in this environment (pip install 'heliostat[local]')"
    ours = sysconfig.get_python_version()
    theirs = subprocess.run(
        [SYSTEM, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return "" if theirs == ours else f"{SYSTEM} of version {ours}, as this environment's packages need it"


def shares(folder: Path) -> list[str]:
    """What hosts mount for it: a virtual environment made by hand, and the packages over it."""
    if missing():
        return []
    packages = f"lib/python{sysconfig.get_python_version()}/site-packages"
    (folder / packages).mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to(SYSTEM)
    (folder / "pyvenv.cfg").write_text(
        f"home = {Path(SYSTEM).parent}\ninclude-system-site-packages = false\n"
    )
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    return [f"{folder}:{FOLDER}", f"{sysconfig.get_path('purelib')}:{FOLDER}/{packages}"]
