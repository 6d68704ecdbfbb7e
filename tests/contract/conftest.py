"""The public suites show their values when they fail, as tests do."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("heliostat.testing.contract", "heliostat.testing.shell_contract")
