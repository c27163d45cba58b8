"""Failed trials: which of them are learnt, and as what."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from mondrian_bo.optimizer.search.restarts import RestartingSearch


def search_of(continuous=(True, True)):
    return RestartingSearch(
        SimpleNamespace(new=lambda trials, number: SimpleNamespace(trials=trials)),
        np.array(continuous),
        3,
        True,
    )


def tell(search, row, value):
    search.tell(np.array(row)[None], np.array([value]))


def fail(search, row):
    tell(search, row, np.nan)


def test_failures_are_learnt_where_the_nearest_failed_too():
    search = search_of()
    for k in range(5):
        tell(search, np.array([0.1 * k, 0.1]), float(k))
    # Two that may be accidents, one far from them, and one among them.
    for row, n_trials in [((0.8, 0.8), 5), ((0.8, 0.9), 5), ((0.1, 0.2), 5), ((0.9, 0.9), 6)]:
        fail(search, np.array(row))
        assert search.trials.is_taken(np.array(row))
        assert len(search.trials) == n_trials
    assert search.failed.learnt == [5]
    assert search.trials.values[5] == 2.0
    assert [0.9, 0.9] not in search.trials.best_rows(feasible=True).tolist()
    # What was learnt is no neighbour that speaks for the next.
    fail(search, np.array([0.9, 0.91]))
    assert search.failed.learnt == [5, 6]


def test_failures_before_any_value():
    search = search_of()
    for k in range(5):
        fail(search, np.array([0.1 * k, 0.1]))
    assert len(search.trials) == 0


def test_choices_are_neighbours_if_they_are_equal():
    search = search_of(continuous=(False, True))
    tell(search, np.array([1.0, 0.5]), 1.0)
    for x in (0.0, 1.0):
        fail(search, np.array([2.0, x]))
    fail(search, np.array([2.0, 0.5]))
    assert search.failed.learnt == [1]
    # The same number under another choice is as far as any other choice.
    fail(search, np.array([5.0, 0.5]))
    assert search.failed.learnt == [1]
