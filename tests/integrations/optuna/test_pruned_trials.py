"""What pruned trials are learnt with: the value that their reports predict."""

from __future__ import annotations

import math

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial
from studies import make_study, optimize, parameters

from mondrian_bo import MondrianSampler
from mondrian_bo.integrations.optuna.study.pruned_trials import PrunedTrials
from mondrian_bo.integrations.optuna.study.study_curves import StudyCurves
from mondrian_bo.integrations.optuna.study.study_reader import StudyReader
from mondrian_bo.optimizer.models import known_noise


def _trial(reports, state=TrialState.COMPLETE, value=None) -> optuna.trial.FrozenTrial:
    reports = dict(enumerate(reports)) if not isinstance(reports, dict) else reports
    value = list(reports.values())[-1] if value is None and state == TrialState.COMPLETE else value
    return create_trial(state=state, value=value, intermediate_values=reports)


def _curves(n, seed=0, n_steps=10, sign=1.0):
    """Curves that fall by 3 towards their ends, with little noise."""
    rng = np.random.default_rng(seed)
    ends, steps = rng.normal(size=(n, 1)), np.arange(n_steps)
    return sign * (ends + 3.0 * 0.5**steps + 0.01 * rng.normal(size=(n, n_steps)))


def _impute(complete, trial, maximize=False):
    reports = list(trial.intermediate_values.values())
    reported = reports[-1] if reports and not math.isnan(reports[-1]) else None
    return PrunedTrials(complete, maximize).impute(trial, reported)


def _pruned(reports) -> optuna.trial.FrozenTrial:
    return _trial(reports, TrialState.PRUNED)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_prediction_is_the_end_of_the_curve(sign) -> None:
    curves = _curves(50, sign=sign)
    complete = [_trial(curve) for curve in curves[:40]]
    for curve in curves[40:]:
        is_extreme = sign * curve[-1] > (sign * curves[:40, -1]).max()
        for n_steps, tolerance in ((2, 0.4), (6, 0.2)):
            value, error = _impute(complete, _pruned(curve[:n_steps]), sign < 0.0)
            assert abs(value - curve[-1]) < tolerance
            assert 0.0 < error < (1.5 if is_extreme else 1.0) * tolerance


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_trial_that_is_worse_than_all_complete_ones(sign) -> None:
    """Reports of a curve determine its end, and complete trials know good curves only."""
    share = 1.0 - 0.5 ** np.arange(1.0, 11.0)
    complete = [_trial(sign * end * share) for end in np.linspace(0.9, 1.0, 30)]
    errors = []
    for end in (0.2, 0.6, 0.8, 0.97):
        value, error = _impute(complete, _pruned(sign * end * share[:1]), sign > 0.0)
        assert abs(sign * value - end) < 0.05 + 1.5 * error
        assert error < 0.5 * (1.0 - end) + 0.05
        errors.append(error)
    assert np.all(np.diff(errors) < 0.0)


def test_a_trial_without_reports_is_uncertain() -> None:
    complete = [_trial({}, value=value) for value in (0.0, 1.0, 5.0, math.inf)]
    assert _impute(complete, _pruned({})) == (5.0, pytest.approx(np.std([0.0, 1.0, 5.0])))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e308])
def test_the_spread_of_outcomes_at_any_scale(scale) -> None:
    outcomes = [0.0, 1.0, -1.0, 0.5]
    complete = [_trial({}, value=scale * value) for value in outcomes]
    assert _impute(complete, _pruned({})).error / scale == pytest.approx(np.std(outcomes))


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**-520, 2.0**520, 2.0**900])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_the_scale_of_a_study_with_pruned_trials_does_not_matter(scale) -> None:
    points = [{"x": x} for x in (-1.0, 0.0, 0.7)]
    predictions = []
    for unit in (1.0, scale):
        study = make_study(optuna.samplers.RandomSampler(seed=0))
        for curve in _curves(24):
            trial = study.ask({"x": optuna.distributions.FloatDistribution(-1.0, 1.0)})
            reports = unit * (curve + trial.params["x"])
            is_pruned = trial.number % 3 == 2
            for step, report in enumerate(reports[: 2 if is_pruned else None]):
                trial.report(report, step)
            if is_pruned:
                study.tell(trial, state=TrialState.PRUNED)
            else:
                study.tell(trial, reports[-1])
        found = MondrianSampler(seed=0).predict(study, points)
        predictions.append(np.concatenate([found.mean, found.std]) / unit)
    np.testing.assert_allclose(*predictions, rtol=1e-4)


def _fold_reports(rng, level, n_folds=5):
    """Reports of shuffled folds of very different difficulty, in the order they were made."""
    folds = level + 2.0 * np.arange(n_folds) + 0.05 * rng.normal(size=n_folds)
    return {int(fold): float(folds[fold]) for fold in rng.permutation(n_folds)}


@pytest.mark.parametrize("is_sorted", [False, True])
def test_pruned_trials_of_shuffled_folds_are_compared_at_their_own_folds(is_sorted) -> None:
    """Also where a relational storage has sorted the folds: the gaps tell that they were not."""
    rng = np.random.default_rng(0)
    reports = [_fold_reports(rng, level) for level in rng.normal(size=60)]
    means = [float(np.mean(list(one.values()))) for one in reports]

    def stored(one):
        return dict(sorted(one.items())) if is_sorted else one

    complete = [
        _trial(stored(one), value=value) for one, value in zip(reports[:30], means, strict=False)
    ]
    pruned, distances = PrunedTrials(complete, False), []
    for one, mean in zip(reports[30:], means[30:], strict=True):
        n_reports = int(rng.integers(1, 5))
        trial = _pruned(stored(dict(list(one.items())[:n_reports])))
        value, error = pruned.impute(trial, 0.0)
        distances.append(abs(value - mean))
        assert 0.0 < error < 0.7
        assert distances[-1] < 0.1 + 2.0 * error
    assert np.median(distances) < 0.15


def test_a_trial_from_a_checkpoint_is_compared_at_its_own_steps() -> None:
    curves = _curves(40)
    pruned = PrunedTrials([_trial(one) for one in curves[:20]], False)
    for curve in curves[20:]:
        for steps in ((5, 6), (0, 1, 2, 3)):
            value, error = pruned.impute(_pruned({step: curve[step] for step in steps}), 0.0)
            assert abs(value - curve[-1]) < 0.1 + 2.0 * error
            assert 0.0 < error < 0.6


def test_a_short_curve_says_less_than_a_long_one() -> None:
    rng = np.random.default_rng(0)
    curves = rng.normal(size=(40, 1)) + rng.normal(size=(40, 20)) / np.sqrt(1.0 + np.arange(20))
    complete = [_trial(curve) for curve in curves[:30]]
    errors = [
        [_impute(complete, _pruned(curve[:n])).error for n in (1, 5, 15)] for curve in curves[30:]
    ]
    assert np.all(np.diff(np.mean(errors, axis=0)) < 0.0)


def test_without_curves_to_compare_with_the_last_report_counts() -> None:
    bad = _pruned([5.0])
    assert _impute([], bad) == (5.0, 0.0)
    # The third complete trial ended at once, and the fourth has no reports: only two went on.
    complete = [*map(_trial, _curves(2)), _trial([0.0]), _trial({}, value=0.0)]
    assert _impute(complete, bad) == (5.0, 0.0)
    complete.append(_trial(_curves(3)[2]))
    assert _impute(complete, bad).error > 0.0
    # Beyond all of them.
    assert _impute(complete, _pruned({50: 5.0})) == (5.0, 0.0)


def test_diverged_trials_are_bad() -> None:
    curves = _curves(20)
    value, error = _impute([_trial(curve) for curve in curves], _pruned([3.0, math.nan]))
    assert value > np.median(curves[:, -1])
    assert math.isfinite(value) and math.isfinite(error)


def test_a_later_reader_learns_the_same() -> None:
    """Predictions do not depend on when trials are read."""
    rng = np.random.default_rng(0)
    study = make_study(optuna.samplers.RandomSampler(seed=0))
    early, running = StudyReader(), []
    for curve in _curves(60):
        running.append((study.ask(), curve))
        if len(running) < 4:
            continue
        trial, reports = running.pop(int(rng.integers(4)))
        if rng.random() < 0.6:
            reports = reports[: int(rng.integers(1, 9))]
        for step, report in enumerate(reports):
            trial.report(float(report), step)
        if len(reports) == 10:
            study.tell(trial, float(reports[-1]))
        else:
            study.tell(trial, state=TrialState.PRUNED)
        early.read(study)
    late = StudyReader()
    late.read(study)
    assert str(late.finished) == str(early.finished)
    assert early.errors_of(early.finished).sum() > 0.0
    assert sum(trial.error > 0.0 for trial in early.finished) > 20


def test_suggestions_without_pruned_trials_do_not_change(monkeypatch) -> None:
    """Reports of complete trials make no difference, and no model of them."""
    made = []
    monkeypatch.setattr(StudyCurves, "__init__", lambda self, *_: made.append(self))

    def objective(trial: optuna.Trial, reports: bool) -> float:
        x = trial.suggest_float("x", -2.0, 2.0)
        for step in range(5 if reports else 0):
            trial.report(x * x + 1.0 / (1.0 + step), step)
        return x * x

    plain = optimize(make_study(), lambda trial: objective(trial, False), 12)
    reporting = optimize(make_study(), lambda trial: objective(trial, True), 12)
    assert parameters(plain) == parameters(reporting)
    assert not made


def test_predictions_are_known_noise(monkeypatch) -> None:
    told = []
    original = known_noise.KnownNoise.tell
    monkeypatch.setattr(
        known_noise.KnownNoise,
        "tell",
        lambda self, rows, values, errors, learn=None, weighs=True: (
            told.append((values.copy(), errors.copy(), weighs))
            or original(self, rows, values, errors, learn, weighs)
        ),
    )

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -2.0, 2.0)
        for step in range(6):
            trial.report(x * x + 0.5**step, step)
            if step == 2 and trial.number % 2:
                raise optuna.TrialPruned
        return x * x

    sampler = MondrianSampler(seed=0, n_startup_trials=3)
    study = optimize(make_study(sampler), objective, 24)
    errors = np.concatenate([errors[:, 0] for _, errors, _ in told])
    # Predicted ends keep the average of what remains.
    assert not any(weighs for *_, weighs in told)
    assert (errors > 0.0).sum() >= 8
    # Complete trials have no error.
    assert (errors == 0.0).sum() >= 8
    assert study.best_value < 0.05


def test_constraints_go_with_predictions() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -2.0, 2.0)
        trial.set_constraint("right", 0.5 - x)
        for step in range(6):
            trial.report(x * x + 0.5**step, step)
            if step == 2 and x * x > 0.8:
                raise optuna.TrialPruned
        return x * x

    study = optimize(make_study(), objective, 24)
    feasible = [t for t in study.trials[6:] if t.params["x"] >= 0.5 - 1e-9]
    assert len(feasible) > 6
    assert min(t.value for t in feasible if t.state == TrialState.COMPLETE) < 0.35


def test_directions_are_mirror_images_without_reports() -> None:
    """Of an even number of outcomes the worse one of the two in the middle counts."""
    outcomes = [1.0, 3.0, 4.0, 7.0]
    low, _ = _impute([_trial([], value=one) for one in outcomes], _pruned([]))
    high, _ = _impute([_trial([], value=-one) for one in outcomes], _pruned([]), maximize=True)
    assert (low, high) == (4.0, -4.0)
