"""The options of `run` and `submit`, and how they become what the engine is asked."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from heliostat.core import units
from heliostat.core.errors import UsageError
from heliostat.core.job import Needs
from heliostat.core.run import OnInterrupt, RunAsk

if TYPE_CHECKING:
    from heliostat.core.spec import Spec

F = TypeVar("F", bound=Callable[..., Any])

# Ray's own names of these options are accepted too: whoever knows `ray job submit` needs to learn nothing.
OPTIONS = (
    click.option("--num-cpus", "--entrypoint-num-cpus", "cpus", metavar="N", type=click.FloatRange(0),
                 help="CPUs that the driver itself reserves."),
    click.option("--num-gpus", "--entrypoint-num-gpus", "gpus", metavar="N", type=click.FloatRange(0),
                 help="GPUs likewise."),
    click.option("--memory", "--entrypoint-memory", "memory", metavar="SIZE", help="Memory likewise: 4 GB."),
    click.option("--resources", "--entrypoint-resources", "resources", metavar="JSON",
                 help='Other resources likewise: \'{"fast_disk": 1}\', or fast_disk=1.'),
    click.option("--env", "-e", "env", metavar="NAME=VALUE", multiple=True,
                 help="A variable of the job; NAME alone takes yours."),
    click.option("--requirements", "-r", metavar="FILE", help="Packages that pip installs for this job."),
    click.option("--runtime-env", metavar="FILE", help="Ray's runtime environment, YAML or JSON."),
    click.option("--runtime-env-json", metavar="JSON", help="The same, in place."),
    click.option("--work", "--working-dir", "work", metavar="FOLDER",
                 help="Send this folder, however large."),
    click.option("--no-work", is_flag=True, help="Send no folder."),
    click.option("--cwd", metavar="FOLDER", help="Start in this folder of the one that is sent."),
    click.option("--name", metavar="NAME", help="What the run is called; its id begins so."),
    click.option("--down", is_flag=True, help="Remove the cluster when the job has ended, however it ended."),
)  # fmt: skip


def run_options(function: F) -> F:
    """Put them all on a command."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def asked(spec: Spec, words: Sequence[str], *, dashes: bool, detach: bool, on_interrupt: OnInterrupt,
          **said: Any) -> RunAsk:  # fmt: skip
    """One run, as typed by somebody who stands in the current folder."""
    from heliostat.engine.target import run_ask

    if said["no_work"] and said["work"]:
        raise UsageError("--work and --no-work contradict each other")
    return run_ask(
        spec,
        words,
        file=not dashes,
        here=Path.cwd(),
        work="" if said["no_work"] else said["work"],
        cwd=said["cwd"],
        needs=_needs(said),
        env=_env(said["env"]),
        requirements=said["requirements"],
        runtime_env=_runtime_env(said["runtime_env"], said["runtime_env_json"]),
        name=said["name"],
        detach=detach,
        down=said["down"],
        on_interrupt=on_interrupt,
    )


def _needs(said: dict[str, Any]) -> Needs:
    return Needs(
        cpus=_amount(said["cpus"] or 0),
        gpus=_amount(said["gpus"] or 0),
        memory=_size(said["memory"]) if said["memory"] else 0,
        resources=_resources(said["resources"]) if said["resources"] else {},
    )


def _amount(number: float) -> float:
    """A number that there can be so much of."""
    if not 0 <= number < math.inf:  # nan is neither
        raise UsageError(f"{number:g} is no amount that a job can reserve", fix="0, or a number above it")
    return number


def _size(text: str) -> int:
    try:
        return int(text) if text.isdigit() else units.size(text)  # Ray's own option wants bytes
    except units.Malformed as error:
        raise UsageError(f"--memory {text} is no size", fix="write a size, such as 4 GB") from error


def _resources(text: str) -> dict[str, float]:
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)
        except ValueError as error:
            raise UsageError("--resources is no JSON", why=str(error), fix="'{\"fast_disk\": 1}'") from error
    else:
        found = dict(part.partition("=")[::2] for part in text.split(","))
    try:
        return {str(name).strip(): _amount(float(amount)) for name, amount in found.items()}
    except (TypeError, ValueError) as error:
        raise UsageError(f"--resources {text}: an amount is no number", fix="fast_disk=1") from error


def _env(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise UsageError(f"--env {word}: {name!r} is no name of a variable", fix="NAME=VALUE, or NAME")
        if not equals and name not in os.environ:
            raise UsageError(f"--env {name}: you have no variable of that name", fix=f"--env {name}=VALUE")
        found[name] = value if equals else os.environ[name]
    return found


def _runtime_env(file: str | None, text: str | None) -> dict[str, Any]:
    if file is None and text is None:
        return {}
    import yaml

    what = file or "--runtime-env-json"
    try:
        # JSON is YAML; nothing but plain data is built from it.
        found = yaml.safe_load(Path(file).expanduser().read_text(encoding="utf-8") if file else str(text))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{what} cannot be read as a runtime environment", why=str(error)) from error
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise UsageError(
            f"{what} is no runtime environment", why="it is not a mapping", fix='{"pip": ["six"]}'
        )
    return found
