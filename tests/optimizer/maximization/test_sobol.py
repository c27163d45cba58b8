"""The Sobol sequence compared with scipy's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import qmc

from mondrian_bo.optimizer.maximization.sobol import sobol_points


@pytest.mark.parametrize("n_dimensions", [1, 2, 3, 17, 40, 41])
@pytest.mark.parametrize("power", [0, 1, 9])
def test_the_points_are_those_of_scipy(n_dimensions: int, power: int) -> None:
    expected = qmc.Sobol(n_dimensions, scramble=False).random_base2(power)
    assert np.array_equal(sobol_points(n_dimensions, 0, 2**power), expected)


@pytest.mark.parametrize("n_dimensions", [3, 41])
def test_points_anywhere_in_the_sequence(n_dimensions: int) -> None:
    expected = qmc.Sobol(n_dimensions, scramble=False).random_base2(17)
    for start, n_points in ((0, 200), (1, 512), (37, 5), (100_000, 1)):
        with warnings.catch_warnings(action="error"):
            points = sobol_points(n_dimensions, start, n_points)
        assert np.array_equal(points, expected[start : start + n_points])


def test_every_dimension_has_its_own_numbers() -> None:
    points = sobol_points(40, 0, 2**12)
    expected = qmc.Sobol(40, scramble=False).random_base2(12)
    assert np.array_equal(points, expected)
    assert len(np.unique(points, axis=1).T) == 40
