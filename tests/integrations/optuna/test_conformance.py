"""Optuna's own conformance suite, with the model active from the second trial."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)

from mondrian_bo import MondrianSampler
from mondrian_bo.surrogates.registry import SurrogateName


class _WithMondrianSampler:
    @pytest.fixture(params=get_args(SurrogateName))
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        return lambda: MondrianSampler(surrogate=request.param, seed=0, n_startup_trials=1)


class TestBasic(_WithMondrianSampler, BasicSamplerTestCase):
    pass


class TestRelative(_WithMondrianSampler, RelativeSamplerTestCase):
    pass


class TestMultiObjective(_WithMondrianSampler, MultiObjectiveSamplerTestCase):
    pass
