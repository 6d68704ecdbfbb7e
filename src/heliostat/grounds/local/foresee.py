"""Whether this machine has the GPUs that a file asks for, told before anything that lives is touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from heliostat.core.checked import Checked, Mark
from heliostat.core.errors import NoCapacity
from heliostat.core.names import enough, group_of, nodes_of
from heliostat.core.spec import Spec
from heliostat.grounds.local.gpus import dealt, turns


def foresee(spec: Spec) -> Iterator[Checked]:
    """A line for each node that wants GPUs; an error where a group would have less than enough nodes."""
    asked = Counter(group_of(name) for name, _, _ in nodes_of(spec))
    lacking: Counter[str] = Counter()
    for name, node, _ in nodes_of(spec):
        if node.gpus is None or not node.gpus.count:
            continue
        try:
            given = dealt(node, name, turns(spec)[name]).gpus
        except NoCapacity as error:
            group = group_of(name)
            lacking[group] += 1
            short = asked[group] - lacking[group] < enough(spec, group, asked[group])
            mark = Mark.BAD if short else Mark.WARN
            yield Checked(name, mark, f"{error.what}: {error.why}", error.fix, error if short else None)
        else:
            devices = ", ".join(given.devices) if given else ""
            yield Checked(name, Mark.OK, f"GPU {devices}")
