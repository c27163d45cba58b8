"""The terminator: when it stops, what it stores and shows, resumed studies, wrong arguments."""

from __future__ import annotations

import io
import math
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import optuna
import pytest

from mondrian_bo import MondrianSampler, MondrianTerminator

optuna.logging.set_verbosity(optuna.logging.WARNING)
KEY = "mondrian:terminator"


def _bowl(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", -5, 5), trial.suggest_float("y", -5, 5)
    return (x - 2) ** 2 + (y + 1) ** 2


@pytest.mark.parametrize(
    ("rule", "direction"),
    [({"tolerance": 0.05}, "minimize"), ({"expected_gain": 0.05}, "maximize")],
)
def test_stops_with_the_promised_regret(rule: dict[str, float], direction: str) -> None:
    sign = 1.0 if direction == "minimize" else -1.0
    study = optuna.create_study(direction=direction, sampler=MondrianSampler(seed=0))
    study.optimize(
        lambda trial: sign * _bowl(trial), n_trials=200, callbacks=[MondrianTerminator(**rule)]
    )
    assert 40 <= len(study.trials) <= 180
    assert sign * study.best_value < 0.05
    stored = study.user_attrs[KEY]
    assert stored["n_trials"] == len(study.trials)
    assert stored["n_trials"] - stored["satisfied_since"] >= 20
    assert 0.0 <= stored["expected_gain"] < 0.05
    assert ("probability" in stored) == ("tolerance" in rule)


def test_does_not_stop_early_nor_without_reason() -> None:
    """Random trials of a rough function leave much to gain."""

    def rough(trial: optuna.Trial) -> float:
        x = [trial.suggest_float(f"x{i}", 0, 1) for i in range(4)]
        return sum(math.sin(40.0 * one) for one in x)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(rough, n_trials=40, callbacks=[MondrianTerminator(0.1)])
    assert len(study.trials) == 40
    stored = study.user_attrs[KEY]
    assert stored["satisfied_since"] is None
    assert stored["probability"] > 0.5
    early = optuna.create_study(sampler=MondrianSampler(seed=0))
    early.optimize(_bowl, n_trials=12, callbacks=[MondrianTerminator(1e6)])
    assert KEY not in early.user_attrs


def test_resumed_study_goes_on() -> None:
    """The estimate is stored on the study: another terminator continues."""
    study = optuna.create_study(sampler=MondrianSampler(seed=0))
    study.optimize(_bowl, n_trials=20, callbacks=[MondrianTerminator(1e3)])
    assert study.user_attrs[KEY]["satisfied_since"] == 20
    terminator = pickle.loads(pickle.dumps(MondrianTerminator(1e3)))
    study.optimize(_bowl, n_trials=40, callbacks=[terminator])
    assert len(study.trials) == 40


def test_estimates_are_due_at_intervals() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    seen = []
    terminator = MondrianTerminator(1e-6, min_trials=5, interval=4, patience=100)

    def note(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        latest = terminator.latest(study)
        seen.append(None if latest is None else latest.n_trials)

    study.optimize(_bowl, n_trials=12, callbacks=[terminator, note])
    assert seen == [None] * 4 + [5] * 4 + [9] * 4


@pytest.mark.parametrize(("n_parameters", "expected"), [(2, 20), (6, 30), (12, 50)])
def test_default_patience(n_parameters: int, expected: int) -> None:
    def flat(trial: optuna.Trial) -> float:
        return sum(trial.suggest_float(f"x{i}", 0, 1) for i in range(n_parameters))

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(flat, n_trials=20, callbacks=[MondrianTerminator(0.1)])
    assert study.user_attrs[KEY]["patience"] == expected
    given = MondrianTerminator(0.1, patience=3)
    given.should_terminate(study)
    study.optimize(flat, n_trials=5, callbacks=[given])
    assert study.user_attrs[KEY]["patience"] == 3


def test_noise_that_is_not_declared_may_be_structure() -> None:
    """Two and a half deviations of the noise are above the tolerance."""
    rng = np.random.default_rng(0)
    study = optuna.create_study(sampler=MondrianSampler(seed=0))
    study.optimize(lambda trial: _bowl(trial) + 0.03 * rng.standard_normal(), n_trials=80)
    declared = MondrianTerminator(0.08, patience=0, noisy=True)
    assert not MondrianTerminator(0.08, patience=0).should_terminate(study)
    study.set_user_attr(KEY, None)
    assert declared.should_terminate(study)


def test_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.StringIO()
    monkeypatch.setattr(sys, "stderr", printed)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    terminator = MondrianTerminator(0.01, min_trials=5, interval=1)
    study.optimize(_bowl, n_trials=8, callbacks=[terminator], show_progress_bar=True)
    assert re.search(r"gain > 0\.01: \d+%", printed.getvalue())


def test_failed_trials_and_no_value() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    terminator = MondrianTerminator(0.01, min_trials=1, interval=1)

    def failing(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0, 1)
        return math.nan

    study.optimize(failing, n_trials=3, callbacks=[terminator])
    assert terminator.latest(study) is None


@pytest.mark.parametrize(("n_second", "is_known"), [(3, False), (12, True)])
def test_unknown_branch_of_a_conditional_study(n_second: int, is_known: bool) -> None:
    """Three bad trials of a branch with two numbers say little about it, twelve flat ones a lot."""

    def branched(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            return (trial.suggest_float("x", 0, 1) - 0.3) ** 2
        return 2.0 + 0.1 * (trial.suggest_float("y", 0, 1) + trial.suggest_float("z", 0, 1))

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for kind in ["a"] * 40 + ["b"] * n_second:
        study.enqueue_trial({"kind": kind})
    study.optimize(branched, n_trials=40 + n_second)
    terminator = MondrianTerminator(0.05, patience=0)
    assert terminator.should_terminate(study) == is_known


@pytest.mark.parametrize(
    ("rule", "scale"),
    [({"tolerance": 0.01}, 0.0), ({"tolerance": 5.0}, 1.0), ({"expected_gain": 5.0}, 1.0)],
)
def test_unknown_branch_whose_trials_differ_by_less_than_the_tolerance(
    rule: dict[str, float], scale: float
) -> None:
    """One trial says nothing about three numbers, even if all values seen so far are alike."""

    def branched(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            return scale * (trial.suggest_float("x", 0, 1) - 0.3) ** 2
        return scale * sum(trial.suggest_float(name, 0, 1) for name in "uvw")

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for kind in ["a"] * 10 + ["b"] + ["a"] * 19:
        study.enqueue_trial({"kind": kind})
    study.optimize(branched, n_trials=30)
    terminator = MondrianTerminator(patience=0, **rule)
    assert not terminator.should_terminate(study)
    assert study.user_attrs[KEY]["satisfied_since"] is None
    for _ in range(14):
        study.enqueue_trial({"kind": "b"})
    study.optimize(branched, n_trials=14)
    assert terminator.should_terminate(study)


def test_several_objectives() -> None:
    study = optuna.create_study(directions=["minimize", "minimize"])
    with pytest.raises(ValueError, match="single objective"):
        study.optimize(
            lambda trial: (trial.suggest_float("x", 0, 1), 0.0),
            n_trials=1,
            callbacks=[MondrianTerminator(0.1)],
        )


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"tolerance": 0.1, "expected_gain": 0.1},
        {"tolerance": 0.0},
        {"expected_gain": math.inf},
        {"tolerance": 0.1, "probability": 1.0},
        {"tolerance": 0.1, "min_trials": 0},
        {"tolerance": 0.1, "patience": -1},
        {"tolerance": 0.1, "interval": 0},
    ],
)
def test_wrong_arguments(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        MondrianTerminator(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["probability", "min_trials", "patience", "interval"])
def test_arguments_that_are_no_numbers_are_named(name: str) -> None:
    with pytest.raises(TypeError, match=f"`{name}` must be a"):
        MondrianTerminator(0.1, **{name: "a"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`tolerance` must be a number, got 'a'"):
        MondrianTerminator("a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`probability` must be a number, got None"):
        MondrianTerminator(0.1, None)  # type: ignore[arg-type]


_ESTIMATE = {"n_trials": 13, "expected_gain": 0.1, "satisfied_since": None, "patience": 3}


@pytest.mark.parametrize(
    "stored",
    [
        3,
        "text",
        [],
        {},
        *({name: _ESTIMATE[name] for name in _ESTIMATE if name != one} for one in _ESTIMATE),
        *({**_ESTIMATE, one: "text"} for one in [*_ESTIMATE, "probability"]),
        {**_ESTIMATE, "patience": None},
        {**_ESTIMATE, "n_trials": -1},
        {**_ESTIMATE, "expected_gain": math.inf},
        {**_ESTIMATE, "expected_gain": math.nan},
        {**_ESTIMATE, "expected_gain": -5.0},
        {**_ESTIMATE, "probability": 7.0},
        {**_ESTIMATE, "probability": -0.1},
        {**_ESTIMATE, "satisfied_since": 99},
    ],
    ids=repr,
)
def test_a_foreign_attribute_is_no_estimate(stored: object) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(_bowl, n_trials=13)
    terminator = MondrianTerminator(1e6, min_trials=12, patience=0)
    own, _ = _keys(study, terminator)
    for key in (own, KEY):
        study.set_user_attr(key, stored)
    assert terminator.latest(study) is None
    assert terminator.should_terminate(study)
    assert terminator.latest(study).n_trials == 13


def _keys(study: optuna.Study, terminator: MondrianTerminator) -> list[str]:
    """Return the attributes that a terminator writes, its own one first."""
    copy = optuna.create_study()
    copy.add_trials(study.trials)
    terminator.should_terminate(copy)
    return sorted(copy.user_attrs, key=len, reverse=True)


def test_an_argument_that_is_no_study_is_named() -> None:
    terminator = MondrianTerminator(0.1)
    for method in (terminator.latest, terminator.should_terminate):
        with pytest.raises(TypeError, match=r"`study` must be an optuna.Study, got 3"):
            method(3)  # type: ignore[arg-type]


def test_numbers_of_numpy_are_stored(tmp_path: Path) -> None:
    for rule in ({"tolerance": np.float32(1e6)}, {"expected_gain": np.int64(10**6)}):
        terminator = MondrianTerminator(
            **rule,
            probability=np.float32(0.5),
            min_trials=np.int32(12),
            patience=np.int64(3),
            interval=np.int64(1),
            noisy=np.bool_(True),
        )
        study = optuna.create_study(
            storage=f"sqlite:///{tmp_path}/study.db", sampler=optuna.samplers.RandomSampler(seed=0)
        )
        study.optimize(_bowl, n_trials=30, callbacks=[terminator])
        assert len(study.trials) == 15
        assert study.user_attrs[KEY]["patience"] == 3


@pytest.mark.parametrize("name", ["noisy", "show"])
def test_arguments_that_are_neither_true_nor_false_are_named(name: str) -> None:
    with pytest.raises(TypeError, match=f"`{name}` must be True or False, got 'x'"):
        MondrianTerminator(0.1, **{name: "x"})  # type: ignore[arg-type]
    MondrianTerminator(0.1, **{name: np.True_})  # type: ignore[arg-type]


def test_no_estimate_while_no_value_is_finite() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def infinite(trial: optuna.Trial) -> float:
        return _bowl(trial) + math.inf

    study.optimize(infinite, n_trials=60, callbacks=[MondrianTerminator(0.1)])
    assert len(study.trials) == 60
    assert KEY not in study.user_attrs
    study.optimize(_bowl, n_trials=2, callbacks=[MondrianTerminator(0.1)])
    assert KEY in study.user_attrs


def test_a_single_value_is_no_estimate() -> None:
    """Few equal values are not those of a constant objective, and many are."""
    terminator = MondrianTerminator(1e-6, min_trials=1, patience=0, interval=1)
    study = optuna.create_study(sampler=MondrianSampler(seed=0))
    study.optimize(_bowl, n_trials=6, callbacks=[terminator])
    assert len(study.trials) == 6
    constant = optuna.create_study(sampler=MondrianSampler(seed=0))
    constant.optimize(lambda trial: 0.0 * _bowl(trial), n_trials=30, callbacks=[terminator])
    assert len(constant.trials) == 10


def test_each_rule_has_estimates_of_its_own() -> None:
    """A study that is done by one rule goes on by a stricter one."""

    def plane(trial: optuna.Trial) -> float:
        return trial.suggest_float("x", -5, 5) ** 2 + trial.suggest_float("y", -5, 5) ** 2

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(plane, n_trials=100, callbacks=[MondrianTerminator(10.0)])
    n_first = len(study.trials)
    assert n_first < 100
    study.optimize(plane, n_trials=15, callbacks=[MondrianTerminator(1e-3)])
    assert len(study.trials) == n_first + 15
    # Two terminators at the same time do not disturb each other.
    both = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    callbacks = [MondrianTerminator(1e-3), MondrianTerminator(10.0)]
    both.optimize(plane, n_trials=100, callbacks=callbacks)
    assert len(both.trials) == n_first


def test_a_pruned_trial_is_not_the_best_one() -> None:
    """Trials near the optimum never end: no trial that a user may take is near it."""

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(5):
            trial.report(x + 0.5 ** (step + 5), step)
            if step == 3 and x < 0.3:
                raise optuna.TrialPruned
        return x

    study = optuna.create_study(sampler=MondrianSampler(seed=0))
    study.optimize(objective, n_trials=45, callbacks=[MondrianTerminator(0.05)])
    assert len(study.trials) == 45
    assert study.user_attrs[KEY]["expected_gain"] > 0.2


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_points_that_are_not_valid_are_no_gain(is_wrapped: bool) -> None:
    """The best valid trial is the optimum, and better points may not be suggested.

    The terminator finds the sampler inside of a `PartialFixedSampler`, too.
    """

    def plane(trial: optuna.Trial) -> float:
        return trial.suggest_float("x", -5, 5) + trial.suggest_float("y", 0, 1)

    sampler: optuna.samplers.BaseSampler = MondrianSampler(
        seed=0, is_valid=lambda params: params["x"] >= 0.0
    )
    if is_wrapped:
        sampler = optuna.samplers.PartialFixedSampler({"y": 0.0}, sampler)
    study = optuna.create_study(sampler=sampler)
    study.optimize(plane, n_trials=70, callbacks=[MondrianTerminator(0.1)])
    assert len(study.trials) < 70
    assert study.best_value < 0.05


def test_an_estimate_of_the_same_rule_is_judged_with_the_present_patience() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(_bowl, n_trials=20)
    assert not MondrianTerminator(1e3, patience=50).should_terminate(study)
    assert MondrianTerminator(1e3, patience=0).should_terminate(study)
