"""Measures a table: ``python -m mondrian_bo.benchmarks.tables.measure lda|svm --out DIR``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mondrian_bo.benchmarks.tables.measure_lda import lda_table
from mondrian_bo.benchmarks.tables.measure_svm import svm_table
from mondrian_bo.benchmarks.tables.measured import write_table

__all__ = ["main"]

_TABLES = {"lda": lda_table, "svm": svm_table}
"""Functions that prepare the tables, by their names on the command line."""


def main() -> None:
    """Measure the table named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=_TABLES)
    parser.add_argument("--out", type=Path, required=True, help="directory of the CSV and JSON")
    arguments = parser.parse_args()
    command = f"python -m mondrian_bo.benchmarks.tables.measure {arguments.table} --out DIR"
    write_table(_TABLES[arguments.table](), arguments.out, command)


if __name__ == "__main__":
    main()
