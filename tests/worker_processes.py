"""Workers of one study as processes, for tests: they start fast, and share a storage alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from multiprocessing import forkserver
from unittest import mock

import optuna
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from mondrian_bo import MondrianSampler

PATIENCE = 120.0
"""Seconds to wait for a process: a worker that hangs is a failure."""


def processes():
    """Return a context of processes that are copied from one with loaded and compiled code."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["worker_warm_up"])
    # A server that cannot import the module says nothing, and does not look in pytest's folders.
    with mock.patch.dict(os.environ, {"PYTHONPATH": os.pathsep.join(sys.path)}):
        forkserver.ensure_running()
    return context


def open_storage(path, **settings):
    """Open a storage of one file, by its ending: SQLite, or a journal (`.log`)."""
    if str(path).endswith(".log"):
        return JournalStorage(JournalFileBackend(str(path)))
    return RDBStorage(f"sqlite:///{path}", **settings)


def new_sampler(seed=0):
    """Return a sampler whose model is in use from the fourth trial on."""
    return MondrianSampler(seed=seed, n_startup_trials=3, n_candidates=30)


def join(path, seed=0, **settings):
    """Open the study, or make it."""
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    return optuna.create_study(
        study_name="s",
        storage=open_storage(path, **settings),
        sampler=new_sampler(seed),
        load_if_exists=True,
    )


def bowl(trial):
    """Return a quadratic of two floats."""
    x, y = (trial.suggest_float(name, -1.0, 1.0) for name in "xy")
    return (x - 0.3) ** 2 + (y + 0.2) ** 2


def finite(trial):
    """Return a value in a space of 24 points."""
    a, b = trial.suggest_int("a", 0, 3), trial.suggest_categorical("b", ["u", "v", "w"])
    return a + "uvw".index(b) + trial.suggest_float("c", 0.0, 1.0, step=1.0)


def die_in_a_trial(path, number, settings):
    """Run trials until this one, in which the process kills itself."""

    def objective(trial):
        value = bowl(trial)
        if trial.number == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    join(path, **settings).optimize(objective, n_trials=number + 1)


def work(path, objective, seed, barrier, n_trials):
    """Open the study, wait for the other workers, and run trials."""
    study = join(path, seed)
    barrier.wait(PATIENCE)
    study.optimize(objective, n_trials=n_trials)


def check(study, n_complete):
    """No trial is lost and none is learnt twice: the model has exactly the complete trials."""
    trial = study.ask()
    # What Optuna does at the first parameter of a trial.
    frozen = study._storage.get_trial(trial._trial_id)
    space = study.sampler.infer_relative_search_space(study, frozen)
    study.sampler.sample_relative(study, frozen, space)
    trials = study.get_trials(deepcopy=False)
    complete = [one for one in trials if one.state == TrialState.COMPLETE]
    assert [one.number for one in trials] == list(range(len(trials)))
    assert len(complete) == n_complete
    (memory,) = (
        memory
        for key, memory in study.sampler._memory[study._storage].items()
        if key[0] == study._study_id
    )
    n_failed = sum(one.state == TrialState.FAIL for one in trials)
    assert memory.n_told == n_complete + n_failed
    assert memory._optimizer.n_trials == n_complete
    study.tell(trial, state=TrialState.FAIL)
    assert len({tuple(one.params.items()) for one in complete}) == n_complete
