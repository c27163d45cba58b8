"""Storages that fail for a while, and studies that are edited, deleted and made again."""

from __future__ import annotations

import sqlite3

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.exceptions import StorageInternalError
from optuna.samplers import RandomSampler, TPESampler
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.trial import TrialState, create_trial
from studies import states
from worker_processes import bowl, check, join, new_sampler, open_storage

SPACE = {"x": FloatDistribution(-1.0, 1.0), "y": FloatDistribution(-1.0, 1.0)}


def value_of(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2


def break_now_and_then(storage, rng, share):
    """Let calls of a storage raise, before they have had an effect or after it."""

    def break_call(call):
        def broken(*arguments, **settings):
            moment = rng.random()
            if moment < share:
                raise StorageInternalError("before")
            result = call(*arguments, **settings)
            if moment > 1.0 - share:
                raise StorageInternalError("after")
            return result

        return broken

    for name in vars(BaseStorage):
        if not name.startswith("_") and callable(getattr(storage, name)):
            setattr(storage, name, break_call(getattr(storage, name)))


def mend(storage):
    for name in list(vars(storage)):
        if name in vars(BaseStorage):
            delattr(storage, name)


def until_it_works(call, *arguments, **settings):
    while True:
        try:
            return call(*arguments, **settings)
        except StorageInternalError:
            pass


def test_a_storage_that_fails_at_random():
    storage = InMemoryStorage()
    study = optuna.create_study(storage=storage, sampler=new_sampler())
    break_now_and_then(storage, np.random.default_rng(0), 0.02)
    values = {}
    for _ in range(25):
        trial = until_it_works(study.ask, SPACE)
        values[trial.number] = value_of(trial.params)
        until_it_works(study.tell, trial, values[trial.number], skip_if_finished=True)
    mend(storage)
    found = {one.number: one.value for one in study.trials if one.state == TrialState.COMPLETE}
    assert found == values
    # Those that failed in `ask` stay running until the user ends them.
    left = [one.number for one in study.trials if one.state == TrialState.RUNNING]
    assert len(left) > 3
    for number in left:
        study.tell(number, state=TrialState.FAIL)
    check(study, 25)
    study.optimize(bowl, n_trials=3)
    check(study, 28)


def test_a_locked_database(tmp_path):
    path = tmp_path / "study.db"
    settings = {"engine_kwargs": {"connect_args": {"timeout": 0.05}}}
    study = join(path, **settings)
    study.optimize(bowl, n_trials=5)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    for _ in range(2):
        with pytest.raises(StorageInternalError):
            study.optimize(bowl, n_trials=2)
    other.execute("ROLLBACK")
    other.close()
    study.optimize(bowl, n_trials=3)
    assert states(study) == {TrialState.COMPLETE: 8}
    check(study, 8)


@pytest.mark.parametrize("lock", ["BEGIN EXCLUSIVE", "BEGIN IMMEDIATE"])
def test_a_database_that_is_locked_while_the_objective_runs(tmp_path, lock):
    """The value of the trial is lost in `optimize`. The second lock allows to read."""
    path = tmp_path / "study.db"
    study = join(path, engine_kwargs={"connect_args": {"timeout": 0.05}})
    study.optimize(bowl, n_trials=5)
    other = sqlite3.connect(path, isolation_level=None)

    def locked(trial):
        value = bowl(trial)
        other.execute(lock)
        return value

    # Optuna 5 raises the last two.
    with pytest.raises((StorageInternalError, UnboundLocalError, AssertionError)):
        study.optimize(locked, n_trials=1)
    other.execute("ROLLBACK")
    assert states(study) == {TrialState.RUNNING: 1, TrialState.COMPLETE: 5}
    # A loop of ask and tell keeps the value.
    trial = study.ask()
    value = locked(trial)
    with pytest.raises(StorageInternalError):
        study.tell(trial, value)
    other.execute("ROLLBACK")
    other.close()
    study.tell(trial, value, skip_if_finished=True)
    assert study.trials[-1].value == value
    study.optimize(bowl, n_trials=3)
    assert states(study) == {TrialState.RUNNING: 1, TrialState.COMPLETE: 9}
    check(study, 9)


def test_edited_by_hand_and_by_other_samplers(tmp_path):
    path = tmp_path / "study.db"
    study, other = join(path), join(path)
    study.optimize(bowl, n_trials=4)
    # A trial of another range, one that somebody else has made, and one that the user asks for.
    wide = {"x": FloatDistribution(-9.0, 9.0), "z": FloatDistribution(0.0, 1.0)}
    other.add_trial(create_trial(params={"x": 5.0, "z": 0.5}, distributions=wide, value=30.0))
    other.add_trial(create_trial(params={"x": 0.1, "y": 0.1}, distributions=SPACE, value=0.1))
    other.enqueue_trial({"x": 0.25})
    other.sampler = RandomSampler(seed=1)
    other.optimize(bowl, n_trials=2)
    study.sampler = TPESampler(seed=1)
    study.optimize(bowl, n_trials=2)
    study.sampler = new_sampler()
    asked = study.ask(SPACE)
    # Somebody tells the trial before its worker does.
    other.tell(asked.number, 0.7)
    with pytest.raises(ValueError, match="COMPLETE"):
        study.tell(asked, 0.9)
    study.optimize(bowl, n_trials=3)
    assert study.trials[asked.number].value == 0.7
    assert states(study) == {TrialState.COMPLETE: 14}
    check(study, 14)


def test_values_and_trials_changed_in_the_database(tmp_path):
    """Optuna keeps finished trials: a worker that starts afterwards knows the changes."""
    path = tmp_path / "study.db"
    join(path).optimize(bowl, n_trials=8)
    database = sqlite3.connect(path)
    (last,) = database.execute("SELECT max(trial_id) FROM trials").fetchone()
    database.execute("UPDATE trial_values SET value = -50 WHERE trial_id = ?", (last - 4,))
    for table in ("trials", "trial_values", "trial_params", "trial_system_attributes"):
        database.execute(f"DELETE FROM {table} WHERE trial_id > ?", (last - 2,))
    database.commit()
    database.close()
    study = join(path)
    assert study.best_value == -50
    study.optimize(bowl, n_trials=4)
    assert states(study) == {TrialState.COMPLETE: 10}
    check(study, 10)


@pytest.mark.parametrize("name", ["study.db", "journal.log"])
def test_deleted_while_the_objective_runs(tmp_path, name):
    path = tmp_path / name
    study = join(path)
    study.optimize(bowl, n_trials=6)

    def deleting(trial):
        value = bowl(trial)
        optuna.delete_study(study_name="s", storage=open_storage(path))
        return value

    # Optuna 5 raises the second on SQLite.
    with pytest.raises((KeyError, UnboundLocalError)):
        study.optimize(deleting, n_trials=2)
    again = join(path)
    again.optimize(bowl, n_trials=5)
    check(again, 5)


@pytest.mark.parametrize("name", ["study.db", "journal.log"])
def test_deleted_and_made_again_by_another_process(tmp_path, name):
    path = tmp_path / name
    study = join(path)
    study.optimize(bowl, n_trials=6)
    # An object of its own, as in another process.
    elsewhere = open_storage(path)
    optuna.delete_study(study_name="s", storage=elsewhere)
    with pytest.raises(KeyError, match="Record does not exist"):
        study.optimize(bowl, n_trials=1)
    again = join(path)
    again.optimize(bowl, n_trials=5)
    check(again, 5)
    # The sampler that knew the deleted study goes on with the new one.
    joined = optuna.load_study(study_name="s", storage=open_storage(path), sampler=study.sampler)
    joined.optimize(bowl, n_trials=2)
    check(joined, 7)
