"""The measurements of the Mondrian kernel run and say what they should."""

from __future__ import annotations

import subprocess
import sys

from mondrian_bo.benchmarks.kernels.mondrian_kernel import measure_path


def test_command() -> None:
    command = [sys.executable, "-m", "mondrian_bo.benchmarks.kernels", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [line.split(",")[0] for line in lines] == ["features", "path", "path"]
    assert all("ms (" in line or "one fit at the end" in line for line in lines)


def test_cuts_and_cells_are_counted() -> None:
    row = measure_path(40, 30, 5, 4.0, repeats=1)
    # A cut that separates validation points alone makes no cell.
    assert row["cells"] - 5 < row["cuts"] < 5 * 69
    assert min(row["path"], row["primal fit"], row["smaller fit"]) > 0.0
