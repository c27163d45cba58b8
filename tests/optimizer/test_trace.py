"""One suggestion passes few files and functions of the project."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "trace_suggestion.py"


MOST_FILES, MOST_FUNCTIONS = 36, 180
"""What a reader can follow, with room for a function that is split in two."""


@pytest.mark.parametrize(
    "trial",
    [
        pytest.param(61, id="process"),
        pytest.param(58, id="quadratic"),
        pytest.param(62, id="process, as no quadratic predicts well"),
    ],
)
def test_one_suggestion_takes_few_steps(trial):
    command = [sys.executable, TOOL, "--trial", str(trial)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    n_files, n_functions = map(int, re.findall(r"\d+", done.stdout.splitlines()[-1]))
    assert 0 < n_files <= MOST_FILES, done.stdout
    assert 0 < n_functions <= MOST_FUNCTIONS, done.stdout
