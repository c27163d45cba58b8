"""Failed trials: which of them are learnt, and as what."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

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
    assert [0.9, 0.9] not in search.trials.best_rows(eligible=True).tolist()
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


def test_where_most_trials_fail_a_failure_is_the_worst():
    """The median of few values is too good: all of the space would look alike."""
    search = search_of()
    for value, x in ((1.0, 0.1), (2.0, 0.2), (9.0, 0.3)):
        tell(search, (x, 0.1), value)
    for k in range(8):
        fail(search, (0.9 - 0.01 * k, 0.9))
    # The first two may be accidents. Beyond two failures for each value they are the worst.
    assert search.trials.values.tolist() == [1.0, 2.0, 9.0] + 4 * [2.0] + 2 * [1.0]


def test_the_worst_of_equal_values_is_below_them():
    search = search_of()
    tell(search, (0.1, 0.1), 5.0)
    for k in range(4):
        fail(search, (0.9 - 0.01 * k, 0.9))
    assert search.trials.values.tolist() == [5.0, 0.0, 0.0]


def test_the_worst_without_finite_values_or_room_below_them(recwarn):
    for first in (np.inf, -np.inf, -1.7e308, 1.7e308):
        search = search_of()
        tell(search, (0.1, 0.1), first)
        for k in range(5):
            fail(search, (0.9 - 0.01 * k, 0.9))
        values = search.trials.values
        assert len(values) == 4
        assert np.isfinite(values[1:]).all() == bool(np.isfinite(first))
        assert (values[1:] <= first).all()
    assert not list(recwarn)


@pytest.mark.parametrize(
    "columns",
    [
        ([1.0, 2.0, 9.0], [30.0, 20.0, 10.0]),
        ([np.inf, np.inf, np.inf], [3.0, 2.0, 1.0]),
        ([5.0, 5.0, 5.0], [-np.inf, 2.0, 3.0]),
    ],
)
def test_failures_are_learnt_with_the_values_of_each_objective_alone(columns):
    def learnt(values):
        new = lambda trials, number: SimpleNamespace(trials=trials)  # noqa: E731
        search = RestartingSearch(
            SimpleNamespace(new=new), np.array([True, True]), 3, False, values[0].size
        )
        for value, x in zip(values, (0.1, 0.2, 0.3), strict=True):
            search.tell(np.array([[x, 0.1]]), value[None])
        for k in range(8):
            search.tell(np.array([[0.9 - 0.01 * k, 0.9]]), np.full_like(values[:1], np.nan))
        return search.trials.values

    together = learnt(np.array(columns).T)
    assert len(together) == 9
    for k in (0, 1):
        np.testing.assert_array_equal(together[:, k], learnt(np.array(columns[k])))


def test_a_trial_that_lacks_one_value_has_failed():
    search = RestartingSearch(
        SimpleNamespace(new=lambda trials, number: SimpleNamespace(trials=trials)),
        np.array([True, True]),
        3,
        False,
        2,
    )
    search.tell(np.array([[0.1, 0.1], [0.2, 0.1]]), np.array([[1.0, 2.0], [np.nan, 3.0]]))
    assert search.trials.values.tolist() == [[1.0, 2.0]]
    assert search.n_successes == 1
