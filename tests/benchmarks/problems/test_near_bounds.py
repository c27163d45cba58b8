"""The problems whose minimisers lie near or on the bounds."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mondrian_bo.benchmarks.problems import SUITES, get_problem
from mondrian_bo.benchmarks.problems.near_bounds import NEAR_BOUNDS_PROBLEMS

NAMES = [problem.name for problem in NEAR_BOUNDS_PROBLEMS]
SEEDS = range(SUITES["default"].n_seeds)
ON_A_BOUND = [0, 2, 5]  # of face_hartmann6


def of_array(problem, seed):
    function, names = problem.instance(seed), list(problem.space)
    return lambda x: function(dict(zip(names, map(float, x), strict=True)))


def minimiser(problem, seed):
    distances, is_upper = problem.place(seed)
    return np.where(is_upper, 1.0 - distances, distances)


@pytest.mark.parametrize("name", NAMES)
def test_the_minimiser_of_every_seed_is_in_the_box_and_has_the_optimum(name):
    problem = get_problem(name)
    for seed in SEEDS:
        x = minimiser(problem, seed)
        assert ((x >= 0.0) & (x <= 1.0)).all()
        assert of_array(problem, seed)(x) == pytest.approx(problem.optimum, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_every_seed_has_a_place_of_its_own(name):
    problem = get_problem(name)
    places = np.array([minimiser(problem, seed) for seed in range(200)])
    assert len(np.unique(places, axis=0)) == 200
    # Every coordinate is equally often at either bound, whatever the others are.
    is_upper = places > 0.5
    assert np.abs(is_upper.mean(axis=0) - 0.5).max() < 4 * 0.5 / np.sqrt(200)
    assert np.abs(np.corrcoef(is_upper.T) - np.eye(len(problem.space))).max() < 5 / np.sqrt(200)


def test_distances_from_the_bounds():
    def from_bounds(name):
        places = np.array([minimiser(get_problem(name), seed) for seed in SEEDS])
        return np.minimum(places, 1.0 - places)

    near = from_bounds("corner_rosenbrock4")
    assert near.min() >= 0.01
    assert near.max() <= 0.03
    schwefel = from_bounds("schwefel5")
    assert schwefel.min() >= 0.07
    assert schwefel.max() <= 0.105
    face = from_bounds("face_hartmann6")
    assert (face[:, ON_A_BOUND] == 0.0).all()
    assert np.delete(face, ON_A_BOUND, axis=1).min() >= 0.2


def test_nothing_in_the_box_is_better_for_schwefel():
    """The function is a sum over the coordinates, so a grid of each is enough."""
    problem = get_problem("schwefel5")
    grid = np.linspace(0.0, 1.0, 501)
    for seed in SEEDS:
        function, best = of_array(problem, seed), minimiser(problem, seed)
        for i in range(5):
            points = np.tile(best, (len(grid), 1))
            points[:, i] = grid
            values = np.array([function(point) for point in points])
            assert values.min() >= problem.optimum - 1e-9
            other_basins = np.abs(grid - best[i]) > 0.1
            second = np.flatnonzero(other_basins)[values[other_basins].argmin()]
            assert values[second] > problem.optimum + 100.0
            assert 0.7 < abs(grid[second] - best[i]) < 0.75  # of the usual box


def test_nothing_in_the_box_is_better_for_rosenbrock():
    """It is a sum of squares, so its optimum is 0 anywhere."""
    problem = get_problem("corner_rosenbrock4")
    assert problem.optimum == 0.0
    points = np.random.default_rng(0).random((1000, 4))
    for seed in SEEDS:
        assert min(map(of_array(problem, seed), points)) > 0.0


def test_hartmann_falls_towards_its_bounds_and_is_flat_along_the_others():
    problem = get_problem("face_hartmann6")
    step = 1e-6
    for seed in SEEDS:
        function, best = of_array(problem, seed), minimiser(problem, seed)
        _, is_upper = problem.place(seed)
        for i, inwards in enumerate(np.where(is_upper, -1.0, 1.0)):
            aside = best.copy()
            aside[i] += step * inwards
            slope = (function(aside) - function(best)) / step
            if i in ON_A_BOUND:
                assert slope > 0.5
            else:
                assert slope == pytest.approx(0.0, abs=1e-3)


def test_nothing_in_the_box_is_better_for_hartmann():
    problem = get_problem("face_hartmann6")
    for seed in SEEDS:
        function = of_array(problem, seed)
        points = np.random.default_rng(seed).random((200, 6))
        starts = sorted(points, key=function)[:8]
        found = [
            minimize(function, start, bounds=[(0.0, 1.0)] * 6, method="L-BFGS-B").fun
            for start in starts
        ]
        assert min(found) == pytest.approx(problem.optimum, abs=1e-6)
        assert min(found) >= problem.optimum
