"""Predictions of a study: units, conditions, trials of other samplers, unchanged suggestions."""

from __future__ import annotations

import numpy as np
import optuna
import pytest

from mondrian_bo import MondrianSampler


def _objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 1e-3, 1e1, log=True)
    kind = trial.suggest_categorical("kind", ["a", "b"])
    value = 100.0 + 10.0 * np.log10(x) ** 2
    if kind == "b":
        value += 20.0 * trial.suggest_float("slope", 0.0, 1.0)
    trial.suggest_int("constant", 3, 3)
    return float(value)


def _study(n_trials: int = 40, **options: object) -> optuna.Study:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), **options)  # type: ignore[arg-type]
    study.optimize(_objective, n_trials=n_trials)
    return study


def test_predictions_of_another_samplers_study() -> None:
    study = _study()
    sampler = MondrianSampler(seed=0)
    points = [
        {"x": 0.1, "kind": "a", "constant": 3},
        {"x": 1.0, "kind": "b", "slope": 0.5},
        {"x": 2.0, "kind": "a", "slope": 0.7},
    ]
    expected = [110.0, 110.0, 100.0 + 10.0 * np.log10(2.0) ** 2]
    found = sampler.predict(study, points)
    np.testing.assert_allclose(found.mean, expected, atol=3.0)
    assert (found.std > 0.0).all() and (found.std < 5.0).all()
    assert (found.lower < found.mean).all() and (found.mean < found.upper).all()
    alone = sampler.predict(study, points[1], coverage=0.5)
    assert alone.mean[0] == pytest.approx(found.mean[1])
    assert found.lower[1] < alone.lower[0] < alone.upper[0] < found.upper[1]
    # A parameter of the other branch does not count.
    same = sampler.predict(study, {"x": 2.0, "kind": "a"})
    assert same.mean[0] == pytest.approx(found.mean[2])


def test_maximised_studies_have_the_same_units() -> None:
    up = optuna.create_study(direction="maximize")
    for trial in _study().trials:
        up.add_trial(trial)
    found = MondrianSampler(seed=0).predict(up, {"x": 0.1, "kind": "a"})
    assert found.mean[0] == pytest.approx(110.0, abs=3.0)
    assert found.lower[0] < found.mean[0] < found.upper[0]


def test_several_objectives() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"])

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        x = trial.suggest_float("x", 0.0, 1.0)
        return x, 1000.0 + x**2

    study.sampler = optuna.samplers.RandomSampler(seed=0)
    study.optimize(objective, n_trials=20)
    found = MondrianSampler(seed=0).predict(study, [{"x": 0.5}, {"x": 0.9}])
    np.testing.assert_allclose(found.mean, [[0.5, 1000.25], [0.9, 1000.81]], atol=0.05)
    assert found.upper.shape == (2, 2)
    assert (found.lower < found.upper).all()


def test_predictions_change_no_suggestion() -> None:
    def run(reads: bool) -> list[dict[str, object]]:
        sampler = MondrianSampler(seed=1, n_startup_trials=4)
        study = optuna.create_study(sampler=sampler)
        for number in range(14):
            study.optimize(_objective, n_trials=1)
            if reads and number % 2:
                sampler.predict(study, {"x": 1.0, "kind": "a"})
        return [trial.params for trial in study.trials]

    assert run(reads=True) == run(reads=False)


def test_new_trials_are_learnt() -> None:
    study = _study(10)
    sampler = MondrianSampler(seed=0)
    before = sampler.predict(study, {"x": 1.0, "kind": "a"})
    study.optimize(_objective, n_trials=20)
    after = sampler.predict(study, {"x": 1.0, "kind": "a"})
    assert after.std[0] < before.std[0]


def test_wrong_arguments() -> None:
    sampler = MondrianSampler(seed=0)
    with pytest.raises(ValueError, match="No finished trial"):
        sampler.predict(optuna.create_study(), {"x": 1.0})
    study = _study(10)
    with pytest.raises(ValueError, match="coverage"):
        sampler.predict(study, {"x": 1.0, "kind": "a"}, coverage=1.0)
    with pytest.raises(TypeError, match="`coverage` must be a number"):
        sampler.predict(study, {"x": 1.0, "kind": "a"}, coverage="0.9")
    with pytest.raises(ValueError, match=r"\['z'\]"):
        sampler.predict(study, {"x": 1.0, "kind": "a", "z": 1})
    with pytest.raises(ValueError, match=r"lacks an active parameter: one or more of .*'x'"):
        sampler.predict(study, {"kind": "a"})
    with pytest.raises(ValueError, match=r"lacks an active parameter: one or more of .*'slope'"):
        sampler.predict(study, {"x": 1.0, "kind": "b"})
    with pytest.raises(ValueError, match="'kind': 'c' not in"):
        sampler.predict(study, {"x": 1.0, "kind": "c"})
    for value in (float("nan"), float("inf"), None, "one"):
        with pytest.raises(ValueError, match="no possible value of 'x'"):
            sampler.predict(study, {"x": value, "kind": "a"})
    for params in ("x", study.trials[0], [0.5], None, 3):
        with pytest.raises(TypeError, match="a mapping or a sequence of mappings"):
            sampler.predict(study, params)
    with pytest.raises(TypeError, match=r"`study` must be an optuna.Study, got None"):
        sampler.predict(None, {"x": 1.0})


def test_points_from_an_iterator() -> None:
    sampler, study = MondrianSampler(seed=0), _study(12)
    points = [{"x": 1.0, "kind": "a"}, {"x": 0.5, "kind": "a"}]
    expected = sampler.predict(study, points)
    np.testing.assert_array_equal(sampler.predict(study, iter(points)), expected)


def test_infinite_values_alone_predict_nothing() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + float("inf"), n_trials=5)
    with pytest.raises(ValueError, match="No finished trial has a finite value"):
        MondrianSampler(seed=0).predict(study, {"x": 0.5})


def test_integers_are_whole_and_ranges_may_be_left() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_int("n", 1, 9) ** 2, n_trials=12)
    sampler = MondrianSampler(seed=0)
    for value in (2.5, -0.1, 1e-300):
        with pytest.raises(ValueError, match=f"must have an integer for 'n', got {value!r}"):
            sampler.predict(study, {"n": value})
    inside = sampler.predict(study, [{"n": 2}, {"n": 2.0}])
    assert inside.mean[0] == inside.mean[1]
    assert sampler.predict(study, {"n": 12}).std[0] > inside.std[0]


def test_numbers_far_beyond_the_range_have_a_prediction() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0) ** 2, n_trials=12)
    far = [{"x": value} for value in (1e12, 1e160, 1.7e308, -1e160)]
    found = MondrianSampler(seed=0).predict(study, far)
    assert np.isfinite(found).all()
    assert (found.std > MondrianSampler(seed=0).predict(study, {"x": 0.5}).std).all()


def test_parameters_with_a_single_value_may_be_named() -> None:
    def objective(trial):
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            trial.suggest_categorical("solver", ["only"])
        return trial.suggest_float("x", 0.0, 1.0)

    sampler = MondrianSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=12)
    for trial in study.trials:
        without = {name: value for name, value in trial.params.items() if name != "solver"}
        assert sampler.predict(study, trial.params) == sampler.predict(study, without)
    with pytest.raises(ValueError, match=r"no parameters \['z'\]"):
        sampler.predict(study, {"kind": "a", "solver": "only", "x": 0.5, "z": 1})
