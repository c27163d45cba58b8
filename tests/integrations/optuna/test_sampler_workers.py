"""Workers that ask at the same moment do not propose the same trial."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import TrialPruned
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from studies import make_study, optimize, parameters

from mondrian_bo import MondrianSampler
from mondrian_bo.integrations.optuna.sampler import _has
from mondrian_bo.integrations.optuna.study import proposals

FINITE = {
    "n": IntDistribution(1, 4),
    "kind": CategoricalDistribution(("a", "b", "c")),
}
MIXED = {
    "x": FloatDistribution(-1.0, 1.0),
    "n": IntDistribution(1, 4),
}


def new_storage(kind, path):
    if kind == "sqlite":
        return RDBStorage(f"sqlite:///{path}/study.db")
    return JournalStorage(JournalFileBackend(str(path / "journal.log")))


def value_of(params):
    return params["n"] + params.get("x", 0.0) + (params.get("kind") == "a")


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
@pytest.mark.parametrize("space", [FINITE, MIXED])
def test_all_ask_at_once(tmp_path, kind, space):
    n_workers, n_rounds = 4, 2
    optuna.create_study(study_name="s", storage=new_storage(kind, tmp_path))
    barrier = threading.Barrier(n_workers)

    def work(_):
        # As a process of its own: nothing is shared with the others.
        sampler = MondrianSampler(seed=1, n_startup_trials=2, n_candidates=50)
        study = optuna.load_study(
            study_name="s", storage=new_storage(kind, tmp_path), sampler=sampler
        )
        for _ in range(n_rounds):
            barrier.wait(60)
            trial = study.ask(space)
            barrier.wait(60)
            study.tell(trial, value_of(trial.params))

    first = optuna.load_study(
        study_name="s", storage=new_storage(kind, tmp_path), sampler=MondrianSampler(seed=1)
    )
    trial = first.ask(space)
    first.tell(trial, value_of(trial.params))
    with ThreadPoolExecutor(n_workers) as pool:
        list(pool.map(work, range(n_workers)))
    found = [tuple(trial.params.values()) for trial in first.get_trials()]
    assert len(found) == 1 + n_workers * n_rounds
    assert len(set(found)) == len(found)


def test_a_proposal_that_another_worker_published_meanwhile(monkeypatch):
    """The other worker's is stored after this one has read, and before it publishes."""
    study = optuna.create_study(sampler=MondrianSampler(seed=1, n_startup_trials=2))
    for _ in range(4):
        trial = study.ask(MIXED)
        study.tell(trial, value_of(trial.params))
    study.ask()
    other = study.trials[-1]
    publish = proposals.publish
    published = []

    def publish_after_the_other(study, trial, internal, n_before=0):
        if not published:
            publish(study, other, internal)
        published.append(internal)
        return publish(study, trial, internal, n_before)

    monkeypatch.setattr("mondrian_bo.integrations.optuna.sampler.publish", publish_after_the_other)
    trial = study.ask(MIXED)
    assert len(published) == 2
    assert trial.params == published[1] != published[0]


def test_a_shorter_proposal_replaces_a_longer_one():
    study = optuna.create_study()
    study.ask()
    (trial,) = study.trials
    long = {f"parameter {i}": 0.5 for i in range(300)}
    n_written = proposals.publish(study, trial, long)
    assert n_written > 4000
    assert proposals.publish(study, trial, {"x": 0.25}, n_written) == n_written
    (frozen,) = study.get_trials(deepcopy=False)
    assert proposals.raw_running_values(frozen) == {"x": 0.25}


def test_a_trial_that_waits_for_another_one_reads_the_study_again(monkeypatch):
    sampler = MondrianSampler(seed=0, n_startup_trials=3)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=5)
    (memory,) = next(iter(sampler._memory.values())).values()
    reads = []
    read = memory.reader.read
    monkeypatch.setattr(memory.reader, "read", lambda study: reads.append(1) or read(study))
    study.ask().suggest_float("x", 0.0, 1.0)
    assert len(reads) == 2  # for the search space, and after the proposal is published
    # The search spaces of two trials are inferred before either of them is suggested.
    first, second = (
        study._storage.get_trial(study._storage.create_new_trial(study._study_id)) for _ in range(2)
    )
    space = sampler.infer_relative_search_space(study, first)
    sampler.infer_relative_search_space(study, second)
    reads.clear()
    one = sampler.sample_relative(study, second, space)
    assert len(reads) == 1
    other = sampler.sample_relative(study, first, space)
    assert len(reads) == 3
    assert one != other


@pytest.mark.parametrize("seed", range(3))
def test_workers_that_start_together_have_valid_values(seed):
    """All valid values are taken, and the others are not valid."""
    sampler = MondrianSampler(seed=seed, is_valid=lambda params: params["n"] <= 2)
    study = optuna.create_study(sampler=sampler)
    found = [study.ask({"n": IntDistribution(1, 4)}).params["n"] for _ in range(6)]
    assert set(found) == {1, 2}


@pytest.mark.parametrize("seed", range(3))
def test_first_values_of_different_parameters_are_drawn_independently(seed):
    study = optuna.create_study(sampler=MondrianSampler(seed=seed))
    space = {name: FloatDistribution(0.0, 1.0) for name in "xyz"}
    trials = [study.ask(space) for _ in range(4)]
    # The first trial is the middle.
    values = [value for trial in trials[1:] for value in trial.params.values()]
    assert len(set(values)) == 9


def test_proposals_that_lack_the_same_parameters_are_the_same():
    rows = np.array([[0.5, np.nan], [0.5, 0.25]])
    assert _has(rows, np.array([[0.5, np.nan]]))
    assert _has(rows, rows[1:])
    assert not _has(rows, np.array([[np.nan, np.nan]]))
    assert not _has(rows[:1], rows[1:])


@pytest.mark.parametrize("is_running", [False, True])
@pytest.mark.parametrize(("x", "left"), [(0.25, {210, 220, 230}), (0.5, {200, 210, 220, 230})])
def test_a_number_that_another_trial_has_is_not_the_nearest(is_running, x, left):
    """Unless the trials differ in a continuous parameter to come."""
    study = make_study()
    space = {"n": IntDistribution(0, 100), "x": FloatDistribution(0.0, 1.0)}
    study.enqueue_trial({"n": 200, "x": x})
    other = study.ask({**space, "n": IntDistribution(200, 230, step=10)})
    if not is_running:
        study.tell(other, 1.0)
    for i in range(4):
        study.tell(study.ask(space), float(i))
    found = []
    for _ in left:
        trial = study.ask()
        # It has a proposal, which another one replaces.
        assert trial.relative_params
        proposals.publish(study, study.get_trials(deepcopy=False)[-1], {"n": 100.0, "x": 0.25})
        found.append(trial.suggest_int("n", 200, 230, step=10))
    assert sorted(found) == sorted(left)


@pytest.mark.parametrize("seed", range(3))
def test_values_of_trials_that_were_pruned_without_a_report_are_left_out(seed):
    sampler = MondrianSampler(seed=seed)
    study, tried = optuna.create_study(sampler=sampler), []
    for _ in range(6):
        trial = study.ask()
        tried.append(trial.suggest_int("n", 1, 6))
        study.tell(trial, state=TrialState.PRUNED)
    assert len(set(tried)) == 6


@pytest.mark.parametrize("seed", range(4))
def test_a_branch_of_trials_that_were_pruned_without_a_report_is_tried_as_a_whole(seed):
    """The values that are proposed for the other branch do not tell its trials apart."""

    def objective(trial):
        if trial.suggest_categorical("kind", ["p", "q"]) == "p":
            return trial.suggest_int("a", 0, 3)
        trial.suggest_int("b", 0, 5)
        raise TrialPruned

    study = optimize(make_study(MondrianSampler(seed=seed)), objective, 30)
    assert len({tuple(params.values()) for params in parameters(study)}) == 10
