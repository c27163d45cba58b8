"""Spaces and a portfolio of saved optimizers, which several files of tests share."""

from __future__ import annotations

import math

from mondrian_bo import Categorical, Float, Int, SearchSpace
from mondrian_bo.acquisitions import (
    ExpectedImprovement,
    LogExpectedImprovement,
    ThompsonSampling,
    UpperConfidenceBound,
)
from mondrian_bo.optimizer import Arm, Portfolio
from mondrian_bo.search_space import Condition

LINE = SearchSpace({"x": Float(0.0, 1.0)})
NUMBERS = SearchSpace({"x": Float(-1.0, 1.0), "y": Float(1e-3, 10.0, log=True)})
MIXED = SearchSpace(
    {
        "x": Float(-2.0, 2.0, step=0.1),
        "kind": Categorical(("a", True, 1, 1.5, None)),
        "n": Int(1, 64, log=True, condition=Condition("kind", ("a", None))),
        "y": Float(0.0, 1.0),
    }
)
TINY = SearchSpace({"n": Int(0, 5), "kind": Categorical((0.5, math.inf))})
PORTFOLIO = Portfolio(
    (
        Arm(
            (UpperConfidenceBound(2.0), LogExpectedImprovement(0.1)),
            power=False,
            quadratic=0.25,
            quadratic_after=9,
            evolution=0.5,
            plateau=0.3,
            exploration=0.4,
        ),
        Arm(
            (ThompsonSampling(),),
            True,
            {"n_estimators": 3},
            (ExpectedImprovement(0.1),),
            (LogExpectedImprovement(optimism=0.5),),
            (ThompsonSampling(),),
            candidates=0.5,
            surrogate="forest",
        ),
    ),
    restarts=True,
    rugged=Arm((UpperConfidenceBound(),), surrogate="kernel"),
)
