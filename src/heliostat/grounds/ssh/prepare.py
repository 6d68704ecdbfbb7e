"""Run the bootstrap script on a host, and tell of its steps."""

from __future__ import annotations

from heliostat.core.errors import HelioError, MissingPart, Unavailable
from heliostat.core.event import Step
from heliostat.engine.ports import Emit
from heliostat.grounds.ssh.hosts import Hosts
from heliostat.ray import bootstrap


async def prepare(hosts: Hosts, host: str, name: str, wanted: bootstrap.Wanted, emit: Emit) -> str:
    """A Python with that Ray on that host; quick where it is there already."""
    said, errors = bytearray(), bytearray()

    def hear(stream: str, data: bytes) -> None:
        if stream == "stderr":
            errors.extend(data)
            return
        done = said.count(b"\n")
        said.extend(data)
        for line in said.decode(errors="replace").splitlines(keepends=True)[done:]:
            if line.startswith(bootstrap.STEP) and line.endswith("\n"):
                emit(Step(subject=name, state="preparing", detail=line.removeprefix(bootstrap.STEP).strip()))

    async with hosts.shell(host) as shell:
        result = await shell.run(
            ["sh", "-s"], stdin=bootstrap.script(wanted).encode(), on_output=hear, cwd="/"
        )
    lines = said.decode(errors="replace").splitlines()
    if result.code == 0:
        return lines[-1].removeprefix(bootstrap.PYTHON)
    raise _failed(host, result.code, wanted, lines, errors.decode(errors="replace").strip())


def _failed(host: str, code: int, wanted: bootstrap.Wanted, lines: list[str], errors: str) -> HelioError:
    steps = [line.removeprefix(bootstrap.STEP) for line in lines if line.startswith(bootstrap.STEP)]
    if code == bootstrap.NOTHING_FITS:
        return MissingPart(
            f"{host} has no Python for Ray {wanted.ray}",
            why=steps[-1] if steps else "nothing fits",
            fix="install uv there (no root is needed), or give python: the path of an environment with Ray",
        )
    doing = steps[-1] if steps else "the preparation"
    return Unavailable(
        f"{host}: {doing} failed with exit code {code}",
        why=errors,
        fix=f"see {host}:~/.cache/heliostat/python/{wanted.digest}.log; `helio up` tries it again",
    )
