"""MondrianPruner in studies: samplers, storages, directions, kinds of curves, workers."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys

import numpy as np
import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from studies import make_study, optimize, random_study, states

from mondrian_bo import MondrianPruner, MondrianSampler
from mondrian_bo.optimizer.learning_curves import learning_curves

N_STEPS = 15


def _loss(rate: float, step: int) -> float:
    """A curve: small rates converge late, large ones early and badly."""
    return (rate - 0.7) ** 2 + (1.0 - 0.7 * rate) ** (step + 1)


def _train(trial: optuna.Trial, sign: float = 1.0, steps=range(N_STEPS)) -> float:
    rate = trial.suggest_float("rate", 0.05, 1.0)
    value = math.inf
    for step in steps:
        value = sign * _loss(rate, step)
        trial.report(value, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


def _last_steps(study) -> list[int | None]:
    return [trial.last_step for trial in study.get_trials(deepcopy=False)]


def test_bad_trials_are_pruned_and_the_best_is_kept() -> None:
    study = optimize(random_study(), _train, 60)
    plain = optimize(random_study(optuna.pruners.NopPruner()), _train, 60)
    assert states(study)[TrialState.PRUNED] > 25
    assert study.best_trial.number == plain.best_trial.number
    assert sum(step + 1 for step in _last_steps(study)) < 0.6 * 60 * N_STEPS
    # Nothing is pruned before three trials are complete, nor at step 0.
    assert {trial.state for trial in study.trials[:3]} == {TrialState.COMPLETE}
    assert min(_last_steps(study)) >= 1


def test_both_directions_are_the_same() -> None:
    low = optimize(random_study(), _train, 40)
    high = optimize(random_study(direction="maximize"), lambda trial: _train(trial, -1.0), 40)
    assert _last_steps(low) == _last_steps(high)


@pytest.mark.parametrize(
    "sampler",
    [optuna.samplers.TPESampler(seed=0), MondrianSampler(seed=0, n_startup_trials=3)],
    ids=["tpe", "mondrian"],
)
def test_it_works_with_samplers(sampler) -> None:
    study = optimize(make_study(sampler, pruner=MondrianPruner()), _train, 30)
    assert states(study).keys() == {TrialState.COMPLETE, TrialState.PRUNED}


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_storages_make_no_difference(kind, tmp_path) -> None:
    storage = (
        f"sqlite:///{tmp_path}/study.db"
        if kind == "sqlite"
        else JournalStorage(JournalFileBackend(str(tmp_path / "journal.log")))
    )
    study = optimize(random_study(storage=storage), _train, 9)
    assert TrialState.PRUNED in states(study)
    assert _last_steps(study) == _last_steps(optimize(random_study(), _train, 9))


def test_a_pruner_that_joins_later_decides_alike() -> None:
    """Another process, a resumed study, and a pickled pruner read the same curves."""
    study = optimize(random_study(), _train, 20)
    joined = pickle.loads(pickle.dumps(study.pruner))
    trial = study.ask()
    rate = trial.suggest_float("rate", 0.05, 1.0)
    decisions = []
    for step in range(N_STEPS):
        trial.report(_loss(rate, step), step)
        frozen = study.get_trials(deepcopy=False)[-1]
        decisions.append((study.pruner.prune(study, frozen), joined.prune(study, frozen)))
        # One that sees all reports at once.
        decisions.append((MondrianPruner().prune(study, frozen), decisions[-1][0]))
    assert all(one == other for one, other in decisions)
    assert any(one for one, _ in decisions)


def test_threads_share_a_pruner() -> None:
    study = optimize(random_study(), _train, 40, n_jobs=4)
    found = states(study)
    assert found.keys() == {TrialState.COMPLETE, TrialState.PRUNED}
    assert sum(found.values()) == 40


def test_noisy_trials_of_different_steps_and_lengths() -> None:
    rng = np.random.default_rng(0)

    def objective(trial: optuna.Trial) -> float:
        rate = trial.suggest_float("rate", 0.05, 1.0)
        length = trial.suggest_int("length", 8, 24)
        value = math.inf
        for step in range(trial.number % 3, length, 1 + trial.number % 3):
            value = _loss(rate, step) + 0.01 * rng.normal()
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study = optimize(random_study(), objective, 60)
    assert states(study)[TrialState.PRUNED] > 15
    assert study.best_value < 0.1


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_diverging_trials_are_pruned_at_once(value) -> None:
    def objective(trial: optuna.Trial) -> float:
        if trial.number < 8 or trial.number % 2:
            return _train(trial)
        for step in range(N_STEPS):
            trial.report(value if step >= 4 else 0.1, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        raise AssertionError("it was not pruned")

    study = optimize(random_study(), objective, 16)
    assert all(trial.last_step <= 4 for trial in study.trials[8::2])


_N_HONEST = 20
"""Number of first trials that end as they look."""


def _level(number: int) -> float:
    return 1.8 if number >= _N_HONEST else 1.0 + 0.05 * number


def _late_gain(trial: optuna.Trial) -> float:
    """The first trials end at their level; later ones look bad, and end best."""
    value = 0.0
    for step, noise in enumerate(np.random.default_rng(trial.number).normal(size=10)):
        gains = trial.number >= _N_HONEST and step == 9
        value = -1.0 if gains else _level(trial.number) + 0.02 * noise
        trial.report(value, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


def test_no_study_prunes_for_ever() -> None:
    """Where all are pruned, one trial goes on after `patience` others, and corrects the belief."""

    def run(patience: int | None) -> optuna.Study:
        pruner = MondrianPruner(patience=patience, n_startup_trials=_N_HONEST)
        return optimize(random_study(pruner), _late_gain, 80)

    assert run(None).best_value > 0.0
    study = run(8)
    assert study.best_value == -1.0
    assert study.best_trial.number == _N_HONEST + 8
    in_a_row, most = 0, 0
    for trial in study.trials:
        in_a_row = in_a_row + 1 if trial.state == TrialState.PRUNED else 0
        most = max(most, in_a_row)
    assert most == 8
    # Once some have been seen, more complete.
    assert states(study)[TrialState.COMPLETE] > _N_HONEST + 60 // 9


def test_patience_with_several_workers() -> None:
    """The oldest running trial goes on first, the second oldest after twice as many."""
    pruner = MondrianPruner(patience=3, n_startup_trials=_N_HONEST)
    study = optimize(random_study(pruner), _late_gain, _N_HONEST)
    oldest, second = study.ask(), study.ask()

    def is_pruned(trial: optuna.Trial) -> bool:
        trial.report(1.8, len(study.trials[trial.number].intermediate_values))
        return trial.should_prune()

    is_pruned(oldest)
    is_pruned(second)
    found = []
    for _ in range(7):
        found.append((is_pruned(oldest), is_pruned(second)))
        study.tell(study.ask(), state=TrialState.PRUNED)
    assert found == 3 * [(True, True)] + 3 * [(False, True)] + [(False, False)]
    # A complete trial ends it.
    study.tell(study.ask(), 1.0)
    assert is_pruned(oldest)
    # Diverged trials never go on.
    for _ in range(9):
        study.tell(study.ask(), state=TrialState.PRUNED)
    assert not is_pruned(oldest)
    oldest.report(math.nan, 50)
    assert oldest.should_prune()


def test_failed_trials_do_not_count_for_the_patience() -> None:
    pruner = MondrianPruner(patience=3, n_startup_trials=_N_HONEST)
    study = optimize(random_study(pruner), _late_gain, _N_HONEST)
    running = study.ask()
    for step, state in enumerate([TrialState.FAIL] * 5 + [TrialState.PRUNED] * 3):
        running.report(1.8, step)
        assert running.should_prune() or step == 0
        study.tell(study.ask(), state=state)
    running.report(1.8, 8)
    assert not running.should_prune()


def test_curves_of_trials_that_have_ended_are_forgotten() -> None:
    study = optimize(random_study(), _train, 30)
    assert TrialState.PRUNED in states(study)
    running = study.ask()
    running.report(1.0, 0)
    running.should_prune()
    (reader,) = [one for ones in study.pruner._memory.values() for one in ones.values()]
    reader.read(study)
    assert set(reader.group_of(study.trials[0]).curves._running) == {running.number}


def test_epochs_and_folds_in_one_study() -> None:
    """Folds with epochs inside: the curve starts anew with each fold."""

    def objective(trial: optuna.Trial) -> float:
        rate = trial.suggest_float("rate", 0.05, 1.0)
        ends = []
        for fold in range(3):
            for epoch in range(5):
                value = _loss(rate, epoch) + 0.02 * fold
                trial.report(value, 5 * fold + epoch)
                if trial.should_prune():
                    raise optuna.TrialPruned
            ends.append(value)
        return float(np.mean(ends))

    study = optimize(random_study(), objective, 40)
    plain = optimize(random_study(optuna.pruners.NopPruner()), objective, 40)
    assert states(study)[TrialState.PRUNED] > 15
    assert study.best_trial.number == plain.best_trial.number


def test_a_patient_pruner_may_wrap_it() -> None:
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        pruner = optuna.pruners.PatientPruner(MondrianPruner(), patience=3)
    study = optimize(random_study(pruner), _train, 30)
    # Losses that fall at each step are not pruned by a patient one.
    assert states(study).get(TrialState.PRUNED, 0) == 0


def test_a_study_in_the_place_of_a_deleted_one_is_read_anew() -> None:
    storage = optuna.storages.InMemoryStorage()
    pruner = MondrianPruner()
    study = optimize(random_study(pruner, storage=storage, study_name="one"), _train, 12)
    optuna.delete_study(study_name="one", storage=storage)
    study = random_study(pruner, storage=storage, study_name="two")
    optimize(study, _train, 6)
    assert {trial.state for trial in study.trials[:3]} == {TrialState.COMPLETE}


def test_trials_without_reports_are_not_pruned() -> None:
    study = optimize(random_study(), lambda trial: trial.suggest_float("x", 0, 1), 10)
    trial = study.ask()
    assert not trial.should_prune()
    trial.report(100.0, 3)
    assert not trial.should_prune()


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_work_is_proportional_to_new_reports(monkeypatch, is_shuffled) -> None:
    """Each report of a running trial is transformed once."""
    study = optimize(random_study(), _train, 12)
    steps = np.random.default_rng(0).permutation(200) if is_shuffled else np.arange(200)
    trial = study.ask()
    n_transformed = []
    original = learning_curves._CurveTransform.__call__
    monkeypatch.setattr(
        learning_curves._CurveTransform,
        "__call__",
        lambda self, values: n_transformed.append(len(values)) or original(self, values),
    )
    for step in steps.tolist():
        trial.report(0.001, step)
        trial.should_prune()
    # And once for each call the best outcome.
    assert sum(n_transformed) <= 2 * 200


def test_several_objectives_raise_as_with_other_pruners() -> None:
    study = optuna.create_study(directions=["minimize", "minimize"], pruner=MondrianPruner())
    trial = study.ask()
    with pytest.raises(NotImplementedError):
        trial.should_prune()
    frozen = study.get_trials(deepcopy=False)[0]
    for pruner in (MondrianPruner(), optuna.pruners.MedianPruner(n_startup_trials=0)):
        study.add_trial(optuna.create_trial(values=[0.0, 0.0]))
        frozen.intermediate_values = {0: 1.0}
        with pytest.raises(RuntimeError, match="multi-objective"):
            pruner.prune(study, frozen)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"threshold": -0.1}, ValueError, "`threshold` must be between 0 and 1, got -0.1"),
        ({"threshold": math.nan}, ValueError, "`threshold` must be between"),
        ({"threshold": "low"}, TypeError, "`threshold` must be a number, got 'low'"),
        ({"alpha": 1.0}, ValueError, "`alpha` must be below 1"),
        ({"n_best": 0}, ValueError, "`n_best` must be at least 1, got 0"),
        ({"n_best": 1.5}, TypeError, "`n_best` must be an integer, got 1.5"),
        ({"n_startup_trials": 2}, ValueError, "`n_startup_trials` must be at least 3"),
        ({"n_warmup_steps": -1}, ValueError, "`n_warmup_steps` must be at least 0"),
        ({"n_warmup_steps": True}, TypeError, "`n_warmup_steps` must be an integer"),
    ],
)
def test_wrong_arguments(arguments, error, words) -> None:
    with pytest.raises(error, match=words):
        MondrianPruner(**arguments)


def test_a_pruner_is_constructed_without_its_model() -> None:
    code = (
        "from mondrian_bo import MondrianPruner; MondrianPruner()\n"
        "import sys; print([n for n in ('scipy', 'numba', 'sklearn') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("seed", range(3))
def test_infeasible_trials_are_not_what_others_are_compared_with(seed) -> None:
    """The best values violate the constraint: no feasible trial is as good as they are."""

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("at least", 0.6 - x)
        for step in range(10):
            trial.report(x + 0.5**step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x

    sampler = optuna.samplers.RandomSampler(seed=seed)
    study = optimize(make_study(sampler, pruner=MondrianPruner()), objective, 60)
    plain = optimize(
        make_study(optuna.samplers.RandomSampler(seed=seed), pruner=optuna.pruners.NopPruner()),
        objective,
        60,
    )
    assert study.best_trial.number == plain.best_trial.number
    assert states(study)[TrialState.PRUNED] > 5
