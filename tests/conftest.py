"""Set up before anything is imported: bytecode, and tests without limits of time."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# Some hundred tests start processes, which would compile the sources again and again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Times depend on the machine, and first calls compile: no test fails because it is slow.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of surrogates first.

    The two workers of `make test` take contiguous halves. One of them then begins with estimators
    and the other one with samplers, so that they seldom compile a function at the same time.
    """
    items.sort(key=lambda item: "surrogates" not in item.path.parts)
