"""exec: a command on some or all nodes in parallel, with each node's own exit code."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Callable, Mapping, Sequence

from heliostat.core.errors import HelioError, UsageError
from heliostat.core.event import Output
from heliostat.core.executed import Executed
from heliostat.core.names import group_of, number_of
from heliostat.core.resource import HEAD, Ref
from heliostat.engine.nodes import around, named
from heliostat.engine.patience import PATIENCE, Patience
from heliostat.engine.ports import Site

EnvOf = Callable[
    [Ref, Ref | None], Mapping[str, str]
]  # what a command finds on a node, its head known or not
AT_ONCE = 32  # nodes that are reached at the same time
# The node's own programs first, `ray` and `python` above all. What PATH is there, only the node knows.
FIRST = 'PATH="$1:$PATH"; export PATH; shift; exec "$@"'


async def execute(
    site: Site,
    command: Sequence[str],
    names: Sequence[str] | None = (HEAD,),
    *,
    env_of: EnvOf,
    stdin: bytes = b"",
    keep: bool = False,
    patience: Patience = PATIENCE,
) -> tuple[Executed, ...]:
    """Run a command on the nodes of these names (None: on all) and wait for its end everywhere.

    Its output is told as it comes, or with `keep` is in the result. A single node that cannot be reached is
    an error; of several, the others go on. Cancelling ends it on every node.
    """
    if not command:
        raise UsageError("nothing to run", fix="helio exec [NODE…|--all] -- COMMAND…")
    # The head tells where Ray is, whichever nodes are meant.
    found = await around(site, names, patience=patience)
    there = {ref.key: ref for ref in sorted(found.values(), key=_order)}
    nodes = named(site, there, names)
    several = len(nodes) > 1
    gate = asyncio.Semaphore(AT_ONCE)

    async def on(ref: Ref) -> Executed:
        one = _One(site, ref, env_of(ref, there.get(HEAD)), source=ref.key if several else "")
        async with gate:
            return await one.run(argv(ref, command), stdin, keep=keep)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(on(ref)) for ref in nodes]
    results = tuple(task.result() for task in tasks)
    if not several and results[0].error is not None:
        raise results[0].error
    return results


def argv(ref: Ref, command: Sequence[str]) -> list[str]:
    """One word is a shell's line, several are a program and its words; both find the node's Python first.

    >>> from heliostat.core.owner import Owner
    >>> argv(Ref(kind="node", key="head", id="1", owner=Owner("me", "c")), ["ls | wc -l"])
    ['sh', '-c', 'ls | wc -l']
    """
    words = ["sh", "-c", *command] if len(command) == 1 else list(command)
    python = ref.facts.get("python", "")
    return ["sh", "-c", FIRST, "exec", posixpath.dirname(python), *words] if "/" in python else words


def _order(ref: Ref) -> tuple[bool, str, int]:
    return ref.key != HEAD, group_of(ref.key), number_of(ref.key)


class _One:
    """The command on one node."""

    def __init__(self, site: Site, ref: Ref, env: Mapping[str, str], *, source: str) -> None:
        self.site = site
        self.ref = ref
        self.env = env
        self.source = source

    async def run(self, words: Sequence[str], stdin: bytes, *, keep: bool) -> Executed:
        take: Callable[[str, bytes], None] | None = None if keep else self._tell
        try:
            async with self.site.ground.shell(self.ref) as shell:
                done = await shell.run(words, stdin=stdin, env=self.env, on_output=take)
        except HelioError as error:
            return Executed(node=self.ref.key, error=error)
        code = 128 - done.code if done.code < 0 else done.code
        return Executed(node=self.ref.key, code=code, out=done.out, err=done.err)

    def _tell(self, stream: str, data: bytes) -> None:
        self.site.emit(Output(data=data, source=self.source, stream=stream))
