"""Compiled code where neither the installation nor the home can be written, or a disk is full."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mondrian_bo

READ_ONLY = """
import os, sys, warnings
from pathlib import Path
from numba.core import caching

allowed = sys.argv[1]
ask = os.access
os.access = lambda path, mode: str(path).startswith(allowed) and ask(path, mode)
ensure = caching._CacheLocator.ensure_cache_path
def ensure_where_allowed(self):
    if not self.get_cache_path().startswith(allowed):
        raise OSError("read-only")
    ensure(self)
caching._CacheLocator.ensure_cache_path = ensure_where_allowed

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import mondrian_bo
    from mondrian_bo.trees import random
print(sum("NUMBA_CACHE_DIR" in str(one.message) for one in caught))
print(os.environ.get("NUMBA_CACHE_DIR"))
"""


def _run(tmp_path: Path, **settings: str) -> list[str]:
    environment = os.environ | {"TMPDIR": str(tmp_path), "HOME": str(tmp_path / "none")} | settings
    if "NUMBA_CACHE_DIR" not in settings:
        environment.pop("NUMBA_CACHE_DIR", None)
    environment["PYTHONPATH"] = str(Path(mondrian_bo.__file__).parents[1])
    code = [sys.executable, "-c", READ_ONLY, str(tmp_path / "only")]
    done = subprocess.run(code, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.split()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders of users on POSIX systems")
def test_a_temporary_folder_with_a_warning(tmp_path):
    (tmp_path / "only").mkdir()
    folder = tmp_path / "only" / f"mondrian-bo-{os.getuid()}"
    assert _run(tmp_path, TMPDIR=str(tmp_path / "only")) == ["1", str(folder)]
    assert folder.stat().st_mode & 0o077 == 0


def test_the_users_own_choice_has_precedence(tmp_path):
    chosen = str(tmp_path / "only")
    assert _run(tmp_path, NUMBA_CACHE_DIR=chosen) == ["0", chosen]


FULL = """
import resource, sys, warnings
# As on a full disk, writing raises an OSError, beyond the index of a function.
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
if sys.argv[1] == "numba first":
    import numba.core.caching
import mondrian_bo
assert ("numba" in sys.modules) == (sys.argv[1] == "numba first")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from mondrian_bo.optimizer.steps.ridge_regression import correlation_of
    import numpy as np
    for _ in range(2):
        assert correlation_of(np.zeros(2), np.zeros(2)) == 0.0
print(sum("NUMBA_CACHE_DIR" in str(one.message) for one in caught))

import numba

@numba.njit(cache=True)
def of_another_package(x):
    return x + 1

try:
    of_another_package(1)
except OSError:
    print("raises")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a limit of file sizes on POSIX systems")
@pytest.mark.parametrize("order", ["numba first", "numba later"])
def test_a_full_disk_under_the_cache(tmp_path, order):
    script = tmp_path / "script.py"
    script.write_text(FULL, encoding="utf-8")
    (tmp_path / "cache").mkdir()
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": str(Path(mondrian_bo.__file__).parents[1]),
    }
    code = [sys.executable, str(script), order]
    done = subprocess.run(code, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "raises"]
