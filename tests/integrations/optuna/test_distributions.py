"""Optuna's distributions and values as parameters and rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from mondrian_bo.integrations.optuna.study.distributions import SpaceRecipe, to_parameter, to_space
from mondrian_bo.integrations.optuna.suggestions.told_study import fill_unasked
from mondrian_bo.search_space import Categorical, Condition, Float, Int, SearchSpace
from mondrian_bo.search_space.lenient_encoding import encode_leniently

DISTRIBUTIONS = {
    "float": FloatDistribution(-1.0, 3.0),
    "log": FloatDistribution(1e-5, 1.0, log=True),
    "step": FloatDistribution(0.0, 0.9, step=0.3),
    "int": IntDistribution(-3, 9),
    "int_step": IntDistribution(0, 8, step=4),
    "int_log": IntDistribution(1, 128, log=True),
    "choice": CategoricalDistribution([None, "a", 2.5, False]),
    "point": FloatDistribution(2.0, 2.0),
}


def test_parameters():
    found = {name: to_parameter(d) for name, d in DISTRIBUTIONS.items()}
    assert found == {
        "float": Float(-1.0, 3.0),
        "log": Float(1e-5, 1.0, log=True),
        "step": Float(0.0, 0.9, step=0.3),
        "int": Int(-3, 9),
        "int_step": Int(0, 8, step=4),
        "int_log": Int(1, 128, log=True),
        "choice": Categorical((0, 1, 2, 3)),
        "point": Float(2.0, 2.0),
    }


def test_every_kind_of_parameter_may_have_a_condition():
    conditions = {name: Condition("choice", (1,)) for name in DISTRIBUTIONS if name != "choice"}
    conditional, free = to_space(DISTRIBUTIONS, conditions), to_space(DISTRIBUTIONS, {})
    assert {name: conditional[name].condition for name in conditions} == conditions
    assert conditional["choice"].condition is None
    # The rest of the parameter is what it is without a condition.
    for name in DISTRIBUTIONS:
        assert replace(conditional[name], condition=None) == free[name]


def test_what_is_too_wide_is_left_to_optuna():
    wide = FloatDistribution(-1.7e308, 1.7e308)
    assert to_parameter(wide) is None
    assert to_space({"wide": wide}, {}) is None
    assert to_space({"wide": wide, "x": FloatDistribution(0, 1)}, {}).names == ("x",)


@pytest.mark.parametrize("seed", range(3))
def test_decoded_rows_are_values_of_the_distributions(seed):
    space = to_space(DISTRIBUTIONS, {})
    for row in space.sample(100, np.random.default_rng(seed)):
        decoded = space.from_unit(row)
        external = {name: d.to_external_repr(decoded[name]) for name, d in DISTRIBUTIONS.items()}
        internal = {name: d.to_internal_repr(external[name]) for name, d in DISTRIBUTIONS.items()}
        for name, distribution in DISTRIBUTIONS.items():
            assert distribution._contains(internal[name])
            if not isinstance(distribution, CategoricalDistribution):
                expected = int if isinstance(distribution, IntDistribution) else float
                assert type(external[name]) is expected
        assert external["choice"] in DISTRIBUTIONS["choice"].choices
        assert np.allclose(encode_leniently(space, [internal])[0], row, rtol=0.0, atol=1e-12)


def test_equal_choices_are_one():
    """Optuna stores the first of equal choices, whichever was drawn."""
    distribution = CategoricalDistribution([1, True, "1", 1.0, "a", "a"])
    parameter = to_parameter(distribution)
    assert parameter == Categorical((0, 2, 4))
    space = SearchSpace({"c": parameter})
    for choice in distribution.choices:
        (row,) = encode_leniently(space, [{"c": distribution.to_internal_repr(choice)}])
        found = distribution.to_external_repr(space.from_unit(row)["c"])
        assert found == choice
        assert isinstance(found, str) == isinstance(choice, str)


def test_conditions_on_what_is_there():
    distributions = {
        "model": CategoricalDistribution(["a", "b", "c"]),
        "layers": IntDistribution(1, 3),
        "x": FloatDistribution(0.0, 1.0),
        "y": FloatDistribution(0.0, 1.0),
    }
    conditions = {
        "layers": Condition("model", (1, 2)),
        "x": Condition("layers", (2, 3, 5)),
        "y": Condition("gone", (0,)),
    }
    space = to_space(distributions, conditions)
    assert space["layers"].condition == Condition("model", (1, 2))
    # Only the values that the parent can take today.
    assert space["x"].condition == Condition("layers", (2, 3))
    assert space["y"].condition is None
    # A parent that can take none of them.
    moved = distributions | {"layers": IntDistribution(7, 9)}
    assert to_space(moved, conditions)["x"].condition is None
    # And one that is not there.
    del distributions["layers"]
    assert to_space(distributions, conditions)["x"].condition is None


@pytest.mark.parametrize(
    ("distribution", "value", "expected"),
    [
        (FloatDistribution(0.0, 2.0), 3.0, 1.5),
        (FloatDistribution(0.0, 2.0), -1.0, -0.5),
        (FloatDistribution(1e-2, 1.0, log=True), 10.0, 1.5),
        (FloatDistribution(1e-2, 1.0, log=True), 1e-4, -1.0),
        (FloatDistribution(1e-2, 1.0, log=True), 0.0, math.nan),
        # Ten cells of the width of a step.
        (IntDistribution(0, 9), 10, 1.05),
        (IntDistribution(0, 9), -3, -0.25),
        (IntDistribution(0, 9, step=3), 4, (4 + 1.5) / 12.0),
        (FloatDistribution(0.0, 0.9, step=0.1), 0.25, 0.3),
        (FloatDistribution(2.0, 2.0), 7.0, 0.5),
        (CategoricalDistribution(["a", "b"]), 2.0, math.nan),
    ],
)
def test_values_of_earlier_ranges(distribution, value, expected):
    space = to_space({"p": distribution}, {})
    (row,) = encode_leniently(space, [{"p": value, "other": 1.0}])
    assert row == pytest.approx([expected], nan_ok=True)


def test_missing_values():
    space = to_space(DISTRIBUTIONS, {})
    (row,) = encode_leniently(space, [{"int": 3.0, "choice": 1.0}])
    given = [space.names.index("int"), space.names.index("choice")]
    assert np.flatnonzero(~np.isnan(row)).tolist() == sorted(given)
    assert np.isnan(encode_leniently(space, [{}])).all()
    assert encode_leniently(space, []).shape == (0, len(DISTRIBUTIONS))


def test_gaps_are_filled_with_what_was_proposed():
    distributions = {
        "x": FloatDistribution(0.0, 2.0),
        "y": FloatDistribution(0.0, 4.0),
        "model": CategoricalDistribution(["a", "b"]),
        "layers": IntDistribution(1, 4),
    }
    space = to_space(distributions, {"layers": Condition("model", (1,))})
    nan = math.nan
    given = {"x": 1.0, "model": 0.0}
    row = encode_leniently(space, [given])
    proposed = {"y": 1.0, "x": 0.0, "layers": 2.0, "unknown": 3.0}
    # What it asked for stays, and what its choice makes inactive.
    filled = fill_unasked(space, row, [proposed])
    assert np.array_equal(filled, [[0.5, 0.25, 0.0, nan]], equal_nan=True)
    assert np.array_equal(row, [[0.5, nan, 0.0, nan]], equal_nan=True)
    active = encode_leniently(space, [given | {"model": 1.0}])
    assert fill_unasked(space, active, [proposed]).tolist() == [[0.5, 0.25, 1.0, 0.375]]
    # Values from other ranges keep their places.
    assert fill_unasked(space, row, [{"y": 6.0}])[0, 1] == 1.5
    # With nothing to fill it is the same row.
    for nothing in ({}, {"unknown": 1.0}, {"x": 0.0}, {"layers": 1.0}):
        assert np.array_equal(fill_unasked(space, row, [nothing]), row, equal_nan=True)
    # Gaps that nothing fills stay.
    assert np.array_equal(
        fill_unasked(space, encode_leniently(space, [{}]), [{"x": 1.0}]),
        [[0.5, nan, nan, nan]],
        True,
    )
    # Several trials are filled each by its own proposal.
    both = fill_unasked(space, np.concatenate([row, active]), [{}, proposed])
    assert np.array_equal(both, [[0.5, nan, 0.0, nan], [0.5, 0.25, 1.0, 0.375]], equal_nan=True)


WIDE = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(63)} | {"kind": DISTRIBUTIONS["choice"]}
FORMER = SpaceRecipe(WIDE, {"x0": Condition("kind", (1,))}, False, {"n": 3})


def test_the_optimizer_of_a_wide_space_waits_for_new_parameters():
    """Until the trials have grown by a tenth."""
    latest = FORMER._replace(
        distributions=WIDE | {"new": FloatDistribution(0.0, 1.0)},
        conditions={**FORMER.conditions, "new": Condition("kind", (0,))},
    )
    assert latest.may_wait(FORMER, 20, 21)
    assert not latest.may_wait(FORMER, 20, 22)
    narrow = {name: one for name, one in WIDE.items() if name != "x1"}
    assert not latest.may_wait(FORMER._replace(distributions=narrow), 20, 21)


@pytest.mark.parametrize(
    ("condition", "waits"),
    [
        (Condition("kind", (1, 2)), True),
        (Condition("kind", (0, 2)), False),
        (Condition("x1", (1,)), False),
        (None, False),
    ],
)
def test_an_optimizer_waits_only_while_former_parameters_stay_active(condition, waits):
    """Otherwise some trials have no row in the former space."""
    conditions = {} if condition is None else {"x0": condition}
    assert FORMER._replace(conditions=conditions).may_wait(FORMER, 20, 21) == waits


@pytest.mark.parametrize(
    "changed",
    [
        {"distributions": WIDE | {"x1": FloatDistribution(0.0, 2.0)}},
        {"distributions": {name: one for name, one in WIDE.items() if name != "x1"}},
        {"conditions": {**FORMER.conditions, "x1": Condition("kind", (1,))}},
        {"unexplained": True},
        {"constants": {"n": 4}},
    ],
)
def test_an_optimizer_waits_for_no_other_change(changed):
    assert not FORMER._replace(**changed).may_wait(FORMER, 20, 21)
