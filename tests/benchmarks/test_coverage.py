"""Coverage during a search."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo.benchmarks.coverage import main, run, table


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
