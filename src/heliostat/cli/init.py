"""`helio init`: a commented helio.yaml to start from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heliostat.cli.command import helio_command
from heliostat.cli.options import Options
from heliostat.core.errors import UsageError

if TYPE_CHECKING:
    from heliostat.cli.session import Session
    from heliostat.core.spec import Spec


@helio_command(
    "init",
    help="Write a commented helio.yaml into DIR (default: here). On a terminal it asks for the name, the "
    "place and the workers; with any of these options, or without a terminal, it asks nothing. A file "
    "that is there is never replaced without asking.",
    short_help="Write a helio.yaml to start from.",
    example="helio init\nhelio init --where local --workers 3",
)
@click.argument("folder", metavar="[DIR]", required=False, default=".")
@click.option("--cluster", metavar="NAME", help="The cluster's name (default: after the folder).")
@click.option("--where", metavar="PLACE", help="The place (default: local).")
@click.option("--workers", metavar="COUNT", help="How many workers, such as 3.")
@click.option(
    "--host", "hosts", metavar="HOST", multiple=True, help="A host of `where: ssh`; may be repeated."
)
@click.option(
    "--schema", is_flag=True, help="Write helio.schema.json too, with which editors check the file."
)
@click.pass_obj
def command(options: Options, /, folder: str, schema: bool, **given: Any) -> int:
    from heliostat.cli.render.plans import cluster_line
    from heliostat.cli.session import Session
    from heliostat.core.decode import decode
    from heliostat.core.starter import FILE_NAME, SCHEMA_FILE, starter
    from heliostat.engine.files import write_text

    session = Session(options)
    target = Path(folder).absolute()
    if target.exists() and not target.is_dir():
        raise UsageError(f"{folder} is a file", fix="name a directory: helio init DIR")
    text = starter(_spec(session, target, given), schema=schema)
    file = target / FILE_NAME
    made = decode(text, source=str(file), folder=str(target), env={})
    _may_write(session, [file, *([target / SCHEMA_FILE] if schema else [])])
    if schema:
        write_text(target / SCHEMA_FILE, _schema())
    write_text(file, text)
    for note in made.notes:
        session.renderer.screen.line(note)
    lines = [f"wrote {Path(folder) / FILE_NAME}: {cluster_line(made.spec)}", "next: helio up"]
    return session.show(lines, {"verb": "init", "file": str(file), "cluster": made.spec.cluster})


def _spec(session: Session, target: Path, given: dict[str, Any]) -> Spec:
    """What was said in options, else on the terminal, else the defaults."""
    said = {key: value for key, value in given.items() if value}
    if not said and session.terminal and not session.options.yes and not session.options.json:
        said = _asked(session, target)
    said.setdefault("cluster", suggested(target))
    said.setdefault("where", "local")
    return spec_of(said)


def _asked(session: Session, target: Path) -> dict[str, Any]:
    def word(question: str, key: str, default: str) -> str:
        def read(text: str) -> str:
            value(key, text, question)
            return text

        return session.ask.text(f"{question}:", default, read)

    said: dict[str, Any] = {
        "cluster": word("Name", "cluster", suggested(target)),
        "where": word("Place", "where", "local"),
    }
    if said["where"] == "ssh":
        said["hosts"] = session.ask.text("Hosts:", "node[01-04].lab", str).replace(",", " ").split()
    else:
        said["workers"] = word("Workers", "workers", "2")
    return said


def suggested(target: Path) -> str:
    """A valid name after the folder."""
    from heliostat.core.decode.forms import slug

    return slug(target.name) or "cluster"


def spec_of(said: dict[str, Any]) -> Spec:
    """The spec that the options mean; each is judged as the file's own key would be."""
    from heliostat.core.spec import Spec, SshSite

    hosts = said.pop("hosts", ())
    values = {key: value(key, text, f"--{key}") for key, text in said.items()}
    if values["where"] == "ssh" and not hosts:
        raise UsageError("where: ssh needs its hosts", fix="helio init --where ssh --host node1 --host node2")
    if hosts and values["where"] != "ssh":
        raise UsageError(f"--host is for --where ssh, not for {values['where']}", fix="helio init --help")
    return Spec(**values, ssh=SshSite(hosts=tuple(hosts)))


def value(key: str, text: str, name: str) -> Any:
    """Read one value by the decoder's own rule for that key."""
    from heliostat.core.decode.fields import TOP
    from heliostat.core.decode.log import Bad, Log
    from heliostat.core.decode.tree import Mark, Scalar

    scalar = Scalar(text, Mark(name), plain=True)
    try:
        return TOP.by_key[key].kind.take(scalar, scalar, (key,), Log())
    except Bad as bad:
        hint = f"; did you mean {bad.nearest}?" if bad.nearest else ""
        raise UsageError(f"{name}: {bad.text}{hint}", fix="helio init --help") from None


def _may_write(session: Session, files: list[Path]) -> None:
    from heliostat.core.errors import Interrupted

    there = [file.name for file in files if file.exists() or file.is_symlink()]
    if there and not session.ask(f"replace {' and '.join(there)}?", details=["what stands there is lost"]):
        raise Interrupted("nothing was written")


def _schema() -> str:
    import json

    from heliostat.core.schema import json_schema

    return json.dumps(json_schema(), indent=2) + "\n"
