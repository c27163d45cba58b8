"""Creates a virtual environment that runs onelearn 0.3.0.

``python -m mondrian_bo.benchmarks.speed.make_onelearn_environment DIR`` uses this interpreter and
prints the option to pass to the suite. numba 0.58 needs Python 3.11 or older.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

__all__ = ["REQUIREMENTS", "main"]

REQUIREMENTS = ("numba==0.58.*", "numpy==1.26.*", "scikit-learn==1.3.*", "scipy", "tqdm")
"""Versions with which onelearn 0.3.0 runs."""

ONELEARN = "onelearn==0.3.0"
"""The latest release of onelearn."""


def main(argv: Sequence[str] | None = None) -> int:
    """Create the environment that the arguments ask for, and return 0 for success."""
    parser = argparse.ArgumentParser(description="Make an environment that has onelearn 0.3.0.")
    parser.add_argument("directory", type=Path, help="where to make it, e.g. .venv-onelearn")
    directory: Path = parser.parse_args(argv).directory
    if sys.version_info >= (3, 12):
        parser.error("numba 0.58 needs Python 3.11 or older: run this with such an interpreter")
    venv.create(directory, with_pip=True)
    python = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *REQUIREMENTS], check=True)
    # Its declared requirements conflict with each other.
    subprocess.run([*pip, "--no-deps", ONELEARN], check=True)
    print(f"--onelearn-python {python}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
