"""What operations and runs are called."""

from __future__ import annotations

import secrets
import time

from heliostat.engine.ports import Site


def new_run(site: Site, verb: str) -> str:
    """A name for one operation: readable, sortable, unique."""
    stamp = time.strftime("%y%m%d-%H%M%S", time.gmtime(site.clock.now()))
    return f"{verb}-{stamp}-{secrets.token_hex(2)}"
