"""`helio bundle`: gather what hosts without internet need, for `up` to take along."""

from __future__ import annotations

import sys

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options


@helio_command(
    "bundle",
    help="Gather the wheels of Ray, in the release of the file, for hosts without internet: `helio up` takes "
    "them to every SSH host that has no Ray yet. PACKAGES are brought along, for commands of `setup`.",
    short_help="Gather Ray's wheels for hosts without internet.",
    example="helio bundle\nhelio bundle --python 3.12 --machine aarch64 torch",
)
@click.argument("packages", nargs=-1)
@click.option("--python", default="", help="The Python of the hosts (default: the file's, else yours).")
@click.option("--machine", type=click.Choice(["x86_64", "aarch64"]), default="x86_64", show_default=True)
@click.pass_obj
def command(options: Options, packages: tuple[str, ...], python: str, machine: str) -> int:
    from heliostat.cli.session import Session
    from heliostat.core.errors import UsageError
    from heliostat.core.event import Output
    from heliostat.ray.bundle import Bundle, gather, minor

    session = Session(options)
    spec = session.decoded.spec
    named = spec.python if spec.python and "/" not in spec.python else ""
    python = minor(python or named or ".".join(map(str, sys.version_info[:2])))
    if spec.ray is None:
        fix = 'write the release into the file, such as `ray: "2.60.0"`, or --set ray=2.60.0'
        raise UsageError("the file does not say which Ray", why="a bundle holds exactly one", fix=fix)
    bundle = Bundle(ray=spec.ray, python=python, machine=machine)

    def heard(data: bytes) -> None:
        if data:
            session.renderer(Output(data=data, stream="stderr"))

    folder = session.wait_for(lambda: gather(bundle, packages, heard))
    wheels = [path.stat().st_size for path in folder.glob("*.whl")]
    size = f"{len(wheels)} packages, {sum(wheels) / 1e6:.0f} MB"
    text = f"Ray {bundle.ray} for Python {python} on {machine}: {size}"
    data = {"verb": "bundle", "folder": str(folder), "packages": len(wheels), "bytes": sum(wheels)}
    return session.show([text, f"in {folder}; `helio up` takes them to hosts that have no Ray yet"], data)
