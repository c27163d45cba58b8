import math
from copy import copy

import numpy as np
import optuna
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mondrian_bo.search_space import (
    Categorical,
    Condition,
    Float,
    Int,
    SearchSpace,
    categorical,
    conditions,
)

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
units = st.floats(0.0, 1.0)
optuna_reduces = pytest.mark.filterwarnings("ignore:The distribution is specified by")


def round_trip(parameter, value):
    space = SearchSpace({"p": parameter})
    row = space.to_unit({"p": value})
    assert 0.0 <= row[0] <= 1.0
    assert np.array_equal(space.snap([row])[0], row)
    return space.from_unit(row)["p"]


@st.composite
def bounds(draw, values):
    # Hypothesis wants -0.0 below 0.0, which are equal.
    return tuple(sorted((draw(values), draw(values)), key=lambda v: (v, math.copysign(1.0, v))))


@given(bounds(finite), units, st.data())
def test_linear_float_round_trip(low_high, unit, data):
    low, high = low_high
    parameter = Float(low, high)
    value = data.draw(st.floats(low, high))
    assert abs(round_trip(parameter, value) - value) <= 4 * max(
        math.ulp(high - low), math.ulp(low), math.ulp(high)
    )
    assert round_trip(parameter, low) == low
    assert round_trip(parameter, high) == high
    assert low <= parameter.from_unit(unit) <= high


@st.composite
def bounds_and_value(draw):
    low, high = draw(bounds(st.floats(min_value=5e-324, allow_infinity=False)))
    return low, high, draw(st.floats(low, high))


@given(bounds_and_value(), units)
@example((5e-324, 1.0, 1.1125369292536007e-308), 0.5)  # subnormal, but with all its digits
@example((5e-324, 1.7976931348623157e308, 1e-8), 1.0)  # the widest range there is
def test_log_float_round_trip(low_high_value, unit):
    low, high, value = low_high_value
    parameter = Float(low, high, log=True)
    # 1500 is the log of the widest range, and the exponent carries its rounding error; next to
    # the subnormal numbers the spacing rules.
    assert round_trip(parameter, value) == pytest.approx(value, rel=1e-12, abs=1e-322)
    assert round_trip(parameter, low) == low
    assert round_trip(parameter, high) == high
    assert low <= parameter.from_unit(unit) <= high


def test_log_float_is_linear_in_the_logarithm():
    parameter = Float(1e-300, 1e4, log=True)
    assert parameter.from_unit(0.5) == pytest.approx(1e-148, rel=1e-12)
    assert parameter.to_unit(1e-72) == pytest.approx(0.75)
    # Neighbouring floats have equal logarithms here, yet are told apart.
    narrow = Float(1e300, math.nextafter(math.nextafter(1e300, math.inf), math.inf), log=True)
    assert narrow.to_unit(math.nextafter(1e300, math.inf)) == pytest.approx(0.5)


@given(bounds(st.integers(-(2**53), 2**53)), st.integers(1, 2**20), st.data())
def test_int_round_trip_is_exact(low_high, step, data):
    parameter = Int(*low_high, step=step)
    assume(parameter.n_values <= 2**53)
    index = data.draw(st.integers(0, parameter.n_values - 1))
    value = parameter.low + index * step
    found = round_trip(parameter, value)
    assert found == value
    assert type(found) is int
    # Optuna takes the difference from `low` in floats, which hold no larger ones exactly.
    if found - parameter.low <= 2**53:
        optunas = optuna.distributions.IntDistribution(parameter.low, parameter.high, step=step)
        assert optunas._contains(float(found))


def test_int_round_trip_is_exact_at_the_end_of_float64():
    parameter = Int(1, 2**53)
    for value in [1, 2, 2**52 - 1, 2**52, 2**52 + 1, 2**53 - 2, 2**53 - 1, 2**53]:
        assert round_trip(parameter, value) == value


@given(st.integers(1, 2**60), st.integers(0, 2**40 - 1), st.data())
def test_log_int_round_trip_is_exact(low, width, data):
    parameter = Int(low, low + width, log=True)
    value = data.draw(st.integers(low, low + width))
    found = round_trip(parameter, value)
    assert found == value
    assert type(found) is int


@optuna_reduces
@given(
    st.integers(-1000, 1000),
    st.integers(1, 10**5),
    st.sampled_from([0.1, 0.01, 0.25, 1e-3, 1 / 3, 7.0, 0.3]),
    st.data(),
)
def test_stepped_float_agrees_with_optuna(start, n_steps, step, data):
    low = start * step
    distribution = optuna.distributions.FloatDistribution(low, low + n_steps * step, step=step)
    parameter = Float(low, low + n_steps * step, step=step)
    assert parameter.high == pytest.approx(distribution.high, abs=step * 1.01)
    # A range that Optuna has reduced is not reduced again.
    parameter = Float(distribution.low, distribution.high, step=step)
    assert parameter.high == distribution.high
    index = data.draw(st.integers(0, parameter.n_values - 1))
    value = min(index * step + low, distribution.high)
    found = round_trip(parameter, value)
    assert type(found) is float
    assert distribution._contains(found)
    assert found == value or (index == parameter.n_values - 1 and found == parameter.high)


@optuna_reduces
@pytest.mark.parametrize(
    ("low", "high", "step"), [(0, 1, 0.1), (0, 0.3, 0.1), (0, 1, 0.3), (0.1, 0.75, 0.1), (0, 1, 5)]
)
def test_high_is_reduced_as_optuna_does(low, high, step):
    expected = optuna.distributions.FloatDistribution(low, high, step=step)
    assert Float(low, high, step=step).high == expected.high


def test_high_is_reduced_by_hand():
    assert Int(0, 10, step=3).high == 9
    assert Float(0, 0.3, step=0.1).n_values == 4
    assert Float(0, 0.95, step=0.1).high == 0.9


def test_cells_of_integers_are_those_of_optuna():
    spaces = {
        "linear": (Int(3, 17, step=2), optuna.distributions.IntDistribution(3, 17, step=2)),
        "log": (Int(3, 1000, log=True), optuna.distributions.IntDistribution(3, 1000, log=True)),
        "step": (Float(0, 1, step=0.25), optuna.distributions.FloatDistribution(0, 1, step=0.25)),
    }
    for parameter, distribution in spaces.values():
        transform = optuna._transform._SearchSpaceTransform({"p": distribution}, transform_0_1=True)
        for unit in np.linspace(0.003, 0.996, 101):
            value = parameter.from_unit(float(unit))
            assert value == transform.untransform(np.array([unit]))["p"]
            assert parameter.to_unit(value) == pytest.approx(transform.transform({"p": value})[0])


@pytest.mark.parametrize(
    "parameter", [Float(2.5, 2.5), Float(2.5, 2.5, log=True), Int(7, 7), Int(7, 7, log=True)]
)
def test_a_single_value_sits_in_the_middle(parameter):
    assert parameter.to_unit(parameter.low) == 0.5
    assert parameter.n_values == 1
    assert SearchSpace({"p": parameter}).from_unit([0.9]) == {"p": parameter.low}


@given(st.integers(2, 2**60), st.integers(1, 2**60))
def test_ranges_beyond_float64_stay_in_bounds(low, width):
    for parameter in (Int(low, low + width, log=True), Int(-low, width), Float(0, low, step=1e-9)):
        space = SearchSpace({"p": parameter})
        for unit in (0.0, 1e-300, 0.5, math.nextafter(1.0, 0.0), 1.0):
            assert parameter.low <= space.from_unit([unit])["p"] <= parameter.high
        assert np.array_equal(*[space.snap(space.snap([[0.3]])), space.snap([[0.3]])])


def test_choices_are_returned_themselves():
    marker = ["unhashable"]
    choices = (True, 1, 1.0, None, "1", math.nan, marker)
    space = SearchSpace({"c": Categorical(choices)})
    for index, choice in enumerate(choices):
        row = space.to_unit({"c": choice})
        assert row.tolist() == [index]
        assert space.from_unit(row)["c"] is choice
    assert Categorical((1, "a")).index(1.0) == 0
    # Of equal choices of other types the first one.
    assert Categorical((2, True, 1)).index(1.0) == 1
    assert Categorical(("a", math.nan)).index(float("nan")) == 1


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Float(1, 0), ValueError, "`low` must be <= `high`"),
        (lambda: Float(0, math.inf), ValueError, "`high` must be finite"),
        (lambda: Float(math.nan, 1), ValueError, "`low` must be finite"),
        (lambda: Float(-1e308, 1e308), ValueError, "`high - low` must be finite"),
        (lambda: Float("0", 1), TypeError, "`low` must be a number"),
        (lambda: Float(False, True), TypeError, "`low` must be a number"),
        (lambda: Float(0, 1, log=True), ValueError, "positive when `log`"),
        (lambda: Float(1, 2, log="yes"), TypeError, "`log` must be a bool"),
        (lambda: Float(1, 2, log=True, step=0.1), ValueError, "`step` must be None when `log`"),
        (lambda: Float(0, 1, step=0), ValueError, "`step` must be > 0"),
        (lambda: Float(0, 1, step=math.nan), ValueError, "`step` must be finite"),
        (lambda: Float(0, 1, condition="a"), TypeError, "`condition` must be a Condition"),
        (lambda: Int(2, 1), ValueError, "`low` must be <= `high`"),
        (lambda: Int(0.5, 1), TypeError, "`low` must be an integer"),
        (lambda: Int(0, 10**400), ValueError, "`high` must be finite"),
        (lambda: Int(0, 1, log=True), ValueError, "at least 1 when `log`"),
        (lambda: Int(1, 9, log=True, step=2), ValueError, "`step` must be 1 when `log`"),
        (lambda: Int(0, 1, step=0), ValueError, "`step` must be > 0"),
        (lambda: Categorical(()), ValueError, "at least one value"),
        (lambda: Categorical(("a", "b", "a")), ValueError, "'a' twice"),
        (lambda: Categorical("abc"), TypeError, "a tuple or a list"),
        (lambda: Categorical({"a", "b"}), TypeError, "a tuple or a list"),
        (lambda: Condition("a", ()), ValueError, "at least one value"),
        (lambda: Condition(1, (1,)), TypeError, "`parent` must be a string"),
        (lambda: SearchSpace({}), ValueError, "at least one parameter"),
        (lambda: SearchSpace([Float(0, 1)]), TypeError, "must be a mapping"),
        (lambda: SearchSpace({1: Float(0, 1)}), TypeError, "strings as keys"),
        (lambda: SearchSpace({"a": 1}), TypeError, "'a' must be a Float, Int or Categorical"),
    ],
)
def test_refused_definitions(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_many_choices_are_not_compared_in_pairs(monkeypatch):
    n_compared = 0
    compare = conditions.equal_values

    def equal_values(first, second):
        nonlocal n_compared
        n_compared += 1
        return compare(first, second)

    monkeypatch.setattr(conditions, "equal_values", equal_values)
    monkeypatch.setattr(categorical, "equal_values", equal_values)
    many = Categorical([*range(3000), *map(str, range(2000))])
    found = [many.index(value) for value in (0, 2999, 2999.0, "0", "1999")]
    assert found == [0, 2999, 2999, 3000, 4999]
    assert n_compared == 0
    with pytest.raises(ValueError, match="must be one of"):
        many.index("x")


@pytest.mark.parametrize("twice", [math.nan, np.float32("nan"), frozenset([1]), [1], 10**400])
def test_equal_choices_are_found_with_and_without_hashes(twice):
    # Two NaN of the same type are one choice, though they are not equal.
    again = type(twice)(str(twice)) if isinstance(twice, float | np.floating) else copy(twice)
    with pytest.raises(ValueError, match="twice"):
        Categorical([1, twice, "a", again])
    with pytest.raises(ValueError, match="twice"):
        Categorical([[], twice, again])
    assert Categorical([1, twice, "a"]).index(again) == 1
