"""The transform of objective values, against scipy's own Yeo-Johnson and plain definitions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize_scalar
from scipy.stats import skew, yeojohnson, yeojohnson_llf, yeojohnson_normmax

from mondrian_bo.optimizer.models import outcome_transform
from mondrian_bo.optimizer.models.outcome_transform import OutcomeTransform

RNG = np.random.default_rng(0)
CLEAN = {
    "normal": RNG.normal(3.0, 2.0, 60),
    "right-skewed": RNG.lognormal(0.0, 0.7, 80),
    "left-skewed": -RNG.lognormal(1.0, 0.7, 80),
    "uniform": RNG.uniform(-1.0, 1.0, 33),
    "bimodal": np.concatenate([RNG.normal(0.0, 0.1, 20), RNG.normal(1.0, 0.1, 30)]),
    "large": 1e300 * RNG.normal(size=40),
    "tiny": 1e-300 * RNG.normal(size=40),
    "offset": 1e6 + RNG.normal(size=40),
    "few": np.array([0.3, -1.0]),
}
clean = pytest.mark.parametrize("values", CLEAN.values(), ids=CLEAN.keys())
any_floats = hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(allow_nan=False))


def scaled(values):
    """Interquartile ranges from the median: what the power is applied to."""
    lower, centre, upper = np.percentile(values, [25, 50, 75])
    return (values - centre) / (upper - lower)


@clean
def test_is_scipys_most_likely_power(values):
    expected = yeojohnson(scaled(values), yeojohnson_normmax(scaled(values)))
    expected = (expected - expected.mean()) / expected.std()
    assert np.allclose(OutcomeTransform(values)(values), expected, atol=1e-3)


@clean
def test_standardised(values):
    transformed = OutcomeTransform(values)(values)
    assert transformed.mean() == pytest.approx(0.0, abs=1e-9)
    assert transformed.std() == pytest.approx(1.0, abs=1e-9)


@clean
def test_inverse(values):
    transform = OutcomeTransform(values)
    size = np.ptp(values)
    assert np.allclose(transform.inverse(transform(values)), values, rtol=1e-9, atol=1e-9 * size)
    # Between the values as well.
    between = np.linspace(values.min(), values.max(), 50)
    assert np.allclose(transform.inverse(transform(between)), between, rtol=1e-9, atol=1e-9 * size)


@clean
def test_inverse_is_monotone_and_stays_near_the_range(values):
    inverse = OutcomeTransform(values).inverse(np.linspace(-50.0, 50.0, 401))
    assert np.isfinite(inverse).all()
    # In fractions of the range: differences of the raw values could overflow.
    size = np.ptp(values)
    shares = (inverse - values.min()) / size
    assert (np.diff(inverse / size) >= 0.0).all()
    assert shares.min() >= -1.0 - 1e-9
    assert shares.max() <= 2.0 + 1e-9


@clean
def test_strictly_increasing(values):
    grid = np.linspace(values.min(), values.max(), 200)
    assert (np.diff(OutcomeTransform(values)(grid)) > 0.0).all()


@pytest.mark.parametrize("name", ["right-skewed", "left-skewed"])
def test_removes_skewness(name):
    values = CLEAN[name]
    assert abs(skew(values)) > 0.9
    assert abs(skew(OutcomeTransform(values)(values))) < 0.3


@pytest.mark.parametrize(("factor", "offset"), [(3.7, 0.0), (1e-8, 5.0), (1e200, -1e200), (1, 1e3)])
@pytest.mark.parametrize("name", ["normal", "right-skewed", "left-skewed", "few"])
def test_affine_invariance(name, factor, offset):
    values = CLEAN[name]
    moved = factor * values + offset
    expected = OutcomeTransform(values)(values)
    assert np.allclose(OutcomeTransform(moved)(moved), expected, atol=1e-4)


@clean
def test_exact_invariance_under_powers_of_two(values):
    expected = OutcomeTransform(values)(values)
    assert np.array_equal(OutcomeTransform(0.125 * values)(0.125 * values), expected)


@settings(derandomize=True)
@given(values=any_floats)
def test_any_floats(values):
    before = values.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        transform = OutcomeTransform(values)
        transformed = transform(values)
        inverse = transform.inverse(np.concatenate([transformed, [-1e6, -8.0, 8.0, 1e6]]))
    assert np.array_equal(values, before)
    assert np.isfinite(transformed).all()
    assert np.isfinite(inverse).all()
    # Monotone: in the order of the values, nothing goes down by more than rounding.
    ordered = transformed[np.argsort(values, kind="stable")]
    assert (np.diff(ordered) >= -1e-9).all()
    if len(set(values)) == 1:
        assert (transformed == 0.0).all()


@settings(derandomize=True)
@given(values=any_floats)
def test_equal_values_transform_equally(values):
    doubled = OutcomeTransform(np.concatenate([values, values]))
    assert np.array_equal(*np.split(doubled(np.concatenate([values, values])), 2))


@pytest.mark.parametrize("values", [[2.5], [-7.0] * 9, [np.inf], [-np.inf] * 3])
def test_nothing_to_tell_apart(values):
    values = np.array(values)
    transform = OutcomeTransform(values)
    assert transform(values).tolist() == [0.0] * len(values)
    assert transform(np.array([1e300, -np.inf])).tolist() == [0.0, 0.0]
    finite = values[np.isfinite(values)]
    expected = finite[0] if len(finite) else 0.0
    assert transform.inverse(np.array([-1.0, 0.0, 3.0])).tolist() == [expected] * 3


@pytest.mark.parametrize(
    "values", [[4.0, -np.inf], [np.inf, 4.0], [np.inf, -np.inf], [np.inf, 4.0, 4.0, -np.inf]]
)
def test_infinities_differ_from_the_only_number(values):
    transform = OutcomeTransform(np.array(values))
    transformed = transform(np.array(values))
    assert np.array_equal(np.sign(np.diff(transformed)), np.sign(np.diff(values)))
    assert transformed.std() == pytest.approx(1.0)
    if 4.0 in values:
        assert transform.inverse(transform(np.array([4.0]))) == pytest.approx(4.0)


def test_infinities_are_the_ends():
    values = np.concatenate([CLEAN["normal"], [np.inf, -np.inf]])
    transform = OutcomeTransform(values)
    finite = transform(CLEAN["normal"])
    assert transform(np.array([np.inf, -np.inf])).tolist() == [finite.max(), finite.min()]
    ends = transform.inverse(transform(np.array([np.inf, -np.inf])))
    assert ends == pytest.approx([CLEAN["normal"].max(), CLEAN["normal"].min()])


@pytest.mark.parametrize("outlier", [-1e5, -1e150, -np.inf])
def test_bad_outliers_are_cut_off(outlier):
    values = np.concatenate([np.linspace(0.0, 1.0, 21), [outlier]])
    lower, centre, upper = np.percentile(values[np.isfinite(values)], [25, 50, 75])
    cut = max(values[np.isfinite(values)].min(), centre - 100.0 * (upper - lower))
    transform = OutcomeTransform(values)
    transformed = transform(values)
    assert transform.inverse(transformed[-1:])[0] == pytest.approx(cut)
    # The cut leaves room for the others.
    assert np.ptp(transformed[:-1]) > 0.01


@pytest.mark.parametrize("outlier", [1e2, 1e6, 1e12, 1e18])
def test_good_outliers_stay_the_best(outlier):
    values = np.concatenate([np.linspace(0.0, 1.0, 21), [outlier / 10.0, outlier]])
    transformed = OutcomeTransform(values)(values)
    assert (np.diff(transformed) > 0.0).all()


@clean
def test_a_new_best_lies_beyond(values):
    transform = OutcomeTransform(values)
    beyond = values.max() + 0.1 * np.ptp(values)
    assert transform(np.array([beyond]))[0] > transform(values).max()
    # A new worst counts as the worst so far, until the next fit.
    below = values.min() - 0.1 * np.ptp(values)
    assert transform(np.array([below]))[0] == transform(values).min()


def test_the_inverse_ends_a_width_beyond_the_range():
    transform = OutcomeTransform(np.linspace(2.0, 5.0, 31), power=False)
    np.testing.assert_allclose(transform.inverse(np.array([-1e3, 1e3])), [-1.0, 8.0])


def test_ties_with_one_exception():
    # The interquartile range is zero.
    values = np.array([1.0] * 20 + [5.0])
    transformed = OutcomeTransform(values)(values)
    assert len(set(transformed[:20])) == 1
    assert transformed[20] > transformed[0]
    assert transformed.std() == pytest.approx(1.0)


@pytest.mark.parametrize("shares", [[-1.0, 1.0], [-1.0, -0.5, 0.0, 0.5, 1.0], [1.0, -1.0, -1.0]])
def test_largest_range_of_all(shares):
    largest = np.finfo(np.float64).max
    values = largest * np.array(shares)
    transform = OutcomeTransform(values)
    assert np.allclose(transform(values), OutcomeTransform(values / largest)(values / largest))
    assert np.allclose(transform.inverse(transform(values)) / largest, values / largest)


@pytest.mark.parametrize("power", [-4.0, 0.0, 0.3, 1.0, 2.0, 2.5, 6.0])
def test_the_power_transform_is_that_of_scipy(power: float) -> None:
    values = np.random.default_rng(0).standard_normal(50) * 3.0
    assert np.array_equal(outcome_transform._yeo_johnson(values, power), yeojohnson(values, power))


@pytest.mark.parametrize("tail", [0.2, 1.0, 3.0])
def test_the_power_is_the_most_likely_one(tail: float) -> None:
    values = np.expm1(tail * np.random.default_rng(1).standard_normal(200)) / tail
    expected = minimize_scalar(
        lambda power: -yeojohnson_llf(power, values), bounds=(-4.0, 6.0), method="bounded"
    )
    power = outcome_transform._most_likely_power(values)
    assert power == pytest.approx(expected.x, abs=1e-5)
    assert -yeojohnson_llf(power, values) <= expected.fun + 1e-9
