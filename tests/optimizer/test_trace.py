"""One suggestion passes few files and functions of the project."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "trace_suggestion.py"
MOST_FILES = 22
MOST_FUNCTIONS = 110


def test_one_suggestion_takes_few_steps():
    done = subprocess.run([sys.executable, TOOL], capture_output=True, text=True, check=True)
    n_files, n_functions = map(int, re.findall(r"\d+", done.stdout.splitlines()[-1]))
    assert 0 < n_files <= MOST_FILES, done.stdout
    assert 0 < n_functions <= MOST_FUNCTIONS, done.stdout
