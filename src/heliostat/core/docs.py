"""docs/file.md, made from the decoder's own table: `python -m heliostat.core.docs > docs/file.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from heliostat.core import units
from heliostat.core.available import HONOURED, honours
from heliostat.core.decode.cluster_kinds import DOCKER, LOGIN, NOTEBOOK, OBSERVE
from heliostat.core.decode.fields import TOP
from heliostat.core.decode.node_fields import GROUP_FIELDS, NODE_FIELDS
from heliostat.core.decode.shapes import Field, Record
from heliostat.core.decode.site_fields import SITE_FIELDS
from heliostat.core.decode.workers import GpusKind
from heliostat.core.defaults import BY_GROUND, SCALE_IDLE, VERIFIED_RAY, WHY, Defaults

INTRO = """\
# The file: helio.yaml

<!-- Made by `make docs` from the decoder's own table. Do not edit it by hand. -->

One file says what your cluster is. Only `cluster`, its name, must be there; every other key has a default
that a person would choose, and `helio plan` shows which defaults were used and why. On your own machine two
lines are enough:

```yaml
cluster: first-steps
workers: 3
```

and on a cloud these, for a search that may use up to ten cheap machines and leaves its reports with you:

```yaml
cluster: gcd-tuning
where: gce
image: ghcr.io/lab/flow:7
workers: { machine: n2-standard-8, count: 2..10, spot: true }
storage: gs://bucket/prefix
outputs: [ reports/ ]
idle: 30 min
```

`helio init` writes a file, `helio check` finds every mistake in it at once, and `helio check --schema` prints
the JSON Schema with which editors complete and check it. Without a file the commands use a cluster called
`default` on your own machine.

**Which file is meant**: the one after `-f`, else the nearest `helio.yaml` in this folder or above it.

**Changing a value once**: `--set workers.count=4` stands over the file; a list is `--set 'outputs=[a, b]'`.

**In an editor**: `helio init --schema` also writes helio.schema.json and, at the top of the file, the line by
which editors with YAML's language server find it. For a file that exists already:

```sh
helio check --schema > helio.schema.json
sed -i '1i # yaml-language-server: $schema=helio.schema.json' helio.yaml
```

## How values are written

| what | looks like | |
|---|---|---|
| text | `2.60`, `on`, `010` | always as written: never turned into a number, a date or a yes |
| number | `8`, `0.5` | plain decimals |
| size | `16 GB`, `512 MiB` | B, kB, MB, GB, TB count in thousands; KiB, MiB, GiB, TiB in 1024s |
| time | `30 min`, `8 h` | s, min, h, d; `idle` and `lifetime` also take `never` |
| money | `20 USD` | |
| yes or no | `true`, `false` | `yes`, `no`, `on`, `off` do as well |
| range | `0..4` | from, to |
| list | `[ a, b ]` | one value alone is a list of one |
| variable | `${NAME}`, `${NAME:-default}` | filled in from your environment; `$$` is one dollar sign |

Commands run on the nodes with the variables there: `$HOME` stays as it is, `$${HOME}` arrives as `${HOME}`.
"""

RULES = """\
## Keys that must fit one another

* Ray below 2.52 has no token: it needs `auth: network-only` and a private network.
* `image` is pulled and `dockerfile` is built: only one of them. Where the image's name tells a release of Ray
  or Python, `ray` and `python` must agree with it.
* `at_least` goes with a fixed `count`, a group's `idle` with a range, `count: per-gpu` with your own hosts.
* `expose` names services that the file has; 0.0.0.0/0 only where a login guards the service.
* `budget` needs prices: the clouds' are known, elsewhere every node needs `price`.
* A variable stands in `env` or in `secrets`, never in both. Names that begin with HELIO_, and Ray's own
  address and token, are set by heliostat.
* A place's own section (`gce:`, `ssh:` …) may stay in the file while `where` names another place; it is then
  named as unused.
"""


def text() -> str:
    """Write the whole page."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield INTRO
    yield "## Every key\n"
    yield from _table(TOP.fields)
    yield "\n## A node\n\nThe head and every group of workers take these; any may differ between groups.\n"
    yield from _table(NODE_FIELDS)
    yield "\n## A group of workers\n\nThe keys of a node, and these. A group's nodes are called `<group>-1`,"
    yield "`<group>-2` and so on; a group without a name is called `worker`.\n"
    yield from _table(GROUP_FIELDS)
    for name, record in (("gpus", GpusKind()), ("docker", DOCKER), ("registry", LOGIN)):
        yield from _section(name, record)
    for name, record in (("observe", OBSERVE), ("notebook", NOTEBOOK)):
        yield from _section(name, record)
    yield "\n## The places"
    for field in SITE_FIELDS:
        yield from _section(field.key, field.kind, level=3)
    yield from _defaults()
    yield from _today()
    yield f"\n{RULES}"


def _section(name: str, record: object, level: int = 2) -> Iterator[str]:
    if isinstance(record, Record):
        yield f"\n{'#' * level} `{name}`\n"
        yield from _table(record.fields)


def _table(fields: Iterable[Field]) -> Iterator[str]:
    yield "| key | meaning | default | example |"
    yield "|---|---|---|---|"
    for field in fields:
        also = f" or `{field.also}`" if field.also else ""
        default = field.default or ("—" if not field.needed else "must be given")
        example = f"`{field.key}: {field.example}`" if field.example else ""
        cells = (f"`{field.key}`{also}", field.doc, default, example)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        if isinstance(field.kind, Record) and field.key == "network":
            for part in field.kind.fields:
                cells = (f"`network.{part.key}`", part.doc, part.default, f"`{part.key}: {part.example}`")
                yield "| " + " | ".join(cells) + " |"


def _defaults() -> Iterator[str]:
    yield "\n## Defaults by place\n"
    yield "| place | workers | machine | disk | idle | lifetime | public addresses |"
    yield "|---|---|---|---|---|---|---|"
    for place, row in BY_GROUND.items():
        yield f"| {place} | {' | '.join(_row(row))} |"
    scale_idle = units.say_time(SCALE_IDLE)
    yield "\nThe head runs tasks everywhere, unless it has `cpus: 0`. An idle node of a group that may grow"
    yield f"goes after {scale_idle}. Ray is {VERIFIED_RAY}, with which this heliostat was verified;"
    yield "on your own machine it is the one that is installed. The reasons:\n"
    for key in ("workers", "machine", "disk", "idle", "lifetime", "public_ip"):
        yield f"* {key.replace('public_ip', 'public addresses')}: {WHY[key]}"


def _row(row: Defaults) -> Iterator[str]:
    yield "every other host" if row.workers is None else str(row.workers)
    yield row.machine or "—"
    yield units.say_size(row.disk) if row.disk else "—"
    yield units.say_time(row.idle) if row.idle else "never"
    yield units.say_time(row.lifetime) if row.lifetime else "never"
    yield "yes" if row.public_ip else "—"


def _today() -> Iterator[str]:
    yield "\n## What each place can do today\n"
    yield "A key that a place cannot honour yet is refused by name, never ignored.\n"
    for place in HONOURED:
        yield f"* **{place}**: {', '.join(f'`{key}`' for key in _honoured(place))}"
    missing = [place for place in BY_GROUND if place not in HONOURED]
    if missing:
        yield f"* not available yet: {', '.join(missing)}. Their files can be written and checked already."


def _honoured(place: str) -> Iterator[str]:
    for field in TOP.fields:
        if field.key in ("head", "workers"):
            fields = NODE_FIELDS if field.key == "head" else (*GROUP_FIELDS, *NODE_FIELDS)
            inner = [part.key for part in fields if honours(place, f"{field.key}.{part.key}")]
            yield f"{field.key} ({' '.join(inner)})"
        elif honours(place, field.key):
            yield field.key


if __name__ == "__main__":
    sys.stdout.write(text())
