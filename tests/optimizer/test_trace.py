"""One suggestion passes few files and functions of the project."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "trace_suggestion.py"


@pytest.mark.parametrize(
    ("trial", "most_files", "most_functions"),
    [
        pytest.param(61, 34, 148, id="process"),
        pytest.param(58, 34, 149, id="quadratic"),
        pytest.param(62, 37, 175, id="process, as no quadratic predicts well"),
    ],
)
def test_one_suggestion_takes_few_steps(trial, most_files, most_functions):
    command = [sys.executable, TOOL, "--trial", str(trial)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    n_files, n_functions = map(int, re.findall(r"\d+", done.stdout.splitlines()[-1]))
    assert 0 < n_files <= most_files, done.stdout
    assert 0 < n_functions <= most_functions, done.stdout
