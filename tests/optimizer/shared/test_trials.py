"""Trials: the best of them and what is known."""

from __future__ import annotations

import numpy as np

from mondrian_bo.optimizer.shared.trials import Trials


def told(n, seed=0):
    rng = np.random.default_rng(seed)
    trials = Trials(2)
    rows, values = rng.random((n, 2)), rng.normal(size=n)
    trials.tell(rows[: n // 2], values[: n // 2])
    trials.tell(rows[n // 2 :], values[n // 2 :])
    return trials, rows, values


def test_best_trials_are_those_of_a_sort():
    _, rows, values = told(80)
    values = np.round(values, 1)
    trials = Trials(2)
    for n, (row, value) in enumerate(zip(rows, values, strict=True), start=1):
        trials.tell(row[None], np.array([value]))
        # Of equal values, the earlier first.
        order = np.argsort(-values[:n], kind="stable")
        best = trials.best_rows()
        assert 1 <= len(best) <= n
        assert np.array_equal(best, rows[order[: len(best)]])
        best_row, best_value, _ = trials.best()
        assert np.array_equal(best_row, rows[order[0]])
        assert best_value == values[order[0]]


def test_known_rows():
    trials, rows, _ = told(5)
    assert all(trials.is_taken(row) for row in rows)
    assert not trials.is_taken(np.array([0.5, 0.5]))
    trials.avoid(np.array([[0.5, 0.5]]))
    assert trials.is_taken(np.array([0.5, 0.5]))
    assert not trials.is_taken(np.array([0.5, 0.25]))
    assert not trials.is_taken(np.array([0.5, np.nan]))
    assert len(trials) == 5


def test_known_rows_with_gaps():
    """An objective given the same values asks for the same parameters, and not for more."""
    trials = Trials(2)
    trials.exclude(np.array([[0.5, np.nan]]))
    trials.exclude(np.array([[np.nan, 0.25]]))
    for row, known in [
        ((0.5, np.nan), True),
        ((0.5, 0.75), True),
        ((0.75, 0.25), True),
        ((0.75, 0.75), False),
        ((0.75, np.nan), False),
    ]:
        assert trials.is_taken(np.array(row)) == known


def test_trials_that_lacked_parameters_rule_out_themselves_alone():
    trials = Trials(2)
    trials.tell(np.array([[0.5, np.nan]]), np.array([1.0]))
    trials.avoid(np.array([[np.nan, 0.25]]))
    assert trials.is_taken(np.array([0.5, np.nan]))
    assert trials.is_taken(np.array([np.nan, 0.25]))
    assert not trials.is_taken(np.array([0.5, 0.25]))


def test_rows_are_copied():
    trials = Trials(2)
    row = np.array([[0.25, 0.75]])
    trials.tell(row, np.array([1.0]))
    row[:] = 0.0
    assert trials.best()[0].tolist() == [0.25, 0.75]
    assert trials.is_taken(np.array([0.25, 0.75]))


def test_rows_and_values_are_those_told():
    trials, rows, values = told(200)
    assert len(trials) == 200
    assert np.array_equal(trials.rows, rows)
    assert np.array_equal(trials.values, values)


def test_eligible_trials_come_first():
    trials = Trials(1)
    for i, (value, eligible) in enumerate([(3.0, False), (1.0, True), (2.0, True)]):
        trials.tell(np.array([[i / 10]]), np.array([value]), eligible)
    assert trials.best_rows()[:, 0].tolist() == [0.2, 0.1, 0.0]
    assert trials.best_rows(eligible=True)[:, 0].tolist() == [0.2, 0.1]
    assert trials.best()[1] == 2.0


def test_negative_zero_is_zero():
    trials = Trials(2)
    trials.avoid(np.array([[-0.0, 0.5]]))
    assert trials.is_taken(np.array([0.0, 0.5]))
