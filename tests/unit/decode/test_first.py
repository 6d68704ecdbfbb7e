"""The least that everybody relies on: a file, no file, and all mistakes at once."""

from __future__ import annotations

import pytest

from heliostat.core.decode import decode, default_cluster
from heliostat.core.errors import FileError
from heliostat.core.spec import Decoded


def read(text: str, *sets: str, **env: str) -> Decoded:
    return decode(text, source="helio.yaml", folder="/lab", env=env, sets=sets)


def test_without_a_file_there_is_a_cluster_on_this_machine() -> None:
    spec = default_cluster("/lab").spec
    assert (spec.cluster, spec.where, spec.folder) == ("default", "local", "/lab")
    assert [(group.name, group.count.low) for group in spec.workers if group.count] == [("worker", 2)]


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(FileError) as told:
        read("cluster: Demo\nwhere: gpc\nworkers: 2-4\nidle: 30\nhaed: {}\n")
    assert [(problem.line, problem.column, problem.nearest) for problem in told.value.problems] == [
        (1, 10, "demo"),
        (2, 8, "gce"),
        (3, 10, "2..4"),
        (4, 7, "30 min"),
        (5, 1, "head"),
    ]
    assert str(told.value).splitlines()[3] == (
        "helio.yaml:4:7: `idle` wants a time such as 30 min or 8 h, or never, not `30`; did you mean 30 min?"
    )


def test_variables_and_flags_fill_in_values() -> None:
    decoded = read("cluster: ${NAME:-demo}\nworkers: ${N}\n", "workers=4", "env.A=1", N="3")
    assert decoded.spec.cluster == "demo"
    assert decoded.spec.workers[0].count is not None
    assert decoded.spec.workers[0].count.low == 4
    assert decoded.spec.env == {"A": "1"}


def test_a_key_that_the_place_cannot_honour_is_refused_by_name() -> None:
    with pytest.raises(FileError) as told:
        read("cluster: demo\nworkers:\n  count: 2\n  spot: true\n")
    assert str(told.value) == "helio.yaml:4:3: `spot` is not available yet on local"


def test_what_is_not_available_is_no_mistake_where_nothing_is_made() -> None:
    text = "cluster: demo\nworkers:\n  cpu: { count: 2..4, spot: true }\nimage: x\n"
    with pytest.raises(FileError):
        decode(text, source="helio.yaml", folder="/", env={})
    looked = decode(text, source="helio.yaml", folder="/", env={}, makes=False)
    assert [group.name for group in looked.spec.workers] == ["cpu"]
    with pytest.raises(FileError, match="spott"):
        decode(text.replace("spot", "spott"), source="helio.yaml", folder="/", env={}, makes=False)
