"""Parameters with a single possible value in each trial: checked, reported, and explained."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from mondrian_bo import MondrianImportanceEvaluator, MondrianSampler, plotting
from mondrian_bo.integrations.optuna.study.distributions import joined

optuna.logging.set_verbosity(optuna.logging.WARNING)


def _study(objective: Any, n_trials: int, sampler: Any = None) -> optuna.Study:
    study = optuna.create_study(sampler=sampler or optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=n_trials)
    return study


def _constant(trial: optuna.Trial) -> float:
    trial.suggest_categorical("k", ["a"])
    if trial.suggest_categorical("kind", ["p", "q"]) == "p":
        trial.suggest_int("e", 5, 5)
    return trial.suggest_float("x", 0.0, 1.0)


def _differing(trial: optuna.Trial) -> float:
    n = trial.suggest_int("n", trial.number % 5, trial.number % 5)
    return 10.0 * n + trial.suggest_float("x", 0.0, 1.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": "zzz"}, "no possible value of 'k'"),
        ({"k": None}, "no possible value of 'k'"),
        ({"e": "foo"}, "no possible value of 'e'"),
        ({"e": float("nan")}, "no possible value of 'e'"),
        ({"e": 5.5}, "must have an integer for 'e'"),
    ],
)
def test_impossible_values_are_refused(wrong: dict[str, Any], message: str) -> None:
    study, sampler = _study(_constant, 12), MondrianSampler(seed=0)
    point = {"x": 0.5, "kind": "p", "k": "a", "e": 5}
    expected = sampler.predict(study, {"x": 0.5, "kind": "p"})
    assert sampler.predict(study, point) == expected
    with pytest.raises(ValueError, match=message):
        sampler.predict(study, {**point, **wrong})


def test_a_choice_of_any_trial_is_possible() -> None:
    study = optuna.create_study()
    for number in range(8):
        choice = "ab"[number % 2]
        study.add_trial(
            optuna.trial.create_trial(
                params={"c": choice, "x": number / 8.0},
                distributions={
                    "c": CategoricalDistribution([choice]),
                    "x": FloatDistribution(0.0, 1.0),
                },
                value=float(number),
            )
        )
    sampler = MondrianSampler(seed=0)
    a, b = (sampler.predict(study, {"c": one, "x": 0.5}) for one in "ab")
    assert a == b
    with pytest.raises(ValueError, match="no possible value of 'c'"):
        sampler.predict(study, {"c": "z", "x": 0.5})


def test_differing_values_are_reported_once() -> None:
    with pytest.warns(
        UserWarning, match=r"parameters \['n'\] have a single possible value"
    ) as found:
        study = _study(_differing, 25, MondrianSampler(seed=0))
    assert len(found) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.optimize(_differing, n_trials=2)


def test_equal_values_and_ranges_that_come_later_are_not_reported() -> None:
    def later(trial: optuna.Trial) -> float:
        return float(trial.suggest_int("n", min(trial.number, 2), 2 + 2 * (trial.number > 2)))

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        _study(_constant, 15, MondrianSampler(seed=0))
        _study(later, 15, MondrianSampler(seed=0))


def test_differing_values_have_an_importance() -> None:
    """Against the shares of variance of 10 n + x, with n uniform on 0 to 4."""
    study = _study(_differing, 40)
    total = 100.0 * 2.0 + 1.0 / 12.0
    for surrogate in ("gaussian_process", "forest"):
        found = MondrianImportanceEvaluator(surrogate=surrogate).evaluate(study)
        assert found["n"] == pytest.approx(200.0 / total, abs=0.02)


def test_plots_say_why_a_parameter_is_not_in_the_model() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("wide", -1.7e308, 1.7e308)
        trial.suggest_int("one", 3, 3)
        if trial.number == 0:
            trial.suggest_float("failed", 0.0, 1.0)
            return float("nan")
        return trial.suggest_float("y", 0.0, 1.0)

    study = _study(objective, 12, MondrianSampler(seed=0))
    for name, reason in (
        ("wide", "'wide' is not in the model: its range is too wide for arithmetic"),
        ("one", "'one' has a single value in each of the study's trials"),
        ("failed", "No trial with a value has the parameter 'failed'"),
        ("none", "has no parameter 'none'"),
    ):
        with pytest.raises(ValueError, match=reason):
            plotting.plot_slice(study, name)


@pytest.mark.parametrize(
    ("distributions", "expected"),
    [
        ([IntDistribution(3, 3), IntDistribution(1, 1)], IntDistribution(1, 3)),
        ([IntDistribution(4, 4, step=2), IntDistribution(1, 1)], IntDistribution(1, 4)),
        (
            [IntDistribution(2, 2, log=True), IntDistribution(8, 8, log=True)],
            IntDistribution(2, 8, log=True),
        ),
        (
            [FloatDistribution(0.5, 0.5, step=0.1), FloatDistribution(2.0, 2.0, step=0.1)],
            FloatDistribution(0.5, 2.0),
        ),
        (
            [FloatDistribution(0.0, 0.0), FloatDistribution(2.0, 2.0, log=True)],
            FloatDistribution(0.0, 2.0),
        ),
        (
            [CategoricalDistribution([c]) for c in (None, "a", None, 1, True)],
            CategoricalDistribution([None, "a", 1]),
        ),
        ([IntDistribution(3, 3), FloatDistribution(1.0, 1.0)], FloatDistribution(1.0, 1.0)),
    ],
)
def test_joined(distributions: list[BaseDistribution], expected: BaseDistribution) -> None:
    found = None
    for one in distributions:
        found = joined(found, one)
    assert found == expected


def test_suggestions_are_those_without_the_parameters() -> None:
    """A parameter that the sampler cannot choose changes no suggestion."""

    def bare(trial: optuna.Trial) -> float:
        return 10.0 * (trial.number % 5) + trial.suggest_float("x", 0.0, 1.0)

    with pytest.warns(UserWarning):
        study = _study(_differing, 15, MondrianSampler(seed=0))
    expected = _study(bare, 15, MondrianSampler(seed=0))
    found = [trial.params["x"] for trial in study.trials]
    np.testing.assert_array_equal(found, [trial.params["x"] for trial in expected.trials])
