"""Parts of a space: fixed values and linear constraints, checked on decoded values."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mondrian_bo.search_space import (
    Categorical,
    Condition,
    Float,
    Int,
    LinearInequality,
    RestrictedSpace,
    SearchSpace,
)

SPACE = SearchSpace(
    {
        "x": Float(0.0, 1.0),
        "y": Float(-5.0, 5.0),
        "n": Int(1, 20),
        "s": Float(0.0, 1.0, step=0.1),
        "k": Categorical(("a", "b")),
        "z": Float(1e-3, 1.0, log=True, condition=Condition("k", ("a",))),
        "w": Float(0.0, 2.0, condition=Condition("k", ("a",))),
    }
)
REGIONS = [
    [LinearInequality({"x": 1.0, "y": 1.0}, -3.0)],
    [LinearInequality({"n": 1.0, "s": -10.0}, 0.0)],
    # Needle-thin: no sample finds it.
    [LinearInequality({"x": 1.0, "n": -1.0}, -19.99)],
    [LinearInequality({"n": 1.0, "y": 2.0}, -6.0), LinearInequality({"x": -1.0}, -0.999)],
    [LinearInequality({"x": 1.0, "w": 1.0}, 0.1)],
]


def violation(params, inequalities):
    """Return by how much the worst constraint is violated; constraints on what is absent hold."""
    sums = [
        sum(weight * params[name] for name, weight in one.weights.items()) - one.bound
        for one in inequalities
        if all(name in params for name in one.weights)
    ]
    return max(sums, default=-1.0)


@pytest.mark.parametrize("inequalities", REGIONS, ids=range(len(REGIONS)))
@pytest.mark.parametrize("source", ["sample", "snap"])
def test_every_row_satisfies_the_constraints(inequalities, source):
    part = RestrictedSpace(SPACE, {}, inequalities)
    rng = np.random.default_rng(0)
    rows = part.sample(300, rng) if source == "sample" else part.snap(SPACE.sample(300, rng))
    for row in rows:
        assert violation(SPACE.from_unit(row), inequalities) <= 1e-9
    np.testing.assert_array_equal(part.snap(rows), rows)
    assert part.contains(rows).all()
    assert {SPACE.from_unit(row)["k"] for row in rows} == {"a", "b"}


def test_samples_reach_inside_and_the_boundary():
    # The simplex x + y <= 1 of a square fifty times its size.
    space = SearchSpace({"x": Float(0.0, 10.0), "y": Float(0.0, 10.0)})
    part = RestrictedSpace(space, {}, [LinearInequality({"x": 1.0, "y": 1.0}, 1.0)])
    sums = [sum(space.from_unit(r).values()) for r in part.sample(400, np.random.default_rng(1))]
    assert np.mean(np.array(sums) < 0.9) > 0.3
    snapped = part.snap(space.sample(400, np.random.default_rng(1)))
    assert np.mean([sum(space.from_unit(r).values()) > 0.999 for r in snapped]) > 0.9


def test_rows_that_are_feasible_stay():
    part = RestrictedSpace(SPACE, {}, REGIONS[0])
    rows = SPACE.sample(500, np.random.default_rng(2))
    good = part.contains(rows)
    assert 0 < good.sum() < 500
    np.testing.assert_array_equal(part.snap(rows[good]), rows[good])


def test_fixed_values_where_they_are_active():
    part = RestrictedSpace(SPACE, {"n": 7, "w": 1.5}, REGIONS[0])
    seen = set()
    for row in part.sample(100, np.random.default_rng(0)):
        params = SPACE.from_unit(row)
        assert params["n"] == 7
        assert ("w" in params) == (params["k"] == "a")
        assert params.get("w", 1.5) == pytest.approx(1.5)
        seen.add(params["k"])
    assert seen == {"a", "b"}


def test_fixed_values_bind_the_constraints():
    inequality = LinearInequality({"x": 1.0, "y": 1.0}, 0.0)
    part = RestrictedSpace(SPACE, {"x": 0.75}, [inequality])
    for row in part.sample(100, np.random.default_rng(0)):
        assert SPACE.from_unit(row)["y"] <= -0.75 + 1e-9


def test_enumeration_keeps_what_is_feasible():
    space = SearchSpace({"i": Int(0, 5), "j": Int(0, 5), "k": Categorical(("a", "b", "c"))})
    part = RestrictedSpace(space, {"k": "b"}, [LinearInequality({"i": 1.0, "j": 2.0}, 4.0)])
    found = {tuple(space.from_unit(row).values()) for row in part.enumerate_rows()}
    assert found == {(i, j, "b") for i in range(6) for j in range(6) if i + 2 * j <= 4}


FINITE = SearchSpace(
    {
        "k": Categorical(("a", "b", "c")),
        "i": Int(-3, 4),
        "j": Float(0.0, 1.5, step=0.25),
        "log": Int(1, 6, log=True, condition=Condition("k", ("a", "b"))),
        "n": Int(0, 3, condition=Condition("k", ("a",))),
        "m": Int(1, 4, condition=Condition("n", (1, 2))),
    }
)


def random_part(rng):
    """Return a part with some fixed values, and up to two inequalities; None if it is empty."""
    row = FINITE.sample(1, rng)[0]
    params = FINITE.from_unit(row)
    fixed = {name: value for name, value in params.items() if rng.random() < 0.3}
    inequalities = []
    for _ in range(int(rng.integers(3))):
        names = [name for name in ("i", "j", "n") if rng.random() < 0.6] or ["i"]
        weights = {name: float(rng.choice([-2.0, -1.0, 0.5, 1.0, 1.7])) for name in names}
        inequalities.append(LinearInequality(weights, float(rng.integers(-2, 4))))
    try:
        return RestrictedSpace(FINITE, fixed, inequalities)
    except ValueError:
        return None


@pytest.mark.parametrize("seed", range(60))
def test_parts_list_what_is_left_of_the_whole_space(seed):
    part = random_part(np.random.default_rng(seed))
    if part is None:
        return
    whole = FINITE.enumerate_rows()
    left = whole[part.has_fixed(whole) & part.contains(whole)]
    rows = part.enumerate_rows()
    assert {row.tobytes() for row in rows} == {row.tobytes() for row in left}
    assert len(rows) == len(left)
    if part.inequalities:
        assert part.cardinality >= len(rows)
    else:
        assert part.cardinality == len(rows)


def test_small_parts_of_large_spaces_are_counted_and_listed():
    space = SearchSpace({name: Int(0, 99) for name in "xyz"})
    simplex = RestrictedSpace(space, {}, [LinearInequality(dict.fromkeys("xyz", 1.0), 4.0)])
    assert simplex.cardinality == 5**3
    assert len(simplex.enumerate_rows()) == 35
    line = RestrictedSpace(space, {"x": 3, "y": 5})
    assert line.cardinality == len(line.enumerate_rows()) == 100
    # One inequality narrows what another one allows.
    chain = [LinearInequality({"x": 1.0}, 1.0), LinearInequality({"y": 1.0, "x": -2.0}, 0.0)]
    assert RestrictedSpace(space, {"z": 7}, chain).cardinality == 2 * 3
    # What depends on an inactive parameter is not narrowed.
    whole = SearchSpace({"k": Categorical(("a", "b")), "i": Int(0, 9), "j": Int(0, 9)})
    one = {**whole, "j": Int(0, 9, condition=Condition("k", ("a",)))}
    rule = [LinearInequality({"i": 1.0, "j": 1.0}, 2.0)]
    assert RestrictedSpace(whole, {}, rule).cardinality == 2 * 3 * 3
    assert RestrictedSpace(one, {}, rule).cardinality == 10 * (1 + 10)
    assert len(RestrictedSpace(one, {}, rule).enumerate_rows()) == 6 + 10


def test_a_continuous_parameter_with_a_fixed_value_leaves_a_finite_part():
    space = SearchSpace(
        {
            "k": Categorical(("a", "b")),
            "x": Float(-1.0, 1.0),
            "w": Float(0.1, 10.0, log=True, condition=Condition("k", ("a",))),
            "n": Int(0, 3),
        }
    )
    part = RestrictedSpace(space, {"x": 0.3, "w": 2.0})
    assert part.cardinality == 8
    assert RestrictedSpace(space, {"x": 0.3}).cardinality == np.inf
    rows = part.enumerate_rows()
    np.testing.assert_array_equal(rows, part.snap(rows))
    found = {tuple(sorted(space.from_unit(row).items())) for row in rows}
    assert len(found) == 8
    for params in map(dict, found):
        assert params["x"] == pytest.approx(0.3)
        assert ("w" in params) == (params["k"] == "a")
        assert params.get("w", 2.0) == pytest.approx(2.0)
    assert part.has_fixed(rows).all()
    assert not part.has_fixed(space.sample(50, np.random.default_rng(0))).any()


@settings(max_examples=40)
@given(
    st.lists(st.floats(-3, 3), min_size=3, max_size=3),
    st.floats(-4, 4),
    st.integers(0, 2**31),
)
@example([1.0, -3.0, 3.0], -(2.0**-24), 0)  # the solver's corner lies outside of the cube
@example([2.0**-23, -1.0, 1.0], -3.0, 0)
def test_any_constraint_holds_or_is_refused(weights, bound, seed):
    names = ("x", "y", "n")
    inequality = LinearInequality(dict(zip(names, weights, strict=True)), bound)
    smallest = sum(
        weight * (low if weight > 0 else high)
        for weight, low, high in zip(weights, (0, -5, 1), (1, 5, 20), strict=True)
    )
    if smallest > bound + 1e-6:
        with pytest.raises(ValueError, match="No point"):
            RestrictedSpace(SPACE, {}, [inequality])
    elif smallest < bound - 1e-6:
        part = RestrictedSpace(SPACE, {}, [inequality])
        for row in part.sample(50, np.random.default_rng(seed)):
            assert violation(SPACE.from_unit(row), [inequality]) <= 1e-9


def test_pickle():
    part = RestrictedSpace(SPACE, {"k": "a"}, REGIONS[0])
    again = pickle.loads(pickle.dumps(part))
    rows = SPACE.sample(50, np.random.default_rng(0))
    np.testing.assert_array_equal(again.snap(rows), part.snap(rows))


@pytest.mark.parametrize(
    ("fixed", "inequalities", "error", "message"),
    [
        ({"q": 1}, [], KeyError, "unknown parameter 'q'"),
        ({"x": 2.0}, [], ValueError, "must be in"),
        ({}, [LinearInequality({"q": 1.0}, 0.0)], KeyError, "unknown parameter 'q'"),
        ({}, [LinearInequality({"k": 1.0}, 0.0)], ValueError, "linear numeric"),
        ({}, [LinearInequality({"z": 1.0}, 0.0)], ValueError, "linear numeric"),
        ({"x": 1.0}, [LinearInequality({"x": 1.0}, 0.5)], ValueError, "No point"),
    ],
)
def test_refused(fixed, inequalities, error, message):
    with pytest.raises(error, match=message):
        RestrictedSpace(SPACE, fixed, inequalities)
