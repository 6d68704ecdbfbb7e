from __future__ import annotations

from tests.cli.conftest import inside

__all__ = ["inside"]
