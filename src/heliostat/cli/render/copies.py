"""What was copied, as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from heliostat.cli.render.quantities import many, size
from heliostat.core.sync import Copied


def copied_lines(copied: Iterable[Copied], how: str) -> Iterator[str]:
    """A line for each node: what travelled, and what it is all together when that is more."""
    for one in copied:
        whole = f"{many(one.files, 'file')}, {size(one.size)}"
        deleted = f"; {many(one.deleted, 'path')} deleted" if one.deleted else ""
        if not one.moved_files:
            rest = f"all contents were there already ({whole})" if one.files else "there are no files"
            yield f"nothing {how} {one.node}: {rest}{deleted}"
            continue
        moved = f"{many(one.moved_files, 'file')}, {size(one.moved_bytes)}"
        rest = "" if one.moved_files == one.files else f"; {whole} in all"
        yield f"{moved}, {how} {one.node}{rest}{deleted}"
