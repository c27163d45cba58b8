"""Failed trials: which of them are learnt, and as what."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
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


# Accidents ----------------------------------------------------------------------------------------


def searched():
    """Return a search with five complete trials."""
    search = search_of()
    for k in range(5):
        tell(search, (0.1 * k, 0.1), float(k))
    return search


def test_attempts_at_one_point_count_once():
    search = searched()
    for _ in range(4):
        fail(search, (0.9, 0.9))
    fail(search, (0.9, 0.8))
    assert search.failed.learnt == []
    np.testing.assert_array_equal(search.failed.rows.rows, [[0.9, 0.9], [0.9, 0.8]])
    # A third point beside two that failed.
    for _ in range(4):
        fail(search, (0.9, 0.7))
    assert search.failed.learnt == [5]


def test_a_failure_at_a_point_with_a_value_is_not_learnt():
    search = searched()
    for y in (0.9, 0.7):
        fail(search, (0.9, y))
    tell(search, (0.9, 0.8), 7.0)
    for _ in range(3):
        fail(search, (0.9, 0.8))
    assert search.trials.values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 7.0]
    assert len(search.failed.rows) == 2


def test_a_point_that_completed_at_last_is_no_failed_neighbour():
    def learnt(completes):
        search = searched()
        for y in (1.0, 0.75):
            fail(search, (0.875, y))
        if completes:
            tell(search, (0.875, 0.75), 7.0)
        fail(search, (0.875, 0.875))
        return search.failed.learnt

    assert learnt(completes=False) == [5]
    assert learnt(completes=True) == []


def test_failures_next_to_complete_trials_are_accidents():
    """Half of the trials fail, whatever their neighbours did: beside two failures as well."""
    search, rng = searched(), np.random.default_rng(0)
    learnt = []
    for _ in range(120):
        tell(search, 0.8 + 0.2 * rng.random(2), 0.0 if rng.random() < 0.5 else np.nan)
        learnt.append(len(search.failed.learnt))
    # A few before the failures are known to be accidents.
    assert learnt[20] == learnt[-1] <= 2
    # A place where all fail is learnt all the same.
    for k in range(60):
        fail(search, (0.3 + 0.001 * k, 0.5))
    assert len(search.failed.learnt) > learnt[-1] + 40


def log_evidence(failed, complete, a, b):
    """Return the logarithm of the probability of outcomes in one order, their rate Beta(a, b)."""
    area = lambda a, b: quad(lambda x: x ** (a - 1.0) * (1.0 - x) ** (b - 1.0), 0.0, 1.0)[0]  # noqa: E731
    return math.log(area(a + failed, b + complete) / area(a, b))


def expected(rows, failed):
    """Return which trials are learnt: all neighbours anew for each trial, and no running sums."""
    seen, outcomes, learnt = [], [], []
    for i, row in enumerate(rows):
        former = {tuple(other): False for other in rows[:i]}
        for other, fails in zip(rows[:i], failed[:i], strict=True):
            former[tuple(other)] |= not fails
        if tuple(row) in former:
            continue
        gaps = sorted((np.abs(np.subtract(row, one)).sum(), done) for one, done in former.items())
        n_near = [done for _, done in gaps].index(True) if any(former.values()) else len(gaps)
        if gaps:
            outcomes.append((n_near > 0, failed[i]))
        seen.append(i)
        if not failed[i] or n_near < 2 or not any(former.values()):
            continue
        near, away = (
            (outcomes.count((x, True)), outcomes.count((x, False))) for x in (True, False)
        )
        places = log_evidence(*near, 20.0, 1.0) + log_evidence(*away, 1.0, 3.0)
        odds = places - log_evidence(*np.add(near, away), 1.0, 3.0)
        if odds > math.log(3.0) or ((1 + away[0]) / (4 + sum(away))) ** n_near < 1e-3:
            learnt.append(i)
    return learnt


def test_the_learnt_failures_are_those_that_places_explain():
    n_learnt = []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        centres = rng.random((4, 2))
        rows = centres[rng.integers(4, size=40)] + rng.choice([0.01, 0.3]) * rng.random((40, 2))
        for i in np.flatnonzero(rng.random(40) < 0.2):
            rows[i] = rows[rng.integers(i + 1)]
        failed = (rows[:, 0] > rng.uniform(0.3, 1.5)) | (rng.random(40) < 0.4 * (seed % 3))
        values = np.where(failed, np.nan, rng.random(40))
        search, positions = search_of(), []
        for i in range(40):
            if i % 7 == 3:
                # What was told after a state has no effect once it is restored.
                state = search.state()
                search.tell(rng.permutation(rows), rng.permutation(values))
                search.restore(state)
            before = len(search.failed.learnt)
            tell(search, rows[i], values[i])
            positions += [i] * (len(search.failed.learnt) - before)
        assert positions == expected(rows.tolist(), failed.tolist())
        n_learnt.append(len(positions))
    assert 0 in n_learnt
    assert max(n_learnt) > 10


@pytest.mark.parametrize("retries", [False, True])
def test_random_failures_do_not_end_a_search(retries):
    space = SearchSpace({f"x{k}": Float(-1.0, 1.0) for k in range(4)})
    best = []
    for seed in range(4):
        optimizer, rng = MondrianOptimizer(space, seed=seed), np.random.default_rng(seed)
        while optimizer.n_trials < 40:
            params = optimizer.ask()
            while (fails := rng.random() < 0.4) and retries:
                optimizer.tell(params, math.nan)
            loss = sum((x - 0.3) ** 2 for x in params.values())
            optimizer.tell(params, math.nan if fails else loss)
        best.append(optimizer.best[1])
    assert np.median(best) < 1e-8
    assert max(best) < 1e-3
