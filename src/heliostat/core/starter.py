"""The file that a person starts from: what was said, and as comments what may follow."""

from __future__ import annotations

from collections.abc import Iterator

from heliostat.core.available import HONOURED, honours
from heliostat.core.decode.fields import TOP
from heliostat.core.decode.workers import CountKind
from heliostat.core.defaults import BY_GROUND
from heliostat.core.encode import dump, plain
from heliostat.core.spec import GROUNDS, Spec

SCHEMA_FILE = "helio.schema.json"
FILE_NAME = "helio.yaml"

_HEAD = """\
# One Ray cluster. `helio check` finds mistakes in this file, `helio plan` shows what `helio up` would do,
# and `helio run FILE` runs a script on it.
"""
# What people want next, in the order in which they want it; only what the place can do is shown.
_NEXT = ("image", "setup", "env", "secrets", "outputs", "storage", "idle", "lifetime", "observe", "notebook")
_CLOUD_WORKERS = "{ count: 2..10, cpus: 8, memory: 32 GB, spot: true }"
_LOCAL_WORKERS = "{ count: 2, cpus: 1, memory: 1 GB }"


def starter(spec: Spec, *, schema: bool = False) -> str:
    """Write a file that decodes to the spec: a name, a place, how many workers; the rest as comments.

    >>> [line for line in starter(Spec(cluster="demo")).splitlines() if not line.startswith("#") and line]
    ['cluster: demo', 'where: local', 'workers: 2']
    """
    return "\n".join(_lines(spec, schema))


def _lines(spec: Spec, schema: bool) -> Iterator[str]:
    if schema:
        yield f"# yaml-language-server: $schema={SCHEMA_FILE}"
    yield _HEAD
    given = plain(spec)
    yield _written("cluster", given)
    yield ""
    yield f"# The place: {', '.join(GROUNDS)}."
    yield _written("where", given)
    yield ""
    example = _LOCAL_WORKERS if spec.where == "local" else _CLOUD_WORKERS
    yield "# The nodes beside the head: a number; or what each of them is, such as"
    yield f"# {example}; or several groups by name."
    yield from _workers(spec)
    if spec.where != "local":
        yield from _place(spec, given)
    for key in _NEXT:
        if can(spec.where, key):
            yield f"\n# {TOP.by_key[key].doc}"
            yield f"# {key}: {TOP.by_key[key].example}"
    yield ""


def _workers(spec: Spec) -> Iterator[str]:
    usual = BY_GROUND[spec.where].workers
    if spec.workers:
        yield dump({"workers": CountKind().write(spec.workers[0].count)}).rstrip("\n")
    elif usual is not None:
        yield f"workers: {usual}"
    else:
        yield "# Left out, every host but the head's carries one worker."


def _place(spec: Spec, given: dict[str, object]) -> Iterator[str]:
    """The place's own section, as far as it was said, and its other keys."""
    yield ""
    if spec.where in given:
        yield _written(spec.where, given)
    kind = TOP.by_key[spec.where].kind
    said = getattr(spec, spec.where)
    fields = [field for field in getattr(kind, "fields", ()) if field.example]
    lead = "  # " if spec.where in given else "#   "
    if spec.where not in given:
        yield f"# {spec.where}:"
    for field in fields:
        if not getattr(said, field.name):
            yield f"{lead}{field.key}: {field.example}   # {field.doc}"


def can(where: str, key: str) -> bool:
    """Whether a key may be shown: a place that is not there yet shows what the grammar has."""
    return where not in HONOURED or honours(where, key)


def _written(key: str, given: dict[str, object]) -> str:
    return dump({key: given[key]}).rstrip("\n")
