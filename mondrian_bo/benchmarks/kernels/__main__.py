"""Prints CPU seconds of the Mondrian kernel: ``python -m mondrian_bo.benchmarks.kernels``."""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

from mondrian_bo.benchmarks.harness.threads import one_thread_environment
from mondrian_bo.benchmarks.kernels.mondrian_kernel import measure_features, measure_path


def _print_all(quick: bool) -> None:
    size = 10 if quick else 1
    seconds, columns = measure_features(1000 // size)
    print(f"features, N={1000 // size}, D=2, M=50, lifetime 10: {1e3 * seconds:.1f} ms ({columns})")
    rows: list[tuple[str, dict[str, Any]]] = [
        (
            "500 + 500 points, M=50, lifetime 10, every cut evaluated",
            {"n_training": 500 // size},
        ),
        (
            "4000 + 200 points, M=20, lifetime 9, every cut evaluated",
            {
                "n_training": 4000 // size,
                "n_validation": 200,
                "n_estimators": 20,
                "lifetime": 9.0,
            },
        ),
    ]
    for title, settings in rows:
        row = measure_path(repeats=1 if quick else 3, **settings)
        print(
            f"path, {title}: {row['path']:.2f} s for {row['cuts']} cuts to {row['cells']} cells; "
            f"one fit at the end {row['primal fit']:.2f} s with an equation for each cell, "
            f"{row['smaller fit']:.2f} s with the fewer of cells and points"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m mondrian_bo.benchmarks.kernels")
    parser.add_argument("--quick", action="store_true", help="a tenth of the points, as a test")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        _print_all(options.quick)
    else:
        command = [sys.executable, "-m", "mondrian_bo.benchmarks.kernels", "--inside"]
        command += ["--quick"] * options.quick
        sys.exit(subprocess.run(command, env=one_thread_environment(), check=False).returncode)
