"""A suggestion of the sampler that was interrupted, or failed, is made again."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import optuna
import pytest
from interrupts import Interrupted, count_events, interrupt_at
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState
from studies import bowl, make_study, states

from mondrian_bo import MondrianSampler

# An exception in a finaliser is ignored, which pytest reports.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SPACE = {
    "x": FloatDistribution(-1.0, 2.0),
    "rate": FloatDistribution(1e-3, 1.0, log=True),
    "kind": CategoricalDistribution(("a", "b", None)),
}


def value_of(params):
    return (params["x"] - 0.5) ** 2 + params["rate"] + (params["kind"] == "a")


def suggest(study, trial):
    """Take the two steps in which Optuna asks a sampler for a trial."""
    frozen = study._storage.get_trial(trial._trial_id)
    space = study.sampler.infer_relative_search_space(study, frozen)
    return study.sampler.sample_relative(study, frozen, space)


def finished(params):
    return optuna.trial.create_trial(
        state=TrialState.COMPLETE, params=params, distributions=SPACE, value=value_of(params)
    )


def search(n_trials, interrupt):
    """Return the proposals of a study; `interrupt` calls a function before it is called again."""
    study = make_study(MondrianSampler(seed=1, n_startup_trials=3, n_candidates=30))
    first = {"x": 0.3, "rate": 0.05, "kind": "b"}
    proposals = []
    for _ in range(n_trials):
        trial = study.ask()
        for _ in range(3):
            interrupt(lambda trial=trial: suggest(study, trial))
        params = suggest(study, trial)
        proposals.append(params)
        study.tell(trial, state=TrialState.FAIL)
        study.add_trial(finished(params or first))
    return proposals


def test_interrupted_suggestions_are_made_again():
    expected, n_events = count_events(lambda: search(12, lambda function: None))
    rng = np.random.default_rng(0)
    n_interrupted = 0

    def interrupt(function):
        nonlocal n_interrupted
        try:
            interrupt_at(int(np.exp(rng.uniform(0.0, np.log(n_events / 12)))), function)
        except Interrupted:
            n_interrupted += 1

    found = search(12, interrupt)
    assert n_interrupted > 10
    # Interrupted while it reads, the sampler reads anew; its model then learns trials at once.
    assert [sorted(params) for params in found] == [sorted(params) for params in expected]
    assert found[:4] == expected[:4]


@pytest.mark.parametrize("surrogate", ["gaussian_process", "forest"])
def test_no_trial_is_told_twice_or_lost(surrogate):
    sampler = MondrianSampler(seed=1, n_startup_trials=3, n_candidates=30, surrogate=surrogate)
    study = make_study(sampler)
    rng = np.random.default_rng(0)
    for i in range(15):
        params = {"x": rng.random(), "rate": 0.1 * rng.random() + 0.01, "kind": "ab"[i % 2]}
        study.add_trial(finished(params))
        trial = study.ask()
        for _ in range(6):
            event = int(np.exp(rng.uniform(0.0, 8.0)))
            with contextlib.suppress(Interrupted):
                interrupt_at(event, lambda trial=trial: suggest(study, trial))
        suggest(study, trial)
        study.tell(trial, state=TrialState.FAIL)
    (memories,) = sampler._memory.values()
    (memory,) = memories.values()
    assert memory._optimizer.n_trials == 15
    # The last failed trial has not been read yet.
    assert len(memory.reader.finished) == 29
    rows = memory._optimizer._search.trials.rows
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_threads_share_a_sampler():
    study = make_study(MondrianSampler(seed=1, n_startup_trials=3, n_candidates=30))
    study.optimize(
        lambda trial: value_of(
            {
                "x": trial.suggest_float("x", -1.0, 2.0),
                "rate": trial.suggest_float("rate", 1e-3, 1.0, log=True),
                "kind": trial.suggest_categorical("kind", ["a", "b", None]),
            }
        ),
        n_trials=24,
        n_jobs=8,
    )
    assert threading.active_count() < 20
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 24


def interrupt_once(monkeypatch, owner, name, late=False):
    """Let the next call of a method end as with Ctrl-C, before it has had an effect or after it."""
    call = getattr(owner, name)

    def interrupted(*arguments):
        monkeypatch.undo()
        if late:
            call(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)


def test_the_state_of_a_trial_whose_suggestion_was_interrupted(monkeypatch):
    study = make_study(MondrianSampler(seed=0, n_startup_trials=3, n_candidates=30))
    study.optimize(bowl, n_trials=5)
    # Optuna samples at the first parameter, which is within the objective.
    interrupt_once(monkeypatch, study.sampler, "sample_relative")
    with pytest.raises(KeyboardInterrupt):
        study.optimize(bowl, n_trials=2)
    assert study.trials[5].state == TrialState.FAIL
    interrupt_once(monkeypatch, study.sampler, "sample_relative")
    with pytest.raises(KeyboardInterrupt):
        study.ask(SPACE)
    assert study.trials[6].state == TrialState.RUNNING
    study.optimize(bowl, n_trials=2)
    assert states(study) == {TrialState.RUNNING: 1, TrialState.COMPLETE: 7, TrialState.FAIL: 1}


@pytest.mark.parametrize(
    ("late", "state"), [(False, TrialState.RUNNING), (True, TrialState.COMPLETE)]
)
def test_the_state_of_a_trial_whose_end_was_interrupted(monkeypatch, late, state):
    study = make_study(MondrianSampler(seed=0, n_startup_trials=3, n_candidates=30))
    study.optimize(bowl, n_trials=5)
    interrupt_once(monkeypatch, study._storage, "set_trial_state_values", late)
    # Optuna 5 raises the second.
    with pytest.raises((KeyboardInterrupt, UnboundLocalError)):
        study.optimize(bowl, n_trials=2)
    assert study.trials[5].state == state
    study.optimize(bowl, n_trials=2)
    assert len(study.get_trials(states=[TrialState.COMPLETE])) == 7 + late
