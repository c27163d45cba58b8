"""The suite on its own: ``python -m mondrian_bo.benchmarks.suites.speed --out DIR``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mondrian_bo.benchmarks.suites.speed.suite import run

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m mondrian_bo.benchmarks.suites.speed")
    parser.add_argument("--out", type=Path, required=True, help="directory of the results")
    parser.add_argument("--onelearn-python", type=Path, help="interpreter that has onelearn")
    run(parser.parse_args())
