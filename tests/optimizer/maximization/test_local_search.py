"""Local search of acquisitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from mondrian_bo import Categorical, Condition, Float, Int, SearchSpace
from mondrian_bo.optimizer.maximization.local_search import climb, improve

CUBE = SearchSpace({name: Float(0.0, 1.0) for name in "abcd"})
SCALES = np.array([1.0, 30.0, 5.0, 300.0])


def bowl(centre):
    def score(rows):
        return -np.einsum("j,ij->i", SCALES, (rows - centre) ** 2)

    return score, lambda rows: (score(rows), -2.0 * SCALES * (rows - centre))


def test_climbs_a_bowl_of_many_scales():
    centre = np.array([0.3, 0.6, 0.5, 0.45])
    starts = np.random.default_rng(0).random((6, 4))
    score, gradients = bowl(centre)
    ends = climb(gradients, CUBE, starts, 20)
    assert np.all(score(ends) > score(starts))
    assert np.all(score(ends) > 0.02 * score(starts))


def test_stays_in_the_box_and_finds_its_boundary():
    centre = np.array([-0.5, 1.4, 0.5, 0.5])
    ends = climb(bowl(centre)[1], CUBE, np.full((3, 4), 0.5), 20)
    assert np.allclose(ends, [0.0, 1.0, 0.5, 0.5], atol=1e-6)


def test_never_returns_worse_than_it_was_given():
    """Waves with steep gradients, on which steps overshoot."""

    def gradients(rows):
        angles = 60.0 * rows
        return np.sin(angles).sum(axis=1), 60.0 * np.cos(angles)

    starts = np.random.default_rng(1).random((20, 4))
    ends = climb(gradients, CUBE, starts, 20)
    assert np.all(gradients(ends)[0] >= gradients(starts)[0])


@pytest.mark.parametrize("seed", range(3))
def test_as_good_as_scipy_on_a_smooth_function(seed):
    rng = np.random.default_rng(seed)
    centres, heights = rng.random((5, 4)), rng.random(5)

    def gradients(rows):
        gaps = rows[:, None] - centres
        parts = heights * np.exp(-4.0 * (gaps**2).sum(axis=2))
        return parts.sum(axis=1), (-8.0 * parts[:, :, None] * gaps).sum(axis=1)

    starts = rng.random((4, 4))
    ends = climb(gradients, CUBE, starts, 20)
    for start, end in zip(starts, ends, strict=True):
        baseline = minimize(
            lambda x: -gradients(x[None])[0][0],
            start,
            jac=lambda x: -gradients(x[None])[1][0],
            bounds=[(0.0, 1.0)] * 4,
        )
        assert gradients(end[None])[0][0] > -baseline.fun - 1e-4


def test_choices_and_grids_are_searched_too():
    space = SearchSpace(
        {"x": Float(0.0, 1.0), "c": Categorical(["a", "b", "c"]), "n": Int(1, 8), "m": Int(0, 1000)}
    )
    goal = space.to_unit({"x": 0.3, "c": "c", "n": 6, "m": 500})

    def score(rows):
        return -(
            (rows[:, 0] - goal[0]) ** 2
            + (rows[:, 1] != goal[1])
            + np.abs(rows[:, 2:] - goal[2:]).sum(axis=1)
        )

    def gradients(rows):
        gradient = np.zeros(rows.shape)
        gradient[:, 0] = -2.0 * (rows[:, 0] - goal[0])
        return score(rows), gradient

    start = space.to_unit({"x": 0.9, "c": "a", "n": 6, "m": 498})
    ends = improve(score, gradients, space, np.array([start, goal]), 20)
    assert np.allclose(ends[0], goal, atol=1e-6)
    assert np.array_equal(ends[1], goal)


def test_of_many_choices_those_of_trials_are_tried_and_one_other():
    space = SearchSpace({"x": Float(0.0, 1.0), "c": Categorical(range(5000))})
    known = np.array([[0.1, 0.0], [0.2, 4000.0], [0.3, 1.0], [0.4, np.nan]])
    seen = set()

    def score(rows):
        seen.update(rows[:, 1])
        return np.where(rows[:, 1] == 4000.0, 1.0, 0.0)

    def gradients(rows):
        return score(rows), np.zeros(rows.shape)

    (end,) = improve(score, gradients, space, np.array([[0.5, 77.0]]), 20, known)
    assert end.tolist() == [0.5, 4000.0]
    assert seen == {77.0, 0.0, 1.0, 2.0, 4000.0}


def test_absent_parameters_stay_absent():
    space = SearchSpace(
        {
            "c": Categorical(["a", "b"]),
            "x": Float(0.0, 1.0),
            "y": Float(0.0, 1.0, condition=Condition("c", ["b"])),
        }
    )
    rows = np.array([[0.0, 0.2, np.nan]])
    ends = climb(lambda r: (-((r[:, 1] - 0.7) ** 2), -2.0 * (r - 0.7)), space, rows, 20)
    assert ends[0, 1] == pytest.approx(0.7) and np.isnan(ends[0, 2])


MIXED = SearchSpace(
    {
        "a": Float(0.0, 1.0),
        "n": Int(0, 9),
        "choice": Categorical(["p", "q"]),
        "b": Float(0.0, 1.0),
        "absent": Float(0.0, 1.0, condition=Condition("choice", ["q"])),
    }
)


def cliff(rows):
    """A score that rises along a line and falls a thousand times as steeply beside it."""
    gap = rows[:, 0] + rows[:, 3] - 1.0
    scores = rows[:, 0] - 1000.0 * gap**2
    slopes = np.zeros(rows.shape)
    slopes[:, 0] = 1.0 - 2000.0 * gap
    slopes[:, 3] = -2000.0 * gap
    return scores, slopes


def test_the_best_row_is_polished_along_a_cliff():
    start = np.array([[0.1, 0.55, 0.0, 0.8, np.nan], [0.2, 0.55, 0.0, 0.1, np.nan]])

    def score(rows):
        return cliff(rows)[0]

    plain = improve(score, cliff, MIXED, start, 3)
    polished = improve(score, cliff, MIXED, start, 3, n_polished=1)

    best = int(np.argmax(score(plain)))
    assert score(plain).max() < 0.9
    assert score(polished)[best] == pytest.approx(1.0, abs=1e-3)
    # All else is as before: other rows, and columns that are not continuous.
    assert np.array_equal(polished[1 - best], plain[1 - best], equal_nan=True)
    assert np.array_equal(polished[best, [1, 2, 4]], plain[best, [1, 2, 4]], equal_nan=True)


def test_a_score_that_jumps_is_polished_with_a_limited_number_of_evaluations():
    evaluated, evaluations = [], []

    def stairs(rows):
        scores, slopes = cliff(rows)
        evaluated.append(len(rows))
        return scores + 1e-3 * np.floor(1e3 * rows[:, 3]), slopes

    start = np.array([[0.1, 0.55, 0.0, 0.8, np.nan]])
    improve(lambda rows: stairs(rows)[0], stairs, MIXED, start, 3)
    n_plain = len(evaluated)
    for limit in ({}, {"n_evaluations": 12}):
        improve(lambda rows: stairs(rows)[0], stairs, MIXED, start, 3, n_polished=1, **limit)
        evaluations.append(len(evaluated) - n_plain - sum(evaluations))

    # The plain search and the score of its ends are the rest.
    unlimited, limited = evaluations
    assert unlimited - n_plain > 20 and 6 < limited - n_plain <= 13


def test_nothing_is_polished_without_continuous_columns():
    space = SearchSpace({"n": Int(0, 9)})

    def gradients(rows):
        return rows[:, 0].copy(), np.ones(rows.shape)

    rows = improve(lambda rows: rows[:, 0], gradients, space, np.array([[0.05]]), 3, n_polished=1)
    assert np.array_equal(rows, [[0.95]])
