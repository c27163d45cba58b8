"""The large stream: what it draws, and its records, at a small size."""

from __future__ import annotations

from argparse import Namespace

import numpy as np
import pytest

from mondrian_bo.benchmarks.suites import large_stream


def test_rows_move_and_are_reproducible():
    X, _ = large_stream.draw(0, 2000, 0)
    again, _ = large_stream.draw(0, 2000, 0)
    np.testing.assert_array_equal(X, again)
    assert X.shape == (2000, 8) and not np.array_equal(X, large_stream.draw(2000, 2000, 0)[0])

    def noise(start):
        X, y = large_stream.draw(start, 2000, 0)
        moved = X[:, 0] + 0.25 * start / large_stream.N_ROWS
        fixed = 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3] + 5.0 * X[:, 4]
        return y - fixed - 10.0 * np.sin(np.pi * moved * X[:, 1])

    for start in (0, large_stream.N_ROWS):
        # Five standard errors.
        assert noise(start).mean() == pytest.approx(0.0, abs=0.12)
        assert noise(start).std() == pytest.approx(1.0, abs=0.08)


def test_records():
    few, more = large_stream.measure(3000, (1000,), 1000, seed=0)
    assert (few["rows"], more["rows"]) == (1000, 3000)
    assert more["seconds"] > few["seconds"] and more["arrays"] > few["arrays"]
    _, y = large_stream.draw(3000, 1000, 0)
    assert 1.0 < more["rmse"] < few["rmse"] < y.std()
    assert 0.8 < more["coverage"] < 1.0
    header, rows = large_stream.summary([few, more])
    assert [len(row) for row in rows] == [len(header)] * 2
    assert rows[1][0] == "3,000"


def test_number_of_rows(tmp_path):
    with pytest.raises(ValueError, match="multiple of 100000"):
        large_stream.run(Namespace(trials=5, out=tmp_path))
