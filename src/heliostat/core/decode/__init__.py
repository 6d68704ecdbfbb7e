"""From a file's text to a Spec: every mistake at once, every value with its origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from heliostat.core.decode.compose import compose, decode_bytes
from heliostat.core.decode.log import Given, Log, Path, dotted
from heliostat.core.decode.tree import Mark, Scalar, Table, is_filled
from heliostat.core.downloads import masked
from heliostat.core.errors import FileError
from heliostat.core.owner import UNWRITTEN
from heliostat.core.spec import Decoded, Origin, Spec

__all__ = ["decode", "decode_bytes", "default_cluster"]

_NOBODY = Mark("")  # the mark of what no person wrote


def decode(
    text: str,
    *,
    source: str,
    folder: str,
    env: Mapping[str, str],
    sets: Sequence[str] = (),
    makes: bool = True,
) -> Decoded:
    """Decode a cluster file. `source` names it in messages, `folder` is where its relative paths start.

    Unless something is to be made by it (`makes`), what is not available yet is no mistake in it.

    >>> made = decode("cluster: demo\\nworkers: 3", source="helio.yaml", folder="/home/me", env={})
    >>> made.spec.cluster, made.spec.workers[0].count.low
    ('demo', 3)
    """
    tree, log = compose(text, source), Log()
    if tree.get("cluster") is not None or tree.get("where") is not None:
        return _decode(tree, log, source=source, folder=folder, env=env, sets=sets, makes=makes)
    from heliostat.core.foreign import read

    other = read(tree, log)
    whole = other.tree if other else tree
    made = _decode(whole, log, source=source, folder=folder, env=env, sets=sets, makes=makes)
    if other is None:
        return made
    return replace(made, notes=(*other.notes, *made.notes), remarks=other.remarks)


def default_cluster(
    folder: str, *, env: Mapping[str, str] | None = None, sets: Sequence[str] = ()
) -> Decoded:
    """The cluster that the verbs work on without a file: on this machine, called `default`.

    >>> default_cluster("/home/me").spec.cluster
    'default'
    """
    tree = Table(((Scalar("cluster", _NOBODY), Scalar(UNWRITTEN[0], _NOBODY)),), _NOBODY)
    return _decode(tree, Log(), source="", folder=folder, env=env or {}, sets=sets)


def _decode(
    tree: Table,
    log: Log,
    *,
    source: str,
    folder: str,
    env: Mapping[str, str],
    sets: Sequence[str],
    makes: bool = True,
) -> Decoded:
    from heliostat.core import available, defaults
    from heliostat.core.decode.check import check, derive
    from heliostat.core.decode.fields import TOP
    from heliostat.core.decode.fill import fill
    from heliostat.core.decode.sets import lay_over

    told = bool(log.problems)  # while the tree was made: it is not whole
    tree = lay_over(tree, sets, log)
    tree = Table(tuple((key, fill(value, env, log)) for key, value in tree), tree.mark)
    spec: Spec = replace(TOP.read(tree, (), log), folder=folder, source=source)
    origins = tuple(_origins(log))
    notes: tuple[str, ...] = ()
    if log.sound("where") and not told:
        spec, derived = derive(spec, log)
        spec, filled = defaults.fill(spec, log)
        origins += derived + filled
        check(spec, log)
        notes = available.check(spec, log if makes else replace(log, problems=[]))
    if log.problems:
        raise FileError(
            sorted(log.problems, key=lambda problem: (problem.line == 0, problem.line, problem.column))
        )
    return Decoded(spec=spec, origins=origins, notes=notes)


def _origins(log: Log) -> list[Origin]:
    """What was given, leaves only: `workers.cpu.count`, not `workers`."""
    inner = {path[:length] for path in log.given for length in range(1, len(path))}
    return [_origin(path, given) for path, given in log.given.items() if path not in inner and given.value]


def _origin(path: Path, given: Given) -> Origin:
    mark, tree = given.key, given.tree
    if mark == _NOBODY:
        return Origin(path=dotted(path), value=given.value, source="default", place="there is no file")
    source = "environment" if is_filled(tree) else "file" if mark.line else "flag"
    return Origin(path=dotted(path), value=masked(given.value), source=source, place=str(mark))
