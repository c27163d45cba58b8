"""Plateaus: where the better values are."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo.benchmarks.problems import SUITES
from mondrian_bo.benchmarks.problems.plateaus import PLATEAU_PROBLEMS


@pytest.mark.parametrize("problem", PLATEAU_PROBLEMS, ids=lambda one: one.name)
def test_six_per_cent_of_the_space_is_better(problem):
    assert problem.name in SUITES["plateaus"].problems
    rows = problem.space.sample(2000, np.random.default_rng(0))
    points = [problem.space.from_unit(row) for row in rows]
    for seed in (0, 1):
        values = np.array([problem.instance(seed)(one) for one in points])
        better = values < 1.0
        # Three standard deviations of a share.
        assert better.mean() == pytest.approx(0.06, abs=0.016)
        assert values.min() >= problem.optimum
        # Solved means found.
        assert values[better].max() <= problem.optimum + problem.tolerance < 1.0
        assert problem.instance(seed)(dict.fromkeys(problem.space, 0.5)) == 1.0
        again = problem.instance(seed)
        assert [again(one) for one in points[:50]] == values[:50].tolist()
    assert [problem.function(one) for one in points] != values.tolist()


def test_descriptions_count_inputs() -> None:
    described = {problem.name: problem.description for problem in PLATEAU_PROBLEMS}
    assert described["plateau1"] == "6 % of the space is better, 1 input"
    assert described["plateau2_noisy"] == "6 % of the space is better, 2 inputs, a little noise"
