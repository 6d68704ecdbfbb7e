"""`helio image`: build the nodes' image, or push it where nodes can pull it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options

if TYPE_CHECKING:
    from heliostat.cli.session import Session
    from heliostat.core.spec import Spec


@helio_command(
    "image",
    help="Build the image of the file's `dockerfile`, or of its `image` with the commands of `setup` in it, "
    "on the engine that `docker` reaches (or `compose: {context: …}`); push one to its registry.",
    short_help="Build the nodes' image, or push it.",
    example="helio image build\nhelio image push --name ghcr.io/lab/ray:7",
    words=1,
)
@click.argument("what", type=click.Choice(["build", "push"]))
@click.option("--name", default="", help="Its whole name (default: one of the cluster's own).")
@click.pass_obj
def command(options: Options, what: str, name: str) -> int:
    from heliostat.cli.session import Session

    session = Session(options)
    spec = session.decoded.spec
    made = session.wait_for(lambda: _do(session, spec, what, name))
    done = "is built" if what == "build" else "is pushed"
    return session.show([f"{made} {done}"], {"verb": "image", "name": made})


async def _do(session: Session, spec: Spec, what: str, name: str) -> str:
    from heliostat.core.event import Output
    from heliostat.grounds.compose.want import image_of
    from heliostat.shells.docker_cli import Docker
    from heliostat.shells.docker_images import build, push, recipe
    from heliostat.shells.docker_login import signed_in

    docker = Docker(spec.compose.context)

    def heard(data: bytes) -> None:
        session.renderer(Output(data=data, stream="stderr"))

    base = image_of(spec, spec.head)
    with signed_in(docker, spec) as engine:
        if what == "build":
            return await build(engine, recipe(spec, base), heard, name=name)
        name = name or (recipe(spec, base).name if spec.dockerfile else base)
        await push(engine, name, heard)
        return name
