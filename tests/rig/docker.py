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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from tests.rig import debian
from tests.rig.rig import wait_until

RAY_IMAGE = "helio-test/ray:local"
PROMETHEUS_IMAGE = "prom/prometheus:v2.53.5"
STORE_IMAGE = "chrislusf/seaweedfs:4.48"
TRAIN_IMAGE = "helio-test/ray-train:local"
LAB_IMAGE = "helio-test/lab:local"
PACKAGES_OF_NODES = ("ray[default]", "click", "h11", "pathspec", "PyYAML", "rich")  # the last: helio's own
EXTRA = Path(__file__).parents[2] / "requirements" / "images.lock"
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
        "iptables": "iptables",
        "prometheus": "prometheus",
    }
    lacking = [part for program, part in parts.items() if shutil.which(program) is None]
    if (
        not lacking
        and subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode
    ):
        lacking.append("Docker Compose v2")
    return ", ".join([*lacking, *filter(None, [debian.missing()])])


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


def files_of(names: Sequence[str]) -> dict[str, Path]:
    """Packages of this environment as they lie in an image; some share a file."""
    dists = [importlib.metadata.distribution(name) for name in sorted(closure(names))]
    files = {str(file): Path(str(file.locate())) for dist in dists for file in dist.files or ()}
    return {f"{packages_folder()}/{name}": path for name, path in files.items() if not name.startswith("..")}


def files_below(folder: Path, target: str) -> dict[str, Path]:
    return {f"{target}/{path.relative_to(folder)}": path for path in folder.rglob("*")}


def add(tar: Path, files: dict[str, Path]) -> None:
    """Put files into the archive of an image; one with two of a name would be refused."""
    with tarfile.open(tar, "a") as archive:
        for name, path in files.items():
            if path.is_file():
                archive.add(path, arcname=f".{name}")


def has(engine: Engine, image: str) -> bool:
    """Whether it could be made here."""
    return engine.try_("image", "inspect", image).returncode == 0


def load(engine: Engine, tar: Path, name: str) -> None:
    """An image of one layer."""
    changes = ["--change", "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
    engine.docker("import", *changes, str(tar), name)


def images(engine: Engine) -> None:
    """All images that tests ask for, as one under many names: no registry, and one copy of everything.

    Debian's Python with this environment's Ray, JupyterLab, an S3 store with its clients, Prometheus.
    """
    tar, extra = engine.folder / "all.tar", engine.folder / "extra"
    with ThreadPoolExecutor() as pool:
        downloading = pool.submit(download, extra)
        debian.write(tar)
        downloaded = downloading.result()
    files = files_of(PACKAGES_OF_NODES)
    names = [RAY_IMAGE, PROMETHEUS_IMAGE]
    if downloaded:
        names += [STORE_IMAGE, LAB_IMAGE]
        files = {
            **files_below(extra, packages_folder()),
            **files_below(extra / "share", "/usr/local/share"),
            **files_below(extra / "bin", "/usr/local/bin"),
            **files,
        }
    for name in ("prometheus", "promtool"):
        files[f"/usr/bin/{name}"] = Path(str(shutil.which(name)))
    script = files["/usr/local/bin/ray"] = engine.folder / "ray"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    add(tar, files)
    load(engine, tar, RAY_IMAGE)
    for name in names[1:]:
        engine.docker("tag", RAY_IMAGE, name)
    tar.unlink()
    shutil.rmtree(extra, ignore_errors=True)


def download(folder: Path) -> Path | None:
    """Packages that only tests with containers need, in a folder; None where they cannot be had.

    From a lock of their own, which agrees with that of this environment: nothing is left to be resolved.
    """
    words = [sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--no-deps", "--require-hashes"]
    words += ["--target", str(folder), "-r", str(EXTRA)]
    done = subprocess.run(words, capture_output=True, check=False, timeout=300)
    return folder if done.returncode == 0 else None


def packages_folder() -> str:
    """Where Debian's Python looks for what is not Debian's."""
    return PACKAGES.format(f"{sys.version_info[0]}.{sys.version_info[1]}")


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
