"""The transform of constraints: monotone, robust, exact in its inverse, and steps are steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_bo.optimizer.constraints.constraint_transform import ConstraintTransform

MARGINS = np.random.default_rng(0).standard_normal(60) - 0.3


def test_standardised_with_the_bound_between_feasible_and_infeasible():
    transform = ConstraintTransform(MARGINS)
    values = transform(MARGINS)
    assert values.mean() == pytest.approx(0.0, abs=1e-12)
    assert values.std() == pytest.approx(1.0)
    assert np.array_equal(values >= transform.threshold, MARGINS >= 0.0)


def compressed(margins, linear):
    """Linear up to a number of median sizes, with a logarithm of the same slope beyond."""
    sizes = np.abs(margins) / np.median(np.abs(margins))
    large = linear + linear * np.log(np.maximum(sizes, linear) / linear)
    return np.sign(margins) * np.where(sizes <= linear, sizes, large)


def test_a_linear_constraint_stays_linear():
    rows = np.random.default_rng(1).random((40, 4))
    margins = rows @ [1.0, 2.0, -3.0, 4.0] - 1.0
    expected = (margins - margins.mean()) / margins.std()
    np.testing.assert_allclose(ConstraintTransform(margins)(margins), expected)


def test_a_single_violation_is_no_step():
    """Its size counts, as two measurements are rarely equal."""
    margins = np.array([1.0, 2.0, 3.0, 4.0, -0.1])
    expected = (margins - margins.mean()) / margins.std()
    np.testing.assert_allclose(ConstraintTransform(margins)(margins), expected)


@pytest.mark.parametrize("warp", [np.expm1, np.sinh], ids=["exponential", "sinh"])
def test_heavy_tails_are_compressed(warp):
    margins = warp(8.0 * MARGINS)
    logs = compressed(margins, 1.0)
    expected = (logs - logs.mean()) / logs.std()
    np.testing.assert_allclose(ConstraintTransform(margins)(margins), expected)


def test_the_first_trials_decide():
    """Later trials gather around the bound, which makes the tails of any constraint heavy."""
    margins = np.concatenate([MARGINS[:10], 1e-4 * MARGINS])
    values = compressed(margins, 100.0)
    expected = (values - values.mean()) / values.std()
    np.testing.assert_allclose(ConstraintTransform(margins)(margins), expected)
    assert values.max() > 100.0


@pytest.mark.parametrize("position", [0, 40])
def test_an_outlier_leaves_the_others_apart(position):
    margins = MARGINS.copy()
    margins[position] = 1e6
    values = np.delete(ConstraintTransform(margins)(margins), position)
    assert values.std() > 0.005


@pytest.mark.parametrize("unit", [1e-200, 1e-6, 1e9, 1e300])
def test_any_unit(unit):
    expected = ConstraintTransform(MARGINS)
    transform = ConstraintTransform(unit * MARGINS)
    np.testing.assert_allclose(transform(unit * MARGINS), expected(MARGINS), rtol=1e-9, atol=1e-12)
    assert transform.threshold == pytest.approx(expected.threshold)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.data())
def test_monotone_and_finite(margins, data):
    margins = np.array(margins)
    margins[data.draw(st.integers(0, len(margins) - 1))] = data.draw(
        st.sampled_from([0.0, 1.0, np.inf, -np.inf])
    )
    values = ConstraintTransform(margins)(np.sort(margins))
    assert np.isfinite(values).all()
    assert (np.diff(values) >= 0.0).all()


@pytest.mark.parametrize("margins", [MARGINS, np.sinh(8.0 * MARGINS)], ids=["plain", "heavy"])
def test_inverse(margins):
    transform = ConstraintTransform(margins)
    np.testing.assert_allclose(transform.inverse(transform(margins)), margins, atol=1e-12)
    assert np.abs(transform.inverse(np.array([-1e3, 1e3]))).max() <= 2.0 * np.abs(margins).max()


def test_clipped_violations_become_a_step():
    """With max(0, violation), feasible points lie as far from the bound as typical others."""
    margins = np.minimum(MARGINS, 0.0)
    transform = ConstraintTransform(margins)
    values, holds = transform(margins), margins == 0.0
    sizes = np.abs(margins) / np.median(np.abs(margins[~holds]))
    expected = np.where(holds, 1.0, -sizes)
    np.testing.assert_allclose(values[holds] - transform.threshold, 1.0 / expected.std())
    assert (values[~holds] < transform.threshold).all()


def test_only_violated_or_not():
    margins = np.where(MARGINS >= 0.0, 0.0, -1.0)
    transform = ConstraintTransform(margins)
    values, holds = transform(margins), margins == 0.0
    assert len(np.unique(values)) == 2
    distances = [values[holds][0] - transform.threshold, transform.threshold - values[~holds][0]]
    assert distances[0] == pytest.approx(distances[1])


@pytest.mark.parametrize(("margin", "threshold"), [(0.0, -1.0), (3.0, -1.0), (-2.0, 1.0)])
def test_equal_margins(margin, threshold):
    transform = ConstraintTransform(np.full(5, margin))
    assert np.array_equal(transform(np.full(5, margin)), np.zeros(5))
    assert transform.threshold == threshold
