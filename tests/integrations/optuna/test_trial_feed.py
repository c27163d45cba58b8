"""The feed of a study's trials: each finished one once and in order, whatever happens meanwhile."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import optuna
import pytest
from interrupts import Interrupted, count_events, interrupt_at
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial
from studies import make_study

from mondrian_bo.integrations.optuna.study.trial_feed import TrialFeed, local_time

# An exception in a finaliser is ignored, which pytest reports.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class PartOfStudy(optuna.Study):
    """A study that shows some of its trials, as a bracket of Hyperband does."""

    def get_trials(self, deepcopy=True, states=None):
        return [one for one in super().get_trials(deepcopy, states) if one.number % 3 != 1]


def random_study(**settings):
    return make_study(optuna.samplers.RandomSampler(seed=0), **settings)


def make_kind(kind, tmp_path):
    if kind == "journal":
        return random_study(storage=JournalStorage(JournalFileBackend(str(tmp_path / "journal"))))
    study = random_study()
    return PartOfStudy(study.study_name, study._storage) if kind == "part" else study


def finished_in_order(study):
    """Return the numbers of all finished trials, by their moments."""
    trials = [one for one in study.get_trials() if one.state.is_finished()]
    return [one.number for one in sorted(trials, key=lambda one: one.datetime_complete)]


def running(study):
    return [one.number for one in study.get_trials() if one.state == TrialState.RUNNING]


def absorb(feed, study, known):
    """Absorb what is new into a list of numbers as the readers do; return the numbers that run."""
    new = feed.read(study)
    if new.is_new:
        known.clear()
    for trial in new.finished:
        known.append(trial.number)
    feed.acknowledge()
    return [trial.number for trial in new.running]


def add_finished(study, n_trials=1, **arguments):
    for _ in range(n_trials):
        study.add_trial(create_trial(value=0.0, **arguments))


@pytest.mark.parametrize("kind", ["memory", "part", "journal"])
@pytest.mark.parametrize("n_open", [3, 25])
def test_trials_that_finish_out_of_order(kind, n_open, tmp_path):
    study, rng = make_kind(kind, tmp_path), np.random.default_rng(0)
    feed, known, rarely, known_rarely = TrialFeed(), [], TrialFeed(), []
    waiting = []
    for i in range(50):
        waiting.append(study.ask())
        if len(waiting) > n_open:
            trial = waiting.pop(int(rng.integers(len(waiting))))
            states = [TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL]
            state = states[int(rng.integers(3))]
            study.tell(trial, 1.0 if state == TrialState.COMPLETE else None, state)
        assert absorb(feed, study, known) == running(study)
        if i % 10 == 9:
            assert absorb(rarely, study, known_rarely) == running(study)
    assert known != sorted(known)
    assert known == known_rarely == finished_in_order(study)


def test_only_the_first_read_is_new():
    study, feed = random_study(), TrialFeed()
    for n_trials in (0, 0, 3, 0, 2):
        is_first = not feed._is_acknowledged
        add_finished(study, n_trials)
        new = feed.read(study)
        assert new.is_new == is_first
        assert len(new.finished) == n_trials
        feed.acknowledge()


def test_trials_that_wait_are_neither_running_nor_finished():
    study, feed, known = random_study(), TrialFeed(), []
    study.enqueue_trial({"x": 0.5})
    assert absorb(feed, study, known) == known == []
    trial = study.ask()
    assert absorb(feed, study, known) == [0]
    study.tell(trial, 1.0)
    assert absorb(feed, study, known) == []
    assert known == [0]


def test_the_work_is_that_of_new_and_open_trials(monkeypatch):
    study, feed = random_study(), TrialFeed()
    add_finished(study, 200)
    absorb(feed, study, [])
    reads = []
    storage = study._storage
    get_trial = storage.get_trial
    monkeypatch.setattr(storage, "get_trial", lambda i: reads.append(i) or get_trial(i))
    monkeypatch.setattr(study, "get_trials", None)
    waiting = [study.ask() for _ in range(5)]
    for trial in waiting:
        add_finished(study)
        reads.clear()
        assert len(feed.read(study).finished) == 1
        feed.acknowledge()
        # The new one, the open ones, and the latest one that was read.
        assert len(reads) <= 1 + 5 + 1
        assert trial.number in {get_trial(i).number for i in reads}


# Order --------------------------------------------------------------------------------------------


def test_moments_with_a_zone_are_compared_in_local_time():
    moment = datetime(2026, 5, 1, 12)
    east = timezone(timedelta(hours=9))
    moments = [
        moment + timedelta(seconds=2),
        (moment + timedelta(seconds=1)).astimezone(east),
        moment.astimezone(UTC),
        moment + timedelta(seconds=1),
    ]
    assert [local_time(one) - moment for one in moments] == [
        timedelta(seconds=seconds) for seconds in (2, 1, 0, 1)
    ]
    study, known = random_study(), []
    for one in moments:
        trial = create_trial(value=0.0)
        trial.datetime_complete = one
        study.add_trial(trial)
    absorb(TrialFeed(), study, known)
    # Of equal moments the first trial comes first.
    assert known == [2, 1, 3, 0]


def test_no_moment_is_the_first_one():
    assert local_time(None) < local_time(datetime(1, 1, 2))


# Interruptions ------------------------------------------------------------------------------------


def test_what_was_not_acknowledged_is_read_again():
    study, feed = random_study(), TrialFeed()
    add_finished(study, 4)
    for _ in range(2):
        new = feed.read(study)
        assert new.is_new
        assert [trial.number for trial in new.finished] == [0, 1, 2, 3]
    feed.acknowledge()
    add_finished(study, 2)
    assert [trial.number for trial in feed.read(study).finished] == [4, 5]
    # Whatever of these two has been absorbed: the next read starts from the first trial.
    new = feed.read(study)
    assert new.is_new
    assert [trial.number for trial in new.finished] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", ["memory", "part"])
def test_a_read_interrupted_at_any_moment_loses_and_repeats_no_trial(kind, tmp_path):
    def prepared():
        """Return a feed that has read a study, which has other trials since."""
        study, feed, known = make_kind(kind, tmp_path), TrialFeed(), []
        trials = [study.ask() for _ in range(3)]
        add_finished(study, 4)
        absorb(feed, study, known)
        study.tell(trials[1], 1.0)
        add_finished(study, 2)
        study.tell(trials[0], state=TrialState.FAIL)
        return study, feed, known

    study, feed, known = prepared()
    _, n_events = count_events(lambda: absorb(feed, study, known))
    assert known == finished_in_order(study)
    n_interrupted = n_restarted = 0
    rng = np.random.default_rng(0)
    for event in range(1, n_events):
        study, feed, known = prepared()
        # The next read may be interrupted, too.
        for moment in (event, int(rng.integers(1, n_events))):
            try:
                interrupt_at(moment, lambda one=(feed, study, known): absorb(*one))
            except Interrupted:
                n_interrupted += 1
        n_restarted += not feed._is_acknowledged
        assert absorb(feed, study, known) == running(study)
        assert known == finished_in_order(study)
    assert n_interrupted > n_restarted > 10


def test_a_storage_that_fails_while_it_is_read_costs_no_restart(monkeypatch):
    study, feed, known = make_kind("part", None), TrialFeed(), []
    add_finished(study, 5)
    absorb(feed, study, known)
    with monkeypatch.context() as patch:
        patch.setattr(study, "get_trials", lambda **_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            feed.read(study)
    assert not feed.read(study).is_new


# Other studies in the place of one ----------------------------------------------------------------


def edit(study, change):
    """Change the trials of a study in memory, as no method of Optuna does."""
    trials = study._storage._studies[study._study_id].trials
    change(trials)


@pytest.mark.parametrize("kind", ["memory", "part"])
@pytest.mark.parametrize("n_removed", [1, 3, 6])
def test_removed_trials(kind, n_removed, tmp_path):
    study, feed, known = make_kind(kind, tmp_path), TrialFeed(), []
    add_finished(study, 6)
    absorb(feed, study, known)
    edit(study, lambda trials: trials.__delitem__(slice(6 - n_removed, None)))
    absorb(feed, study, known)
    assert known == finished_in_order(study)
    assert len(known) < 6


@pytest.mark.parametrize("kind", ["memory", "part"])
def test_the_latest_trial_has_ended_at_another_moment(kind, tmp_path):
    study, feed, known = make_kind(kind, tmp_path), TrialFeed(), []
    add_finished(study, 6)
    absorb(feed, study, known)

    def change(trials):
        trials[5].datetime_complete -= timedelta(days=1)

    edit(study, change)
    new = feed.read(study)
    assert new.is_new
    assert [trial.number for trial in new.finished] == finished_in_order(study)
    assert new.finished[0].number == 5


@pytest.mark.parametrize("n_later", [1, 4, 9])
@pytest.mark.parametrize("kind", ["memory", "part"])
def test_a_study_that_was_deleted_and_made_again(kind, n_later, tmp_path):
    """A study of the same id has fewer, as many or more trials."""
    first, second = make_kind(kind, tmp_path), make_kind(kind, tmp_path)
    feed, known = TrialFeed(), []
    add_finished(first, 4)
    first.ask()
    absorb(feed, first, known)
    add_finished(second, n_later)
    assert feed.read(second).is_new
    assert absorb(feed, second, known) == running(second)
    assert known == finished_in_order(second)


def test_a_deleted_study_in_a_relational_storage(tmp_path):
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/study.db")
    feed, known, ids = TrialFeed(), [], set()
    for n_trials in (2, 3):
        study = random_study(storage=storage, study_name="one")
        add_finished(study, n_trials)
        absorb(feed, study, known)
        assert known == finished_in_order(study) == list(range(n_trials))
        ids.add(study._study_id)
        optuna.delete_study(study_name="one", storage=storage)
    assert len(ids) == 1


def test_a_trial_that_ended_long_ago_is_one_more_trial():
    study, feed, known = random_study(), TrialFeed(), []
    add_finished(study, 3)
    absorb(feed, study, known)
    trial = create_trial(value=0.0)
    trial.datetime_complete = datetime(2020, 1, 1)
    study.add_trial(trial)
    add_finished(study)
    new = feed.read(study)
    assert not new.is_new
    assert [trial.number for trial in new.finished] == [3, 4]


# Workers ------------------------------------------------------------------------------------------


def test_trials_that_end_while_the_study_is_read():
    study, feed, known = random_study(), TrialFeed(), []
    n_workers, n_trials = 3, 60

    def work():
        for i in range(n_trials):
            trial = study.ask()
            study.tell(trial, float(i))

    workers = [threading.Thread(target=work) for _ in range(n_workers)]
    for one in workers:
        one.start()
    while any(one.is_alive() for one in workers):
        absorb(feed, study, known)
    for one in workers:
        one.join()
    assert absorb(feed, study, known) == []
    assert sorted(known) == list(range(n_workers * n_trials))
