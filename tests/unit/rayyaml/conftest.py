"""What a file means does not depend on which of its keys a place honours today."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from heliostat.core import available


@pytest.fixture(autouse=True, scope="module")
def no_place_yet() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(available, "HONOURED", {"local": available.HONOURED["local"]})
        yield
