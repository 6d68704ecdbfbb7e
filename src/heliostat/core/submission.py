"""From what a person asked to what the Jobs API is sent. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heliostat.core.errors import UsageError
from heliostat.core.job import COMMAND, JobRequest
from heliostat.core.run import RunAsk

SECRETS = (
    "secrets.sh"  # in a run's folder: sourced by the driver and its workers, readable by the owner alone
)
WRAPPER = "python"  # in a run's folder, where there are secrets: the Python of the job's workers

BUILTIN = frozenset({".", "cd", "eval", "exec", "exit", "export", "set", "source", "trap", "ulimit", "umask"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a run finds on its cluster."""

    cluster: str
    run: str
    folder: str  # the run's folder on every node: work/ and outputs/ are inside
    python: str  # the nodes' interpreter
    address: str = ""  # of Ray's head, host:port
    storage: str | None = None
    work: bool = True  # a work folder was sent
    secrets: bool = False  # the run's folder has a file of them
    packages: tuple[str, ...] = ()  # what pip shall install for this job
    extra: Mapping[str, str] = field(default_factory=dict, hash=False)  # from an `env` given with the run


def slug(ask: RunAsk) -> str:
    """A short name for a run, from what it runs.

    >>> slug(RunAsk(command=("examples/hello.py",), file=True)), slug(RunAsk(command=("echo hi | wc",)))
    ('hello', 'echo')
    """
    word = ask.name or ask.command[0].split()[0].rpartition("/")[2].removesuffix(".py")
    return re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-")[:24].strip("-") or "run"


def request(ask: RunAsk, there: Surroundings) -> JobRequest:
    """The submission: what runs, where it starts, and what it finds in its environment."""
    return JobRequest(
        id=there.run,
        entrypoint=entrypoint(ask, there),
        runtime_env=runtime_env(ask, there),
        metadata={COMMAND: shown(ask), **({"name": ask.name} if ask.name else {})},
        needs=ask.needs,
    )


def shown(ask: RunAsk) -> str:
    """What was asked to run, as a person reads it.

    >>> shown(RunAsk(command=("a b.py", "x"), file=True)), shown(RunAsk(command=("echo hi | wc",)))
    ("python 'a b.py' x", 'echo hi | wc')
    """
    if ask.file:
        return shlex.join(("python", *ask.command))
    return ask.command[0] if len(ask.command) == 1 else shlex.join(ask.command)


def entrypoint(ask: RunAsk, there: Surroundings) -> str:
    """A line for sh: its last command takes the shell's place, so that signals and codes are its own.

    >>> there = Surroundings(cluster="c", run="r", folder="/h/runs/r", python="/p", secrets=True)
    >>> entrypoint(RunAsk(command=("a.py", "x y"), file=True, cwd="sub"), there)
    ". /h/runs/r/secrets.sh && cd sub && exec python a.py 'x y'"
    >>> plain = Surroundings(cluster="c", run="r", folder="/h/runs/r", python="/p")
    >>> entrypoint(RunAsk(command=("echo hi | wc",)), plain)
    'echo hi | wc'
    """
    steps = [f". {shlex.quote(f'{there.folder}/{SECRETS}')}"] if there.secrets else []
    if ask.cwd:
        steps.append(f"cd {shlex.quote(ask.cwd)}")
    line = shown(ask)
    if ask.file or (len(ask.command) > 1 and ask.command[0] not in BUILTIN):
        steps.append(f"exec {line}")
    else:  # it may hold anything that sh knows: exec would take only its first command
        steps.append(f"{{ {line}\n}}" if steps else line)
    return " && ".join(steps)


def runtime_env(ask: RunAsk, there: Surroundings) -> dict[str, Any]:
    """Ray's runtime environment: the person's own, and what a job of ours finds."""
    env = dict(ask.runtime_env)
    given = env.get("env_vars") or {}
    if not isinstance(given, Mapping) or not all(
        isinstance(word, str) for pair in given.items() for word in pair
    ):
        raise UsageError(
            "env_vars of the runtime environment is no mapping of names to texts",
            why="Ray takes nothing else there",
            fix='{"env_vars": {"NAME": "1"}}',
        )
    env["env_vars"] = {**_found(there), **given, **ask.env}
    if there.work or "working_dir" not in env:
        if "working_dir" in env:
            raise UsageError(
                "the runtime environment names a working_dir, and a work folder is sent too",
                why="a job starts in one of them only",
                fix="take working_dir out, or send no folder: --no-work",
            )
        env["working_dir"] = f"local://{there.folder}/work"
    if there.packages:
        if clash := {"pip", "uv", "conda"} & env.keys():
            raise UsageError(
                f"packages are named twice: by requirements and by {', '.join(sorted(clash))} of the runtime "
                "environment",
                fix="keep one of them",
            )
        env["pip"] = list(there.packages)
    if there.secrets and "py_executable" not in env:
        env["py_executable"] = f"{there.folder}/{WRAPPER}"
    return env


def _found(there: Surroundings) -> dict[str, str]:
    """What every job of ours finds in its environment."""
    ours = {
        "HELIO_CLUSTER": there.cluster,
        "HELIO_RUN": there.run,
        "HELIO_OUTPUTS": f"{there.folder}/outputs",
        "PYTHONUNBUFFERED": "1",  # a log that is followed must not come in blocks
    }
    if there.address:
        ours["HELIO_HEAD_IP"] = there.address.rpartition(":")[0]
        # Ray gives it to the driver alone; in tasks, parts of Ray would ask any other Ray on that machine.
        ours["RAY_ADDRESS"] = there.address
    if there.storage:
        ours["HELIO_STORAGE"] = there.storage
    return ours


def secrets_text(values: Mapping[str, str]) -> str:
    """Shell lines that export them.

    >>> secrets_text({"KEY": "it's"})
    'export KEY=\\'it\\'"\\'"\\'s\\'\\n'
    """
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())


def wrapper_text(there: Surroundings) -> str:
    """A Python for the job's workers that has the secrets: Ray writes its own `env_vars` into logs."""
    # Where packages are installed for the job, its own environment is the active one.
    python = "python" if there.packages else shlex.quote(there.python)
    return f'#!/bin/sh\n. {shlex.quote(f"{there.folder}/{SECRETS}")}\nexec {python} "$@"\n'


def dotenv(text: str) -> dict[str, str]:
    """NAME=value lines; comments, `export` and quotes as everybody writes them.

    >>> dotenv('# x\\nexport A="b c"\\nB=1 # no\\nC=\\'#\\'')
    {'A': 'b c', 'B': '1', 'C': '#'}
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = re.match(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$", line)
        if not match:
            continue
        value = match[2]
        quoted = re.fullmatch(r"""(["'])(.*?)\1(?:\s+#.*)?""", value)
        found[match[1]] = quoted[2] if quoted else re.split(r"\s+#|^#", value)[0].strip()
    return found


def inline_packages(text: str) -> tuple[str, ...]:
    """What a script's own header (PEP 723) says that it needs.

    >>> inline_packages('# /// script\\n# dependencies = ["six>=1"]\\n# ///\\nprint(1)')
    ('six>=1',)
    """
    import tomllib

    block = re.search(r"(?m)^# /// script$\s(?P<body>(^#(| .*)$\s)+)^# ///$", text)
    if not block:
        return ()
    lines = (line[2:] if line.startswith("# ") else line[1:] for line in block["body"].splitlines())
    try:
        header = tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as error:
        raise UsageError("the script's own header (# /// script) cannot be read", why=str(error)) from error
    return tuple(str(one) for one in header.get("dependencies", ()))


def requirement_lines(text: str) -> tuple[str, ...]:
    """The lines of a requirements file, as pip reads them.

    >>> requirement_lines("# c\\nsix\\n\\nray[default] # no\\n-r more.txt")
    ('six', 'ray[default]', '-r more.txt')
    """
    lines = (re.split(r"(?:^|\s)#", line)[0].strip() for line in text.splitlines())
    return tuple(line for line in lines if line)


def without(packages: Sequence[str], name: str) -> tuple[str, ...]:
    """The same without one that the nodes have already.

    >>> without(("ray[tune]>=2", "raylib", "six"), "ray")
    ('raylib', 'six')
    """
    named = re.compile(rf"{re.escape(name)}\s*(?:$|[\[<>=!~;@ ])", re.IGNORECASE)
    return tuple(one for one in packages if not named.match(one))
