"""Settings of saved optimizers as JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from saved_spaces import LINE, MIXED, NUMBERS, PORTFOLIO

from mondrian_bo import Categorical, Float, Int, MondrianOptimizer, SearchSpace
from mondrian_bo.optimizer.saving.saved_settings import (
    decode_acquisition,
    decode_space,
    encode_acquisition,
    encode_space,
)
from mondrian_bo.search_space import Condition


@pytest.mark.parametrize("space", [LINE, NUMBERS, MIXED])
def test_spaces_are_plain_json(space):
    assert decode_space(json.loads(json.dumps(encode_space(space), allow_nan=False))) == space


def test_portfolios_are_plain_json():
    encoded = json.loads(json.dumps(encode_acquisition(PORTFOLIO), allow_nan=False))
    assert decode_acquisition(encoded) == PORTFOLIO


def test_extreme_choices_return():
    choices = (math.nan, math.inf, -math.inf, -0.0, 5e-324, 2**200, "\ud800", "", False, None)
    space = SearchSpace({"x": Categorical(choices), "n": Int(-(2**70), 2**70)})
    decoded = decode_space(json.loads(json.dumps(encode_space(space), allow_nan=False)))
    assert repr(decoded) == repr(space)


def test_conditions_with_numbers_of_numpy(tmp_path):
    space = SearchSpace(
        {"i": Int(0, 5), "x": Float(0.0, 1.0, condition=Condition("i", tuple(np.arange(2))))}
    )
    optimizer = MondrianOptimizer(space, seed=0)
    for _ in range(6):
        params = optimizer.ask()
        optimizer.tell(params, params["i"] + params.get("x", 0.0))
    optimizer.save(tmp_path / "file.npz")
    loaded = MondrianOptimizer.load(tmp_path / "file.npz")
    assert [loaded.ask() for _ in range(3)] == [optimizer.ask() for _ in range(3)]
