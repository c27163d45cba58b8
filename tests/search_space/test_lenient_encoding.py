"""Values that a space may not hold."""

import math

import numpy as np

from mondrian_bo.search_space import Categorical, Float, Int, SearchSpace
from mondrian_bo.search_space.lenient_encoding import encode_leniently


def test_values_within_a_space_are_encoded_as_its_parameters_do():
    """Bit for bit, also those that `encode_leniently` scales itself."""
    space = SearchSpace(
        {
            "x": Float(-3.0, 7.1),
            "rate": Float(1e-5, 0.3, log=True),
            "share": Float(0.0, 1.0, step=0.25),
            "n": Int(1, 9),
            "fixed": Float(2.0, 2.0),
        }
    )
    rng = np.random.default_rng(0)
    trials = [
        {
            "x": x,
            "rate": float(10.0 ** rng.uniform(-5, -1)),
            "share": float(rng.choice([0.0, 0.25, 1.0])),
            "n": int(rng.integers(1, 10)),
            "fixed": 2.0,
        }
        for x in [-3.0, 7.1, 2, 0.0, *rng.uniform(-3.0, 7.1, 50).tolist()]
    ]
    expected = [[space[name].to_unit(trial[name]) for name in space.names] for trial in trials]
    np.testing.assert_array_equal(encode_leniently(space, trials), expected)


def test_values_outside_a_space_continue_its_scales():
    """Numbers have a place beyond the range; others, and unknown choices, have none."""
    space = SearchSpace(
        {
            "x": Float(-3.0, 7.1),
            "rate": Float(1e-5, 1e-1, log=True),
            "n": Int(1, 9),
            "choice": Categorical(["a", "b"]),
        }
    )
    far = {"x": 17.2, "rate": 1.0, "n": 10, "choice": "b", "unknown": 1.0}
    np.testing.assert_allclose(encode_leniently(space, [far]), [[2.0, 1.25, 9.5 / 9.0, 1.0]])
    lost = {"x": "high", "rate": -1.0, "n": math.inf, "choice": "c"}
    assert np.isnan(encode_leniently(space, [lost, {}])).all()
