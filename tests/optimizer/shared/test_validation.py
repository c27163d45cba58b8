"""Messages of the optimizer about directions, constraints and values; nothing learnt is lost."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo import Float, MondrianOptimizer, SearchSpace

SPACE = SearchSpace({"x": Float(0.0, 1.0)})
X = {"x": 0.5}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"direction": "up"}, ValueError, "`direction` must be 'minimize' or 'maximize', got 'up'"),
        ({"directions": ["up"]}, ValueError, "`directions` must hold 'minimize' or 'maximize'"),
        ({"directions": []}, ValueError, "`directions` must have 1 to 4 entries, got 0"),
        ({"directions": ["minimize"] * 5}, ValueError, "1 to 4 entries, got 5"),
        (
            {"direction": "maximize", "directions": ["minimize"]},
            ValueError,
            "Only one of `direction` and `directions`",
        ),
        ({"directions": "minimize"}, TypeError, "`directions` must be a sequence of directions"),
        ({"directions": 2}, TypeError, "`directions` must be a sequence of directions"),
        ({"constraints": None}, TypeError, "`constraints` must be a sequence of names, got None"),
        ({"reference_point": 1.0}, TypeError, "`reference_point` must be a sequence of numbers"),
        ({"seed": -1}, ValueError, "`seed` must be a non-negative integer, .* got -1"),
        ({"seed": "a"}, TypeError, "`seed` must be a non-negative integer, .* got 'a'"),
        ({"constraints": "cost"}, TypeError, "`constraints` must be a sequence of names"),
        ({"constraints": [1]}, TypeError, "`constraints` must be a sequence of names"),
        ({"constraints": ["a", "a"]}, ValueError, "`constraints` must be distinct names"),
        ({"reference_point": [1.0, 2.0]}, ValueError, "`reference_point` must have 1 values"),
        ({"reference_point": ["a"]}, TypeError, "`reference_point` must be a number"),
        ({"reference_point": [np.inf]}, ValueError, "`reference_point` must be finite, or NaN"),
        ({"seed": True}, TypeError, "`seed` must be a non-negative integer, .* got True"),
        ({"surrogate": ["forest"]}, ValueError, "`surrogate` must be one of .* got .'forest'."),
        ({"allow_missing": "no"}, TypeError, "`allow_missing` must be True or False, got 'no'"),
        ({"fidelity": "z"}, KeyError, "`fidelity`: unknown parameter 'z'"),
    ],
)
def test_constructor(arguments, error, message):
    with pytest.raises(error, match=message):
        MondrianOptimizer(SPACE, **arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((X, 1.0), ValueError, "`value` must have 2 values, one for each direction, got 1.0"),
        ((X, [1.0, 2.0, 3.0]), ValueError, "`value` must have 2 values"),
        (([X, X], [1.0, 2.0]), ValueError, "2 values for 2 trials"),
        (([X], [[1.0], [2.0, 3.0]]), TypeError, "`value` must be a number"),
        ((X, [1.0, 10**400]), TypeError, "`value` must be a number"),
        (("x", [1.0, 2.0]), TypeError, "`params` must be a mapping or a sequence of mappings"),
        ((None, [1.0, 2.0]), TypeError, "`params` must be a mapping or a sequence of mappings"),
        (([0.5], [[1.0, 2.0]]), TypeError, "`params` must be a mapping or a sequence of mappings"),
        ((X, [1.0, "a"]), TypeError, "`value` must be a number"),
        ((X, [1.0, 2.0], {"d": 1.0}), ValueError, r"unknown names \['d'\]"),
        ((X, [1.0, 2.0], [1.0]), ValueError, "`constraints` must have 2 values"),
        ((X, [1.0, 2.0], 1.0), TypeError, "`constraints` must be a mapping or a sequence"),
        ((X, [1.0, 2.0], {"b": "no"}), TypeError, "`constraints` must be a number"),
        (([X, X], np.zeros((2, 2)), [[1.0, 2.0]]), ValueError, "2 trials, but constraints of 1"),
    ],
)
def test_what_is_told(arguments, error, message):
    optimizer = MondrianOptimizer(
        SPACE, directions=["minimize", "maximize"], constraints=["b", "c"], seed=0
    )
    optimizer.tell(X, [1.0, 2.0], {"c": -1.0})
    with pytest.raises(error, match=message):
        optimizer.tell(*arguments)
    if isinstance(arguments[0], str):
        with pytest.raises(error, match=message):
            optimizer.predict(arguments[0])
    assert optimizer.n_trials == 1
    ((params, values),) = optimizer.pareto_front()
    assert params == X
    assert values.tolist() == [1.0, 2.0]


def test_best_says_what_is_missing():
    several = MondrianOptimizer(SPACE, directions=["minimize", "minimize"])
    several.tell(X, [1.0, 2.0])
    with pytest.raises(ValueError, match="`pareto_front` serves several"):
        _ = several.best
    constrained = MondrianOptimizer(SPACE, constraints=["c"])
    assert constrained.pareto_front() == []
    constrained.tell(X, 1.0, {"c": 0.1})
    with pytest.raises(ValueError, match="no trial told so far is feasible"):
        _ = constrained.best
    constrained.tell({"x": 0.25}, 2.0, {"c": 0.0})
    assert constrained.best == ({"x": 0.25}, 2.0)
    ((params, values),) = constrained.pareto_front()
    assert params == {"x": 0.25}
    assert values.tolist() == [2.0]
