"""A user's script passes `mypy --strict` and runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("user_script.py")
ROOT = Path(__file__).parents[2]


def test_a_users_script_passes_strict_mypy(tmp_path):
    pytest.importorskip("mypy", reason="mypy is in the test extra")
    # With the project's settings, which say what packages without types are.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml"]
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
