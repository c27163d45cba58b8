"""A user's script passes `mypy --strict` and runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# The package is a user's installed one: its signatures count, and its bodies are not checked. Other
# packages have no types, or only slow mypy down.
SETTINGS = """
[mypy]
strict = True

[mypy-mondrian_bo.*]
ignore_errors = True

[mypy-alembic.*,ax.*,cmaes.*,IPython.*,joblib.*,matplotlib.*,moocore.*,numba.*,pandas.*,plotly.*,\
river.*,sklearn.*,sqlalchemy.*,torch.*]
follow_imports = skip
follow_imports_for_stubs = True
ignore_missing_imports = True
"""

SCRIPT = Path(__file__).with_name("user_script.py")
ROOT = Path(__file__).parents[2]


def test_a_users_script_passes_strict_mypy(tmp_path):
    pytest.importorskip("mypy", reason="mypy is in the test extra")
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    command = [sys.executable, "-m", "mypy", "--config-file", tmp_path / "mypy.ini"]
    done = subprocess.run(
        [*command, "--cache-dir", tmp_path / "cache", SCRIPT],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"MYPYPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_users_script_runs():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout
