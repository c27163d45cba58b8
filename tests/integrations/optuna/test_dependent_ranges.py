"""Ranges that depend on other parameters of the trial."""

from __future__ import annotations

import math

import numpy as np
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.trial import TrialState
from studies import make_study, optimize, parameters

from mondrian_bo import MondrianSampler
from mondrian_bo.integrations.optuna.study.proposals import proposed_values


def test_ranges_that_depend_on_other_parameters():
    """The optimum has y = x, where the range of y ends, and c beyond the range of a."""

    def triangle(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        y = trial.suggest_float("y", 0.0, max(x, 1e-6))
        return (x - 0.5) ** 2 + (y - 1.0) ** 2 - 0.125

    def ascending(trial):
        a = trial.suggest_float("a", 0.0, 1.0)
        b = trial.suggest_float("b", a, 1.1)
        c = trial.suggest_float("c", b, 1.2)
        return (a - 0.6) ** 2 + (b - 0.2) ** 2 + (c - 0.9) ** 2 - 0.08

    for objective in (triangle, ascending):
        found, drawn = (
            [optimize(make_study(kind(seed=seed)), objective, 40).best_value for seed in range(5)]
            for kind in (MondrianSampler, RandomSampler)
        )
        assert np.median(found) < 0.02 * np.median(drawn)


@pytest.mark.parametrize("fails", [False, True])
def test_the_end_of_a_dependent_range_is_not_tried_again(fails):
    """Neighbouring proposals have the same nearest point."""

    def objective(trial):
        x = trial.suggest_int("x", 0, 3)
        end = 0.1 * x + 0.1
        y = trial.suggest_float("y", 0.0, end)
        return math.nan if fails and y >= end else 0.15 * x - y

    for seed in range(3):
        study = optimize(make_study(MondrianSampler(seed=seed)), objective, 30)
        tried = [tuple(params.values()) for params in parameters(study)]
        assert len(set(tried)) == 30


@pytest.mark.parametrize(("low", "step"), [(1e6, 1e-3), (1.7e9, 0.1), (-3e6, 1e-3)])
def test_numbers_of_a_grid_far_from_zero_are_asked_for_as_proposed(low, step):
    """Floats there differ from low + k * step by more than Optuna allows for."""
    names = "xyz"

    def steps(trial):
        values = [trial.suggest_float(one, low, low + 2000 * step, step=step) for one in names]
        return [round((value - low) / step) for value in values]

    study = optimize(make_study(), lambda t: sum((k - 700) ** 2 for k in steps(t)), 40)
    assert study.best_value == 0
    assert not any("mondrian:replaced_params" in trial.system_attrs for trial in study.trials)
    for trial in study.trials[4:]:
        proposal = proposed_values(trial)
        assert trial.params == pytest.approx(proposal, rel=1e-15)


def test_a_number_far_below_a_logarithmic_range_is_no_rounding_error():
    """It is below the range by less than a float's rounding error at the upper end."""

    def objective(trial):
        exponent = trial.suggest_int("exponent", -12, -9)
        value = trial.suggest_float("value", 10.0**exponent, 1e6, log=True)
        return (exponent + 9) ** 2 + (math.log10(value) + 12.0) ** 2

    for seed in range(2):
        study = optimize(make_study(MondrianSampler(seed=seed)), objective, 40)
        assert len({tuple(params.values()) for params in parameters(study)}) == 40


def test_a_proposal_outside_of_the_range_becomes_the_nearest_number():
    study = make_study()
    for i in range(8):
        trial = study.ask({"x": FloatDistribution(0.0, 1.0), "n": IntDistribution(0, 100)})
        study.tell(trial, float(i))
    chosen = []
    for _ in range(20):
        trial = study.ask()
        assert trial.suggest_float("x", 2.0, 3.0, step=0.25) in np.arange(2.0, 3.1, 0.25)
        n = trial.suggest_int("n", 200, 230, step=10)
        assert n in (200, 210, 220, 230)
        if proposed_values(study.get_trials(deepcopy=False)[-1]):
            chosen.append(n == 200)
        study.tell(trial, state=TrialState.FAIL)
    # Half of them, and by chance a quarter of the others.
    assert 5 <= sum(chosen) <= 19
