"""MondrianPruner where trials report their steps out of order, as folds that are shuffled."""

from __future__ import annotations

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from studies import optimize, random_study, states

from mondrian_bo import MondrianPruner, MondrianSampler
from mondrian_bo.integrations.optuna.plots.history import curves_data
from mondrian_bo.integrations.optuna.study.study_curves import StudyCurves


def _cross_validation(shuffled):
    """An objective with folds, which have no trend; its value is their mean."""
    difficulty = np.random.default_rng(0).normal(size=12)

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -3.0, 3.0)
        rng = np.random.default_rng(trial.number)
        folds = rng.permutation(12) if shuffled else np.arange(12)
        scores = []
        for fold in folds.tolist():
            scores.append(x * x + 0.3 * difficulty[fold] + 0.1 * rng.normal())
            trial.report(scores[-1], fold)
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(np.mean(scores))

    return objective


@pytest.mark.parametrize("shuffled", [False, True])
def test_folds(shuffled) -> None:
    study = optimize(random_study(), _cross_validation(shuffled), 40)
    pruned = [trial for trial in study.trials if trial.state == TrialState.PRUNED]
    assert len(pruned) > 15
    assert np.mean([len(trial.intermediate_values) for trial in pruned]) < 7
    # The mean of fold difficulties moves all values alike.
    best = study.best_params["x"] ** 2
    assert best < 0.1
    assert sum(trial.params["x"] ** 2 < best for trial in pruned) <= 1


def test_a_storage_that_sorts_reports_does_not_hide_their_order(tmp_path) -> None:
    study = random_study(storage=f"sqlite:///{tmp_path}/folds.db")
    optimize(study, _cross_validation(True), 9)
    # Steps would let a trial that starts with the last fold wait for others beyond it.
    assert states(study)[TrialState.PRUNED] > 0
    (reader,) = [one for ones in study.pruner._memory.values() for one in ones.values()]
    reader.read(study)
    curves = reader.group_of(study.trials[0]).curves
    assert curves._counts_reports
    assert all(curve.positions == list(range(12)) for curve, *_ in curves.model._latest)


def test_a_storage_that_sorts_reports_makes_no_difference_to_folds(tmp_path) -> None:
    """Also for a worker that joins: the order of each trial's reports is stored."""
    studies = []
    for storage in (None, f"sqlite:///{tmp_path}/folds.db"):
        study = random_study(storage=storage)
        optimize(study, _cross_validation(True), 10)
        study.pruner = MondrianPruner()
        studies.append(optimize(study, _cross_validation(True), 10))
    memory, sqlite = studies
    assert states(memory)[TrialState.PRUNED] > 5
    assert [trial.last_step for trial in sqlite.trials] == [
        max(trial.intermediate_values) for trial in memory.trials
    ]
    lengths = [
        [len(trial.intermediate_values) for trial in one.get_trials(deepcopy=False)]
        for one in studies
    ]
    assert lengths[0] == lengths[1]
    # The storage in memory keeps the order, and an attribute holds a bounded number of steps.
    assert not any("mondrian:report_order" in trial.system_attrs for trial in memory.trials)
    trial = sqlite.ask()
    for step in reversed(range(300)):
        trial.report(0.0, step)
    trial.should_prune()
    assert len(sqlite.trials[-1].system_attrs["mondrian:report_order"]) == 150


def test_a_trial_that_is_resumed_keeps_the_order_of_its_reports(tmp_path) -> None:
    """Another process reads sorted reports; the stored order is that in which they were made."""
    storage = f"sqlite:///{tmp_path}/folds.db"
    study = optuna.create_study(storage=storage, pruner=MondrianPruner())
    trial = study.ask()
    for step in (3, 1):
        trial.report(float(step), step)
        trial.should_prune()
    other = optuna.load_study(study_name=study.study_name, storage=storage, pruner=MondrianPruner())
    resumed = optuna.trial.Trial(other, trial._trial_id)
    resumed.should_prune()
    assert study.trials[0].system_attrs["mondrian:report_order"] == [3, 1]
    for step in (2, 0):
        resumed.report(float(step), step)
        resumed.should_prune()
    assert study.trials[0].system_attrs["mondrian:report_order"] == [3, 1, 2, 0]
    # The pruner judges the reports in this order, too.
    (reader,) = [one for ones in other.pruner._memory.values() for one in ones.values()]
    curve = reader.group_of(study.trials[0]).curves.running(study.trials[0])
    assert curve.values == [-3.0, -1.0, -2.0, -0.0]


@pytest.mark.parametrize("attribute", [None, 3, "10", {"1": 0}, [[1], "a", None, 7]], ids=repr)
def test_a_foreign_attribute_is_no_order_of_reports(attribute) -> None:
    study = random_study()
    optimize(study, _cross_validation(True), 4)
    trial = study.ask()
    study._storage.set_trial_system_attr(trial._trial_id, "mondrian:report_order", attribute)
    for step in (1, 0):
        trial.report(0.0, step)
        trial.should_prune()
    study.tell(trial, 1.0)
    curves = StudyCurves({"n_warmup_steps": 0}, False)
    curves.learn(study.trials[-1])
    ((curve, *_),) = curves.model._latest
    assert curves.counts_reports and curve.positions == [0, 1]
    study.ask().should_prune()


def test_a_worker_tells_all_readers_once_that_reports_are_out_of_order(
    tmp_path, monkeypatch
) -> None:
    """Readers of a storage that sorts reports learn the same as those of one that does not."""
    written, storages = [], (None, f"sqlite:///{tmp_path}/folds.db")
    for name in ("InMemoryStorage", "_CachedStorage"):
        module = optuna.storages._cached_storage if name[0] == "_" else optuna.storages
        original = getattr(module, name).set_study_system_attr
        monkeypatch.setattr(
            getattr(module, name),
            "set_study_system_attr",
            lambda self, *one, original=original: written.append(one) or original(self, *one),
        )
    learnt = []
    for storage in storages:
        study = random_study(storage=storage)
        optimize(study, _cross_validation(True), 8)
        # Without gaps: the storage shows no sign of disorder.
        study.enqueue_trial({"x": 1.0})
        trial = study.ask({"x": optuna.distributions.FloatDistribution(-3.0, 3.0)})
        for fold in (1, 0):
            trial.report(1.0, fold)
        trial.should_prune()
        study.tell(trial, state=TrialState.PRUNED)
        finished = MondrianSampler(seed=0).read_model(study).reader.finished
        learnt.append((finished[-1].outcomes[0], finished[-1].error))
        ends = curves_data(study).curves[-1].end
        assert ends is not None
        assert ends[1] == pytest.approx(learnt[-1][0])
    assert learnt[0] == pytest.approx(learnt[1])
    assert len(written) == len(storages)
    # A worker that joins reads it, although its own trials are in order.
    study = optuna.load_study(study_name=study.study_name, storage=storages[1])
    study.pruner = MondrianPruner()
    running = study.ask()
    running.report(1.0, 0)
    running.should_prune()
    (reader,) = [one for ones in study.pruner._memory.values() for one in ones.values()]
    reader.read(study)
    assert reader.group_of(study.trials[0]).curves._counts_reports
    assert len(written) == len(storages)
