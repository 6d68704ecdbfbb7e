"""Kinds of keys at the top of the file that are records of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from heliostat.core.decode import forms
from heliostat.core.decode.kinds import Choice, Flag, Plain, Text, Word, time
from heliostat.core.decode.log import Log, Path
from heliostat.core.decode.shapes import Field, ListOf, Record
from heliostat.core.decode.tree import Table, Tree
from heliostat.core.spec import Docker, Login, Notebook, Observe


class _Switch(Word[Any]):
    """`true` or `false` in place of a mapping."""

    word = "true, false or a mapping"

    def __init__(self, on: Any, off: Any) -> None:
        self.on = on
        self.off = off
        self.flag = Flag()

    def parse(self, text: str) -> Any:
        return self.on if self.flag.parse(text) else self.off

    def write(self, value: Any) -> Plain:
        return value == self.on

    def show(self, value: Any, tree: Tree) -> str:
        return self.flag.show(value == self.on, tree)

    def schema(self) -> dict[str, Any]:
        return self.flag.schema()


class _Switched(Record[Any]):
    """A record that `true` stands for; in its long form everything is on unless said otherwise."""

    def __init__(self, make: Any, fields: tuple[Field, ...], on: Any, off: Any) -> None:
        super().__init__(make, fields, short=_Switch(on, off), word=_Switch.word)
        self.on = on

    def build(self, values: dict[str, Any], tree: Table, path: Path, log: Log) -> Any:
        del tree, path, log
        blank = {field.name: getattr(self.on, field.name) for field in self.fields}
        return self.make(**{**blank, **values})

    def write(self, value: Any) -> Plain:
        if value == self.on:
            return True
        return dict(self.parts(value))

    def parts(self, value: Any) -> Iterator[tuple[str, Plain]]:
        for field in self.fields:
            part = getattr(value, field.name)
            if part != getattr(self.on, field.name):
                yield field.key, field.kind.write(part)


OBSERVE = _Switched(
    Observe,
    (
        Field("prometheus", Flag(), "Whether Prometheus gathers the figures of all nodes.", "true", "true"),
        Field("grafana", Flag(), "Whether Grafana draws them.", "true", "false"),
        Field("retention", time(), "How long figures are kept.", "7 d", "30 d"),
    ),
    on=Observe(prometheus=True, grafana=True),
    off=Observe(),
)
NOTEBOOK = _Switched(
    Notebook,
    (
        Field(
            "dockerfile",
            forms.path,
            "What the notebook's container is built from.",
            example="./Dockerfile.jupyter",
        ),
        Field(
            "image",
            forms.image,
            "The notebook's container.",
            "JupyterLab beside the cluster's own image",
            "quay.io/jupyter/scipy-notebook",
        ),
        Field(
            "work", forms.path, "The folder that is mounted into it.", "the cluster's `work`", "./notebooks"
        ),
    ),
    on=Notebook(),
    off=None,
)
LOGIN = Record(
    Login,
    (
        Field("user", Text(), "Who signs in.", example="me", needed=True),
        Field(
            "password",
            forms.secret,
            "Where the password is found, never the password.",
            example="secret:GHCR_TOKEN",
            needed=True,
        ),
    ),
    word="{user: …, password: secret:NAME}",
)
DOCKER = Record(
    Docker,
    (
        Field(
            "pull",
            Choice("missing", "always", "never", known={"true": "always", "false": "missing"}),
            "When images are pulled.",
            "missing",
            "always",
        ),
        Field(
            "run",
            ListOf(Text("an option")),
            "Extra options of `docker run`.",
            example='["--ulimit", "nofile=65536:65536"]',
        ),
    ),
)
