"""Set up before anything is imported: a numba cache that knows when it is out of date."""

from __future__ import annotations

import hashlib
import os
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent

# Numba looks at the file of a function alone to tell whether its cached code is up to date, not at
# those of the functions it calls. Tests must never run on such leftovers.
_SOURCES = [path.read_bytes() for path in sorted((ROOT / "mondrian_bo").rglob("*.py"))]
_COMPILED = b"".join(source for source in _SOURCES if b"njit" in source)
_DIGEST = hashlib.sha256(_COMPILED).hexdigest()[:16]
# Compiled code with bounds checks is not the same, but numba takes it for the same.
_KIND = "-bounds" if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0") else ""
# Numba writes the index of a function's compiled code before the code: while one process replaces
# the code of another version of numba, a second one may find the other version's code.
_NUMBA = version("numba")
os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache" / f"{_DIGEST}-{_NUMBA}{_KIND}")

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
