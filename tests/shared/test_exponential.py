"""The vectorised exponential function, compared with numpy's."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_bo.shared.exponential import exp_below_zero


@njit
def exponentials(numbers):
    result = np.empty(len(numbers))
    for i in range(len(numbers)):
        result[i] = exp_below_zero(numbers[i])
    return result


def test_it_has_an_error_of_two_units_of_rounding():
    rng = np.random.default_rng(0)
    numbers = np.concatenate([[0.0], -(10.0 ** rng.uniform(-20.0, np.log10(700.0), 100_000))])

    expected = np.exp(numbers.astype(np.longdouble))

    errors = np.abs(exponentials(numbers) - expected) / np.spacing(expected.astype(np.float64))
    assert errors.max() <= 2.0


def test_it_vanishes_far_below_zero_and_where_there_is_no_number():
    numbers = np.array([-700.1, -745.0, -1e300, -np.inf, np.nan])

    np.testing.assert_array_equal(exponentials(numbers), 0.0)
