"""Coverage during a search."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo.benchmarks.coverage import anywhere_table, main, run, run_anywhere, table


def test_normal_errors_are_covered():
    errors = np.random.default_rng(0).standard_normal((50, 200))
    errors[:, 100:] *= 2.0
    header, [row] = table({"some": errors})
    assert len(header) == len(row) == 10
    shares = [float(cell.rstrip("%")) for cell in row[1:]]
    assert shares[:6] == pytest.approx([50.0, 90.0, 1.0, 50.0, 90.0, 1.0], abs=2.5)
    assert shares[6:] == pytest.approx([26.4, 58.9, 2.0], abs=2.0)


def test_errors_are_those_of_the_predictions():
    errors = run("branin", 0, 30)
    assert np.isnan(errors[0]) and np.isfinite(errors[1:]).all()
    assert np.array_equal(errors, run("branin", 0, 30), equal_nan=True)


def test_prints_a_table(capsys):
    main(["--problems", "branin,mixed6", "--seeds", "1", "--trials", "20"])
    printed = capsys.readouterr().out
    assert "| branin |" in printed and "| mixed6 |" in printed and "nan" not in printed


def test_normal_errors_of_points_are_covered():
    rng = np.random.default_rng(0)
    errors = np.abs(rng.standard_normal((20_000, 2)))
    errors[:, 1] *= 2.0
    found = np.column_stack([errors, np.where(np.arange(20_000) % 4 == 0, 0.4, 0.1)])
    header, [row, total] = anywhere_table({"some": found})
    assert row[1:] == total[1:] and len(header) == len(row)
    assert row[1] == "25%"
    shares = [float(cell.rstrip("%")) for cell in row[2:]]
    assert shares == pytest.approx([90.0, 0.67, 59.0, 1.35] * 2, abs=1.5, rel=0.04)


def test_errors_of_points_are_those_of_the_predictions():
    found = run_anywhere("branin", 0, 25)
    assert found.shape == (200, 3) and np.isfinite(found).all() and (found >= 0.0).all()
    assert (found[:, 2] > 0.0).all()


def test_prints_a_table_of_points(capsys):
    main(["--problems", "branin", "--seeds", "1", "--trials", "12", "--anywhere"])
    assert "| all |" in capsys.readouterr().out
