"""The problems that every seed moves."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mondrian_bo.benchmarks.problems import SUITES, get_problem

PI = np.pi
HARTMANN6 = (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)
# A minimiser of the unmoved function, as the literature prints it.
MINIMISERS = {
    "shifted_branin": (PI, 2.275),
    "shifted_branin10": (PI, 2.275, *[0.5] * 8),
    "shifted_branin25": (PI, 2.275, *[0.5] * 23),
    "shifted_branin_noisy": (PI, 2.275),
    "shifted_branin_heavy": (PI, 2.275),
    "shifted_hartmann3": (0.114614, 0.555649, 0.852547),
    "shifted_hartmann6": HARTMANN6,
    "shifted_hartmann6_noisy": HARTMANN6,
    "shifted_hartmann6_heavy": HARTMANN6,
    "shifted_rosenbrock4": [1.0] * 4,
    "shifted_ackley5": [0.0] * 5,
    "shifted_ackley5_noisy": [0.0] * 5,
    "shifted_ackley5_heavy": [0.0] * 5,
    "shifted_levy10": [1.0] * 10,
    "shifted_michalewicz5": (2.202906, 1.570796, 1.284992, 1.923058, 1.720470),
    "shifted_griewank6": [0.0] * 6,
    "shifted_styblinski_tang6": [-2.903534] * 6,
}
SHIFTED = [n for n in SUITES["default"].problems if n.startswith("shifted")]
# By hand, or as the literature prints them: (coordinates, value) of the unmoved functions.
VALUES = {
    "shifted_rosenbrock4": ((0.0, 2.0, 1.0, 1.0), 401 + 901 + 0),
    "shifted_ackley5": ([1.0] * 5, 20 - 20 * np.exp(-0.2)),
    "shifted_levy10": ([5.0] + [1.0] * 9, 1 + 10 * np.sin(2 * PI + 1) ** 2),
    "shifted_griewank6": ([0.0] * 5 + [PI * np.sqrt(6)], 6 * PI**2 / 4000 + 2),
    "shifted_styblinski_tang6": ([1.0] * 6, -30.0),
    "shifted_michalewicz5": ([PI / 2] * 5, -np.sum(np.sin(np.arange(1, 6) * PI / 4) ** 20)),
}


def as_params(point):
    return {f"x{i + 1}": float(x) for i, x in enumerate(point)}


def test_every_moved_function_has_a_minimiser_here():
    assert set(MINIMISERS) == set(SHIFTED)


@pytest.mark.parametrize("name", SHIFTED)
def test_the_optimum_moves_with_the_seed_and_stays_in_the_box(name):
    problem = get_problem(name)
    for seed in range(30):
        offsets = problem.offsets(seed)
        moved = {n: x + offsets[n] for n, x in as_params(MINIMISERS[name]).items()}
        for coordinate, value in moved.items():
            parameter = problem.space[coordinate]
            if int(coordinate[1:]) <= 2 or "branin" not in name:
                assert parameter.low <= value <= parameter.high
        reached = problem.instance(seed)(moved)
        assert reached == pytest.approx(problem.optimum, abs=2e-5 * len(moved))


@pytest.mark.parametrize("name", ["shifted_hartmann3", "shifted_michalewicz5"])
def test_the_optimum_is_that_of_a_polished_minimiser(name):
    problem = get_problem(name)
    polished = minimize(lambda x: problem.function(as_params(x)), MINIMISERS[name], tol=1e-12)
    assert polished.fun == pytest.approx(problem.optimum, abs=1e-8)


@pytest.mark.parametrize("name", VALUES)
def test_values_away_from_the_minimum(name):
    point, value = VALUES[name]
    assert get_problem(name).function(as_params(point)) == pytest.approx(value)


def test_offsets_are_uniform_within_the_share_of_the_range():
    problem = get_problem("shifted_levy10")
    offsets = np.array([list(problem.offsets(seed).values()) for seed in range(300)])
    assert offsets.shape == (300, 10)
    assert np.abs(offsets).max() <= 2.0
    assert np.abs(offsets).max(axis=0).min() > 1.9  # every coordinate, independently
    assert abs(offsets.mean()) < 4 * 2 / np.sqrt(3 * 3000)
    correlations = np.corrcoef(offsets.T) - np.eye(10)
    assert np.abs(correlations).max() < 5 / np.sqrt(300)


def test_only_continuous_linear_parameters_move():
    assert set(get_problem("mixed6").offsets(1)) == {"x1", "x2", "x3", "x4"}
    assert get_problem("conditional").offsets(1) == {}


@pytest.mark.parametrize("name", ["shifted_branin", "shifted_hartmann6", "shifted_ackley5"])
def test_the_noise_is_a_tenth_of_the_range(name):
    problem = get_problem(name)
    d = len(problem.space)
    starts = [
        *problem.space.sample(5000, np.random.default_rng(0)),
        *(np.array(corner, dtype=float) for corner in np.ndindex(*[2] * d)),
        *(np.full(d, share) for share in np.linspace(0, 1, 301)),
    ]
    lows = np.array([p.low for p in problem.space.values()])
    widths = np.array([p.high - p.low for p in problem.space.values()])

    def negated(unit):
        return -problem.function(as_params(lows + widths * unit))

    start = min(starts, key=negated)
    best = minimize(negated, start, bounds=[(0, 1)] * d, method="L-BFGS-B")
    noise = get_problem(f"{name}_noisy").noise
    assert noise == pytest.approx(0.1 * (-best.fun - problem.optimum), rel=0.01)
