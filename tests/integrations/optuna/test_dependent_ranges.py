"""Ranges that depend on other parameters of the trial."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.trial import TrialState, create_trial
from studies import make_study, optimize, parameters

from mondrian_bo import Float, Int, MondrianSampler, SearchSpace
from mondrian_bo.integrations.optuna.study.proposals import PUBLISHED_KEY, proposed_values
from mondrian_bo.integrations.optuna.suggestions.told_study import ToldStudy
from mondrian_bo.optimizer.row_optimizer import RowOptimizer


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


def in_triangle(trial):
    """The range of m is [0, 0] where n is 0, which is the worst place."""
    n = trial.suggest_float("n", 0.0, 1.0)
    m = trial.suggest_float("m", 0.0, n)
    return -n - m + trial.suggest_float("x", 0.0, 1.0)


def within_budget(trial):
    """The range of b is [0, 0] where a is 1."""
    a = trial.suggest_float("a", 0.0, 1.0)
    b = trial.suggest_float("b", 0.0, 1.0 - a)
    return (a - 0.2) ** 2 + (b - 0.3) ** 2


def float_below_integer(trial):
    """The best x is 0, so that it does not set trials apart."""
    n = trial.suggest_int("n", 1, 20)
    m = trial.suggest_float("m", 0.0, n)
    return abs(n - 7) - m + trial.suggest_float("x", 0.0, 1.0)


@pytest.mark.parametrize("objective", [in_triangle, within_budget, float_below_integer])
def test_no_trial_is_repeated_where_a_number_can_move(objective):
    for seed in range(2):
        study = optimize(make_study(MondrianSampler(seed=seed)), objective, 60)
        assert len({tuple(params.values()) for params in parameters(study)}) == 60


@pytest.mark.parametrize("is_float_first", [False, True])
def test_few_trials_are_repeated_where_small_ranges_have_the_best_values(is_float_first):
    """The best x is 0, and the values of a range such as [4, 5] are soon all tried beside it."""

    def widths(trial):
        x = trial.suggest_float("x", 0.0, 1.0) if is_float_first else 0.0
        u0 = trial.suggest_int("u0", 4, 128)
        u1 = trial.suggest_int("u1", 4, u0)
        u2 = trial.suggest_int("u2", 4, u1)
        return u0 + u1 + u2 + 100.0 * (x or trial.suggest_float("x", 0.0, 1.0))

    study = optimize(make_study(MondrianSampler(seed=0)), widths, 60)
    assert len({tuple(sorted(params.items())) for params in parameters(study)}) >= 56
    assert study.best_value == 12.0


def taken_beside(proposal, ranges):
    """Return which rows of the unit cube are taken after a trial that got the lower ends."""
    study = make_study()
    distributions = {name: FloatDistribution(*ends) for name, ends in ranges.items()}
    study.add_trial(
        create_trial(
            params={name: one.low for name, one in distributions.items()},
            distributions=distributions,
            value=1.0,
            system_attrs={f"{PUBLISHED_KEY}:0": json.dumps(proposal)},
        )
    )
    memory = ToldStudy([0], None)
    memory.reader.read(study)
    optimizer = memory.optimizer_for(study, dict.fromkeys("xyz", FloatDistribution(0.0, 1.0)), {})
    return optimizer, lambda *row: optimizer.is_taken(np.array(row))


def test_all_values_become_that_of_a_range_of_one():
    proposal = {"x": 0.5, "y": 0.25, "z": 0.75}
    ranges = {"x": (0.5, 1.0), "y": (0.125, 0.125), "z": (0.75, 1.0)}
    optimizer, is_taken = taken_beside(proposal, ranges)
    np.testing.assert_array_equal(optimizer._search.trials.rows, [[0.5, 0.25, 0.75]])
    assert all(is_taken(0.5, y, 0.75) for y in (0.0, 0.125, 0.625, 1.0))
    assert not any(is_taken(0.5, y, 0.5) for y in (0.0, 0.125, 0.625, 1.0))
    # Also if the proposal is the only value.
    _, is_taken = taken_beside({**proposal, "y": 0.125}, ranges)
    assert is_taken(0.5, 0.625, 0.75) and not is_taken(0.5, 0.625, 0.5)
    # Where all ranges have one value, nothing is known of other points.
    _, is_taken = taken_beside(proposal, dict.fromkeys("xyz", (0.125, 0.125)))
    assert is_taken(0.125, 0.125, 0.125) and not is_taken(0.125, 0.125, 0.5)


def test_points_that_lack_values_or_are_outside_of_a_space_are_looked_up():
    """In a narrow range far from 0, where the points of a space are decoded for that."""
    space = SearchSpace({"far": Float(1e6, 1e6 + 1e-4), "n": Int(0, 9)})
    optimizer = RowOptimizer(space, seed=0)
    optimizer.tell_rows(np.array([[0.5, 1.25]]), np.array([1.0]))
    assert optimizer.is_taken(np.array([0.5, 1.25]))
    assert not optimizer.is_taken(np.array([0.5, 0.95]))
    for lacking in ([0.5, np.nan], [np.nan, 1.25]):
        assert not optimizer.is_taken(np.array(lacking))
    assert optimizer.is_taken(np.array([0.5, 0.75]), {np.array([0.5, 0.75]).tobytes()})


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
