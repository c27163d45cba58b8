"""One sampler and its studies: same seeds, resumed and replaced studies, copies, threads."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from studies import bowl, conditional, make_study, mixed, optimize, parameters, states

import mondrian_bo.optimizer.row_optimizer as optimizer_module
from mondrian_bo import MondrianSampler
from mondrian_bo.optimizer.row_optimizer import RowOptimizer

KINDS = ("memory", "sqlite", "journal")


def make_storage(kind, path):
    if kind == "sqlite":
        return RDBStorage(f"sqlite:///{path}/study.db")
    if kind == "journal":
        return JournalStorage(JournalFileBackend(str(path / "journal.log")))
    return InMemoryStorage()


def sampler(seed=0, **settings):
    return MondrianSampler(seed=seed, n_startup_trials=3, **settings)


@pytest.fixture
def built(monkeypatch):
    """Optimizers that samplers have made."""
    made = []

    class Spied(RowOptimizer):
        def __init__(self, *arguments, **keywords):
            super().__init__(*arguments, **keywords)
            made.append(self)

    monkeypatch.setattr(optimizer_module, "RowOptimizer", Spied)
    return made


@pytest.mark.parametrize("objective", [bowl, mixed, conditional])
def test_same_seed_same_trials(objective):
    runs = [parameters(optimize(make_study(sampler(seed)), objective, 20)) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[2] != runs[0]


def test_no_seed_is_entropy():
    first, second = (make_study(MondrianSampler()) for _ in range(2))
    assert parameters(optimize(first, bowl, 3)) != parameters(optimize(second, bowl, 3))


def test_studies_of_one_sampler_without_a_seed_differ():
    for seed in (None, 0):
        one = MondrianSampler(seed=seed, n_startup_trials=2)
        runs = [parameters(optimize(make_study(one), bowl, 4)) for _ in range(2)]
        assert (runs[0] == runs[1]) == (seed is not None)


@pytest.mark.parametrize("kind", KINDS)
def test_same_trials_in_every_storage(tmp_path, kind):
    study = make_study(sampler(), storage=make_storage(kind, tmp_path))
    optimize(study, mixed, 10)
    expected = optimize(make_study(sampler()), mixed, 10)
    assert parameters(study) == parameters(expected)


@pytest.mark.parametrize("objective", [bowl, conditional])
def test_minimising_is_maximising_the_negative(objective):
    down = optimize(make_study(sampler()), objective, 20)
    up = make_study(sampler(), direction="maximize")
    optimize(up, lambda trial: -objective(trial), 20)
    assert parameters(up) == parameters(down)


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_resumed_study(tmp_path, kind, built):
    def resume(path):
        storage = make_storage(kind, path)
        return make_study(sampler(), storage=storage, study_name="s", load_if_exists=True)

    optimize(
        make_study(RandomSampler(seed=0), storage=make_storage(kind, tmp_path), study_name="s"),
        bowl,
        25,
    )
    study = optimize(resume(tmp_path), bowl, 4)
    # All that was there is learnt, the model suggests at once, and well.
    assert len(built) == 1
    assert built[0].n_trials == 25 + 3
    values = [trial.value for trial in study.trials]
    assert np.median(values[25:]) < 0.5 * np.median(values[:25])
    # Resumed in the same state, it goes on in the same way.
    optimize(resume(tmp_path), bowl, 2)
    last = parameters(resume(tmp_path))[-2:]
    again = make_study(sampler())
    again.add_trials(study.trials[:29])
    assert parameters(optimize(again, bowl, 2))[-2:] == last


@pytest.mark.parametrize("objective", [bowl, conditional])
def test_pickling_in_the_middle_of_a_study(objective):
    study = optimize(make_study(sampler()), objective, 8)
    study.sampler = pickle.loads(pickle.dumps(study.sampler))
    optimize(study, objective, 6)
    # The copy reads the study anew, as a fresh sampler with this seed would.
    other = optimize(make_study(sampler()), objective, 8)
    other.sampler = sampler()
    assert parameters(optimize(other, objective, 6)) == parameters(study)


def test_pickle_is_small_and_carries_no_study():
    study = make_study(sampler())
    before = len(pickle.dumps(study.sampler))
    optimize(study, bowl, 10)
    assert len(pickle.dumps(study.sampler)) == before
    # Whole studies are pickled too, by Ray for one.
    restored = pickle.loads(pickle.dumps(study))
    optimize(restored, bowl, 5)
    assert len(restored.trials) == 15
    assert len(study.trials) == 10
    assert copy.deepcopy(study.sampler)._settings == study.sampler._settings


@pytest.mark.parametrize("shared", [False, True], ids=["own storages", "one storage"])
def test_two_studies_with_one_sampler(shared):
    storage = InMemoryStorage() if shared else None
    one = sampler(5)
    interleaved = [make_study(one, storage=storage) for _ in range(2)]
    for _ in range(6):
        optimize(interleaved[0], bowl, 2)
        optimize(interleaved[1], conditional, 2)
    for study, objective in zip(interleaved, (bowl, conditional), strict=True):
        alone = optimize(make_study(sampler(5)), objective, 12)
        assert parameters(study) == parameters(alone)


def test_studies_one_after_the_other():
    """All studies in memory have the same id: what is known of one must not serve the next."""
    one = sampler(5)
    optimize(make_study(one), mixed, 8)
    second = optimize(make_study(one), bowl, 8)
    assert parameters(second) == parameters(optimize(make_study(sampler(5)), bowl, 8))
    # And it is forgotten with its study.
    gc.collect()
    assert len(one._memory) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_deleted_and_new_study_in_one_storage(tmp_path, kind):
    # Not the URL: the storage object that the study uses, whose ids may come again.
    storage = make_study(storage=make_storage(kind, tmp_path), study_name="first")._storage
    optuna.delete_study(study_name="first", storage=storage)
    one = sampler(5)
    runs = []
    for _ in range(2):
        study = make_study(one, storage=storage, study_name="s", direction="minimize")
        runs.append(parameters(optimize(study, mixed, 6)))
        optuna.delete_study(study_name="s", storage=storage)
    assert runs[0] == runs[1]
    study = make_study(one, storage=storage, study_name="s", direction="maximize")
    optimize(study, lambda trial: -bowl(trial), 7)
    assert parameters(study) == parameters(optimize(make_study(sampler(5)), bowl, 7))


def test_threads():
    study = optimize(make_study(sampler()), bowl, 40, n_jobs=2)
    assert states(study) == {TrialState.COMPLETE: 40}
    assert len({tuple(params.values()) for params in parameters(study)}) == 40
    assert study.best_value < 0.1


def test_threads_on_a_conditional_space():
    study = optimize(make_study(sampler()), conditional, 40, n_jobs=3)
    assert states(study) == {TrialState.COMPLETE: 40}
    assert study.best_value < 1.2


def test_reseeding_changes_nothing():
    study, other = make_study(sampler()), make_study(sampler())
    for _ in range(8):
        optimize(study, bowl, 1)
        study.sampler.reseed_rng()
    assert parameters(study) == parameters(optimize(other, bowl, 8))


def test_callbacks_and_stop():
    def stop_at_ten(study, trial):
        if trial.number == 9:
            study.stop()

    seen = []
    study = make_study(sampler())
    callbacks = [lambda study, trial: seen.append(study.best_value), stop_at_ten]
    optimize(study, bowl, 50, callbacks=callbacks)
    assert len(study.trials) == len(seen) == 10
    assert seen == list(np.minimum.accumulate([trial.value for trial in study.trials]))


def test_trials_of_other_samplers(built):
    source = optimize(make_study(RandomSampler(seed=0)), bowl, 30)
    study = make_study(sampler())
    study.add_trials(source.trials)
    optimize(study, bowl, 5)
    assert built[-1].n_trials == 34
    values = [trial.value for trial in study.trials]
    assert np.median(values[30:]) < 0.5 * np.median(values[:30])
    # The seed matters to the model, not only to the trials before it.
    other = make_study(sampler(1))
    other.add_trials(source.trials)
    assert parameters(optimize(other, bowl, 1))[30] != parameters(study)[30]
    # Samplers may take turns.
    study.sampler = RandomSampler(seed=1)
    optimize(study, bowl, 3)
    study.sampler = sampler()
    optimize(study, bowl, 2)
    assert built[-1].n_trials == 39


def test_trials_of_other_samplers_with_unexplained_gaps(built):
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        return x if x > 0.5 else x + trial.suggest_float("y", 0.0, 1.0)

    study = optimize(make_study(RandomSampler(seed=0)), objective, 20)
    study.sampler = sampler()
    optimize(study, objective, 1)
    assert built[0].n_trials == 20


def test_the_optimizer_is_built_anew_only_when_the_space_changes(built):
    study = optimize(make_study(sampler()), bowl, 12)
    assert len(built) == 1
    assert built[0].n_trials == 11

    def wider(trial):
        return bowl(trial) + trial.suggest_float("z", 0.0, 1.0)

    optimize(study, wider, 1)
    assert len(built) == 1
    # It is known once a trial with it has finished.
    optimize(study, wider, 5)
    assert len(built) == 2
    assert built[1].space.names == ("x", "y", "z")


def test_each_trial_is_told_once(monkeypatch):
    n_told = []
    tell_rows = RowOptimizer.tell_rows

    def spy(self, rows, *outcomes, **more):
        n_told.append(len(rows))
        return tell_rows(self, rows, *outcomes, **more)

    monkeypatch.setattr(RowOptimizer, "tell_rows", spy)
    study = optimize(make_study(sampler()), bowl, 15)
    assert sum(n_told) == 14
    # Asking without telling costs no work on old trials.
    for _ in range(3):
        study.ask().suggest_float("x", -1.0, 1.0)
    assert sum(n_told) == 15


def test_better_than_random():
    found, drawn = [], []
    for seed in range(4):
        found.append(optimize(make_study(MondrianSampler(seed=seed)), mixed, 40).best_value)
    for seed in range(20):
        drawn.append(optimize(make_study(RandomSampler(seed=seed)), mixed, 40).best_value)
    assert np.median(found) < 0.9 * np.median(drawn)
