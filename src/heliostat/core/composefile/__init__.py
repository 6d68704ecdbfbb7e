"""A Compose file that starts Ray, as the heliostat file that it means."""

from __future__ import annotations

from heliostat.core.decode.log import Log
from heliostat.core.decode.tree import Table
from heliostat.core.draft import Draft

__all__ = ["translate"]


def translate(tree: Table, log: Log) -> Draft:
    """Read all of it; mistakes go to the log, what ours cannot say becomes remarks."""
    from heliostat.core.composefile.whole import Whole

    return Whole(tree, log).read()
