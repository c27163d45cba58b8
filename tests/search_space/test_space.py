import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mondrian_bo.search_space import Categorical, Condition, Float, Int, SearchSpace
from mondrian_bo.search_space.space import row_gaps

NESTED = SearchSpace(
    {
        # Children before their parents: the order of columns is not that of dependence.
        "momentum": Float(0.0, 0.9, step=0.1, condition=Condition("layers", (2, 4))),
        "layers": Int(1, 4, condition=Condition("model", ("net", "deep"))),
        "width": Int(1, 64, log=True, condition=Condition("momentum", (0.0, 0.3, 0.9))),
        "model": Categorical(("tree", "net", "deep")),
        "kernel": Categorical(("rbf", "poly", "linear"), condition=Condition("width", (1, 64))),
        "depth": Int(1, 3, condition=Condition("model", ("tree",))),
    }
)
MIXED = SearchSpace(
    {
        "x": Float(-1.0, 3.0),
        "rate": Float(1e-5, 1.0, log=True),
        "n": Int(1, 2**53, log=True),
        "big": Int(0, 2**53),
        "grid": Float(0.0, 1.0, step=0.05),
        "colour": Categorical(("red", "green", "blue")),
        "one": Float(1.0, 1.0),
        "child": Float(0.0, 1.0, condition=Condition("colour", ("green",))),
        "pick": Categorical((1, 2), condition=Condition("grid", (0.15, 1.0))),
    }
)


def active_names(space, params):
    """The definition of activity, applied to values."""

    def is_active(name):
        condition = space[name].condition
        if condition is None:
            return True
        holds = any(_same(params.get(condition.parent), value) for value in condition.values)
        return holds and is_active(condition.parent)

    return {name for name in space if is_active(name)}


def _same(found, value):
    if isinstance(value, str) or found is None:
        return found == value
    return found == pytest.approx(value, abs=1e-12)


anything = st.floats(allow_nan=False) | st.floats(-0.5, 3.5)


@pytest.mark.parametrize("space", [NESTED, MIXED], ids=["nested", "mixed"])
@given(data=st.data())
def test_snap_is_a_projection_onto_valid_rows(space, data):
    rows = data.draw(hnp.arrays(np.float64, (3, space.n_dimensions), elements=anything))
    blank = data.draw(hnp.arrays(np.bool_, rows.shape))
    blank[:, [p.condition is None for p in space.values()]] = False
    rows[blank] = np.nan
    before = rows.copy()
    snapped = space.snap(rows)
    assert np.array_equal(rows, before, equal_nan=True)
    assert np.array_equal(space.snap(snapped), snapped, equal_nan=True)
    # One by one and together: the same values, types and order.
    each = [list(space.from_unit(row).items()) for row in snapped]
    assert repr([list(one.items()) for one in space.decode_snapped(snapped)]) == repr(each)
    for row in snapped:
        params = space.from_unit(row)
        assert set(params) == active_names(space, params)
        assert list(params) == [name for name in space if name in params]
        for name, value in params.items():
            parameter = space[name]
            if isinstance(parameter, Categorical):
                assert value in parameter.choices
            else:
                assert type(value) is (int if isinstance(parameter, Int) else float)
                assert parameter.low <= value <= parameter.high
        again = space.to_unit(params)
        assert np.allclose(again, row, rtol=0, atol=1e-12, equal_nan=True)
        for name, value in space.from_unit(again).items():
            same = value == params[name]
            assert same or value == pytest.approx(params[name], rel=1e-12, abs=1e-15)
        if space is NESTED:
            assert np.array_equal(again, row, equal_nan=True)
            assert space.from_unit(again) == params


def test_conditions_of_depth_three_by_hand():
    def names(**params):
        row = NESTED.to_unit(params)
        return [name for name, unit in zip(NESTED.names, row, strict=True) if unit == unit]

    full = {"momentum": 0.3, "layers": 2, "width": 64, "kernel": "poly", "depth": 2}
    assert names(model="tree", **full) == ["model", "depth"]
    assert names(model="deep", **full) == ["momentum", "layers", "width", "model", "kernel"]
    assert names(model="net", **{**full, "layers": 3}) == ["layers", "model"]
    assert names(model="net", **{**full, "momentum": 0.4}) == ["momentum", "layers", "model"]
    assert "kernel" not in names(model="net", **{**full, "width": 63})


def test_an_active_parameter_without_a_value():
    space = SearchSpace(
        {
            "a": Categorical(("x", "y")),
            "b": Float(0, 1, condition=Condition("a", ("y",))),
            "c": Int(1, 3, condition=Condition("a", ("y",))),
            "d": Categorical(("u", "v"), condition=Condition("a", ("y",))),
        }
    )
    nan = math.nan
    assert space.snap([[1, nan, nan, nan]]).tolist() == [[1, 0.5, 0.5, 0.0]]
    with pytest.raises(ValueError, match="'b', which is active"):
        space.from_unit([1, nan, 0.5, 0])
    assert space.from_unit([0, nan, nan, nan]) == {"a": "x"}
    with pytest.raises(ValueError, match=r"\['a'\], which have no condition"):
        space.snap([[nan, 0.5, 0.5, 0]])


def test_enumeration_is_what_sampling_can_reach():
    rows = NESTED.enumerate_rows()
    assert len(rows) == NESTED.cardinality
    assert np.array_equal(NESTED.snap(rows), rows, equal_nan=True)
    found = {tuple(NESTED.from_unit(row).items()) for row in rows}
    assert len(found) == len(rows)
    sampled = NESTED.sample(3000, np.random.default_rng(0))
    assert {tuple(NESTED.from_unit(row).items()) for row in sampled} <= found
    # By hand: width is 62 plain values and 2 with 3 kernels; momentum 7 plain and 3 with a width;
    # layers 2 plain and 2 with momentum; model "tree" with 3 depths, two others with layers.
    width = 62 + 2 * 3
    assert NESTED.cardinality == 3 + 2 * (2 + 2 * (7 + 3 * width))


def test_enumeration_without_conditions_is_the_product():
    space = SearchSpace({"a": Int(2, 9, log=True), "b": Categorical(("x", "y")), "c": Int(0, 4)})
    params = [tuple(space.from_unit(row).values()) for row in space.enumerate_rows()]
    assert params == list(itertools.product(range(2, 10), ("x", "y"), range(5)))
    assert space.cardinality == 80


def test_cardinality_of_large_spaces():
    assert MIXED.cardinality == math.inf
    with pytest.raises(ValueError, match=r"infinite: \['x', 'rate', 'child'\]"):
        MIXED.enumerate_rows()
    assert SearchSpace({"a": Int(1, 2**40), "b": Int(1, 2**40)}).cardinality == 2.0**80
    huge = SearchSpace({name: Float(0, 1e300, step=1.0) for name in "ab"})
    assert huge.cardinality == np.finfo(float).max
    assert huge.grid_sizes.tolist() == [2**63 - 1] * 2


def test_sampling_is_uniform_over_cells_and_reproducible():
    space = SearchSpace({"c": Categorical(("a", "b", "c")), "n": Int(0, 4), "x": Float(0, 1)})
    rows = space.sample(20_000, np.random.default_rng(1))
    assert np.array_equal(rows, space.sample(20_000, np.random.default_rng(1)))
    for column, size in [(0, 3), (1, 5)]:
        counts = np.unique(rows[:, column], return_counts=True)[1]
        assert len(counts) == size
        # Five standard deviations of a binomial count.
        share = 1 / size
        assert np.abs(counts - 20_000 * share).max() < 5 * math.sqrt(20_000 * share * (1 - share))
    assert abs(rows[:, 2].mean() - 0.5) < 5 / math.sqrt(12 * 20_000)


def test_from_uniform_gives_each_choice_its_share():
    space = SearchSpace({"c": Categorical(("a", "b", "c"))})
    points = np.array([0.0, 0.33, 0.34, 0.66, 0.67, math.nextafter(1.0, 0.0)])[:, None]
    assert space.from_uniform(points)[:, 0].tolist() == [0, 0, 1, 1, 2, 2]


def test_a_space_is_an_immutable_mapping():
    parameters = {"x": Float(0, 1), "c": Categorical(("a", "b")), "n": Int(1, 5)}
    space = SearchSpace(parameters)
    assert dict(space) == parameters
    assert space.names == ("x", "c", "n")
    assert space.n_dimensions == len(space) == 3
    assert space.n_choices.tolist() == [0, 2, 0]
    assert space.grid_sizes.tolist() == [0, 2, 5]
    assert space.n_choices.dtype == space.grid_sizes.dtype == np.int64
    assert space.is_categorical.tolist() == [False, True, False]
    copy = pickle.loads(pickle.dumps(space))
    assert copy == space
    assert np.array_equal(copy.snap([[0.2, 0.7, 0.2]]), space.snap([[0.2, 0.7, 0.2]]))
    assert space != SearchSpace(dict(reversed(parameters.items())))
    assert space != parameters
    with pytest.raises(ValueError, match="read-only"):
        copy.grid_sizes[0] = 3
    parameters["x"] = Float(0, 2)
    assert space["x"] == Float(0, 1)


@pytest.mark.parametrize(
    ("parent", "values", "message"),
    [
        (Int(0, 5), (6,), r"cannot take all of \(6,\)"),
        (Int(0, 5), ("a",), "cannot take all of"),
        (Categorical(("a", "b")), ("a", "c"), "cannot take all of"),
        (Float(0, 1), (0.5,), "must be categorical or have a grid"),
        (Int(0, 2**50), (3,), "must be categorical or have a grid"),
        (Int(0, 5, condition=Condition("child", (0.5,))), (1,), "in a cycle"),
    ],
)
def test_refused_conditions(parent, values, message):
    child = Float(0, 1, step=0.5, condition=Condition("parent", values))
    with pytest.raises(ValueError, match=message):
        SearchSpace({"child": child, "parent": parent})


def test_refused_parents():
    with pytest.raises(ValueError, match="unknown parent 'b'"):
        SearchSpace({"a": Int(0, 1, condition=Condition("b", (1,)))})
    with pytest.raises(ValueError, match="in a cycle"):
        SearchSpace({"a": Int(0, 1, condition=Condition("a", (1,)))})


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"y": 1}, KeyError, "unknown parameter 'y'"),
        ({"x": 4.0}, ValueError, r"parameter 'x': must be in \[-1.0, 3.0\], got 4.0"),
        ({"x": math.nan}, ValueError, "parameter 'x'"),
        ({"x": "a"}, TypeError, "parameter 'x'"),
        ({"n": 0}, ValueError, "parameter 'n': must be in"),
        ({"n": 1.5}, TypeError, "must be an integer"),
        ({"grid": 0.07}, ValueError, "parameter 'grid': must be 0.0"),
        ({"colour": "pink"}, ValueError, "parameter 'colour': must be one of"),
    ],
)
def test_refused_values(params, error, message):
    with pytest.raises(error, match=message):
        MIXED.to_unit(params)


def test_refused_shapes():
    with pytest.raises(ValueError, match=r"shape \(9,\), got \(2,\)"):
        MIXED.from_unit([0.0, 1.0])
    for bad in (np.zeros(9), np.zeros((2, 8))):
        with pytest.raises(ValueError, match=r"`rows` must have shape \(m, 9\)"):
            MIXED.snap(bad)
        with pytest.raises(ValueError, match=r"`points` must have shape \(m, 9\)"):
            MIXED.from_uniform(bad)


def test_gaps_between_rows():
    nan = np.nan
    rows = np.array([[0.2, 2.0, 0.5, nan], [nan, 0.0, nan, 0.5]])
    other = np.array([0.5, 0.0, nan, nan])
    is_categorical = np.array([False, True, False, False])
    np.testing.assert_allclose(
        row_gaps(rows, other, is_categorical), [[0.3, 1, 1, 0], [1, 0, 0, 1]]
    )
    np.testing.assert_allclose(row_gaps(rows, other)[0], [0.3, 2, 1, 0])
    assert row_gaps(rows[:, None], rows, is_categorical).shape == (2, 2, 4)
