"""The importance evaluator: Optuna's conformance suite, targets, conditions, several objectives."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import optuna
import pytest
from optuna import Study
from optuna.importance import BaseImportanceEvaluator
from optuna.samplers import RandomSampler
from optuna.testing.pytest_importance import (
    BasicImportanceEvaluatorTestCase,
    ConditionalImportanceEvaluatorTestCase,
    MultiObjectiveImportanceEvaluatorTestCase,
)

from mondrian_bo import MondrianImportanceEvaluator
from mondrian_bo.importance.models import ModelName


class _WithEvaluator:
    @pytest.fixture(params=["gaussian_process", "forest"])
    def evaluator(self, request: pytest.FixtureRequest) -> Callable[..., BaseImportanceEvaluator]:
        return lambda: MondrianImportanceEvaluator(surrogate=request.param)


class TestBasic(_WithEvaluator, BasicImportanceEvaluatorTestCase):
    pass


class TestConditional(_WithEvaluator, ConditionalImportanceEvaluatorTestCase):
    pass


class TestMultiObjective(_WithEvaluator, MultiObjectiveImportanceEvaluatorTestCase):
    pass


def _study(objective: Callable[[optuna.Trial], object], n_trials: int, **options: Any) -> Study:
    study = optuna.create_study(sampler=RandomSampler(seed=0), **options)
    study.optimize(objective, n_trials=n_trials)
    return study


def _product(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 1e-3, 1e1, log=True)
    y = trial.suggest_float("y", -1.0, 1.0)
    return math.log10(x) * y + 0.0 * trial.suggest_int("idle", 1, 9)


def test_pairs() -> None:
    """(log10 x + 1) y is a pure interaction, as log10 x has the mean -1 in the space."""
    study = _study(_product, 60)
    evaluator = MondrianImportanceEvaluator()
    pairs = evaluator.pairs(study)
    main = evaluator.evaluate(study)
    # Variances of y (-1) and of (log10 x + 1) y: 1/3 and 16/12 * 1/3.
    assert main["y"] == pytest.approx(3 / 7, abs=0.03)
    assert next(iter(pairs)) == ("x", "y")
    assert pairs["x", "y"] == pytest.approx(4 / 7, abs=0.03)
    assert main["x"] < 0.02 and main["idle"] < 0.01
    both = MondrianImportanceEvaluator(interactions=True).evaluate(study)
    assert both["x"] == pytest.approx(2 / 7, abs=0.03)
    assert both["y"] == pytest.approx(5 / 7, abs=0.03)
    assert evaluator.pairs(study, ["x", "idle"]) == {("x", "idle"): pytest.approx(0.0, abs=0.01)}


def test_conditional_parameters() -> None:
    """The branch explains 1/4 of (1 or 3, or 0 to 2), its parameter in half the space the rest."""

    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("kind", ["constant", "line"]) == "constant":
            return 2.0
        return 2.0 * trial.suggest_float("slope", 0.0, 1.0)

    # The value is 2 - B 2 (1 - s), whose variances are those of B and s with B = 1 half the time.
    found = MondrianImportanceEvaluator().evaluate(_study(objective, 80))
    total = 0.5 * (4 / 3) - 0.25
    assert found["kind"] == pytest.approx(0.25 / total, abs=0.05)
    assert found["slope"] == pytest.approx(0.25 / 3 / total, abs=0.05)


def test_several_objectives() -> None:
    """Without a target the shares of the objectives are averaged."""

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        return trial.suggest_float("x", 0, 1), 5.0 * trial.suggest_float("y", 0, 1)

    study = _study(objective, 30, directions=["minimize", "maximize"])
    evaluator = MondrianImportanceEvaluator()
    assert evaluator.evaluate(study) == pytest.approx({"x": 0.5, "y": 0.5}, abs=0.01)
    first = evaluator.evaluate(study, target=lambda trial: trial.values[0])
    assert first["x"] > 0.99


def test_pairs_of_several_objectives_are_averaged() -> None:
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        x, y = trial.suggest_float("x", -1, 1), trial.suggest_float("y", -1, 1)
        return x * y, x + y + x * y

    study = _study(objective, 30, directions=["minimize", "maximize"])
    evaluator = MondrianImportanceEvaluator()
    parts = [evaluator.pairs(study, target=lambda t, k=k: t.values[k])["x", "y"] for k in (0, 1)]
    assert evaluator.pairs(study)["x", "y"] == pytest.approx(sum(parts) / 2)
    assert parts[0] > parts[1] + 0.5


def test_values_of_any_size() -> None:
    """Importances do not depend on the units, up to the largest numbers."""
    study = _study(_product, 30)
    evaluator = MondrianImportanceEvaluator()
    plain = evaluator.evaluate(study)
    largest = max(abs(trial.value) for trial in study.trials)
    for unit in (1e-300, 1e306, 1.7e308 / largest):
        scaled = evaluator.evaluate(study, target=lambda trial, unit=unit: unit * trial.value)
        assert scaled == pytest.approx(plain, abs=1e-6)
    assert set(evaluator.evaluate(study, target=lambda trial: 3.0).values()) == {0.0}


@pytest.mark.parametrize("surrogate", ["gaussian_process", "forest"])
def test_same_seed_same_importance(surrogate: ModelName) -> None:
    study = _study(_product, 30)
    new = partial(MondrianImportanceEvaluator, surrogate=surrogate, seed=3)
    assert new().evaluate(study) == new().evaluate(study)
    assert list(new().evaluate(study).values()) == sorted(
        new().evaluate(study).values(), reverse=True
    )


@pytest.mark.parametrize("surrogate", ["gaussian_process", "forest"])
@pytest.mark.parametrize("value", [0.1, 1.0, -1e300])
def test_equal_values_have_no_variance(surrogate: ModelName, value: float) -> None:
    """The mean of three times 0.1 is not 0.1."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: value + 0.0 * trial.suggest_float("x", 0, 1), n_trials=3)
    evaluator = MondrianImportanceEvaluator(surrogate=surrogate)
    assert evaluator.evaluate(study) == {"x": 0.0}
    assert evaluator.pairs(study) == {}


def test_wrong_arguments() -> None:
    study = _study(_product, 3)
    with pytest.raises(ValueError, match="surrogate"):
        MondrianImportanceEvaluator(surrogate="amf")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n_estimators"):
        MondrianImportanceEvaluator(n_estimators=0)
    with pytest.raises(TypeError, match="`n_estimators` must be an integer, got 'a'"):
        MondrianImportanceEvaluator(n_estimators="a")
    with pytest.raises(ValueError, match="`seed` must be at least 0, got -1"):
        MondrianImportanceEvaluator(seed=-1)
    with pytest.raises(TypeError, match="`interactions` must be True or False, got 'no'"):
        MondrianImportanceEvaluator(interactions="no")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"\['z'\]"):
        MondrianImportanceEvaluator().evaluate(study, ["x", "z"])
    with pytest.raises(TypeError, match="list of names"):
        MondrianImportanceEvaluator().evaluate(study, "x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`target` must be a function or None, got 3"):
        MondrianImportanceEvaluator().evaluate(study, target=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"`study` must be an optuna.Study, got 3"):
        MondrianImportanceEvaluator().evaluate(3)  # type: ignore[arg-type]


def test_targets_that_are_no_numbers() -> None:
    """Texts are refused; trials whose number is not finite are left out, as Optuna does."""
    study = _study(_product, 20)
    evaluator = MondrianImportanceEvaluator()
    for wrong in ("a", "1.5", None, [1.0, 2.0]):
        for found in (evaluator.evaluate, evaluator.pairs):
            with pytest.raises(TypeError, match=r"`target` must return a number.* for trial 0"):
                found(study, target=lambda trial, wrong=wrong: wrong)
    assert set(evaluator.evaluate(study, target=lambda _: math.nan).values()) == {0.0}
    some = evaluator.evaluate(study, target=lambda t: t.value if t.number % 2 else math.nan)
    assert some == evaluator.evaluate(_part(study), target=lambda t: t.value)


def _part(study: optuna.Study) -> optuna.Study:
    """Return a study of every second trial."""
    part = optuna.create_study()
    part.add_trials(study.trials[1::2])
    return part
