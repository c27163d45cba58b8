"""The functions of ``bbob-noisy``: noise-free regrets, and noise as COCO draws it."""

import itertools

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import ks_2samp

from mondrian_bo.benchmarks.harness.results import read_run
from mondrian_bo.benchmarks.harness.runner import Run, execute
from mondrian_bo.benchmarks.problems import SUITES, get_problem, installed_problems
from mondrian_bo.benchmarks.problems.bbob import DIMENSIONS, loaded, minimiser
from mondrian_bo.benchmarks.problems.noisy import NOISY_FUNCTIONS

COUNTERPARTS = {
    **{101: (1, 1.0), 104: (8, 1.0), 107: (1, 1.0), 110: (8, 1.0), 113: (7, 1.0)},
    **{119: (14, 1.0), 122: (17, 1.0), 125: (19, 0.1), 128: (21, 1.0)},
}
"""Functions of ``bbob`` and their factors, by the first of three noisy variants. The ellipsoid,
116, has another condition number than that of ``bbob``."""


def params_of(x):
    return {f"x{i + 1}": float(value) for i, value in enumerate(x)}


def test_the_suite_has_every_function_in_every_dimension():
    names = SUITES["noisy"].problems
    assert names == tuple(f"noisy_f{n}_d{d}" for d in DIMENSIONS for n in range(101, 131))
    assert all(problem.half == "held-out" for problem in NOISY_FUNCTIONS)


@pytest.mark.parametrize("dimension", [2, 5, 10])
def test_noise_free_regrets_are_those_of_bbob(dimension):
    pytest.importorskip("cocoex", reason="needs coco-experiment")
    points = np.random.default_rng(0).uniform(-5.0, 5.0, (3, dimension))
    for (first, (number, factor)), variant in itertools.product(COUNTERPARTS.items(), range(3)):
        noisy = get_problem(f"noisy_f{first + variant}_d{dimension}")
        plain = get_problem(f"bbob_f{number}_d{dimension}")
        for x in points:
            expected = factor * plain.instance(2)(params_of(x))
            assert noisy.instance(2)(params_of(x)) == pytest.approx(expected, rel=1e-9)


def test_the_ellipsoid_is_that_of_the_report():
    """In the plane, both ellipsoids give the rotated coordinates, whose length is known."""
    pytest.importorskip("cocoex", reason="needs coco-experiment")
    easy, hard = get_problem("noisy_f116_d2").instance(0), get_problem("bbob_f10_d2").instance(0)
    optimum = minimiser("bbob", 10, 2, 1)

    def oscillated(z):
        c = (10.0, 7.9) if z > 0.0 else (5.5, 3.1)
        log = np.log(abs(z))
        return np.exp(log + 0.049 * (np.sin(c[0] * log) + np.sin(c[1] * log)))

    for x in np.random.default_rng(0).uniform(-5.0, 5.0, (5, 2)):
        sums = [easy(params_of(x)), hard(params_of(x))]
        squares = np.linalg.solve([[1.0, 1e4], [1.0, 1e6]], sums)
        lengths = [
            [
                brentq(lambda z, s=sign, y=y: oscillated(s * z) - y, 1e-6, 50.0)
                for y in np.sqrt(squares)
            ]
            for sign in (1.0, -1.0)
        ]
        candidates = [
            np.hypot(lengths[i][0], lengths[j][1]) for i, j in itertools.product(range(2), repeat=2)
        ]
        assert np.min(np.abs(np.array(candidates) - np.linalg.norm(x - optimum))) < 1e-6
    for number in (117, 118):
        other = get_problem(f"noisy_f{number}_d2").instance(0)
        assert other(params_of(x)) == easy(params_of(x))


@pytest.mark.parametrize("number", range(101, 131))
def test_noise_has_the_distribution_of_coco(number):
    pytest.importorskip("cocoex", reason="needs coco-experiment")
    problem = get_problem(f"noisy_f{number}_d5")
    x, n = np.full(5, 1.5), 2000
    regret = problem.instance(0)(params_of(x))
    # Cauchy noise is not 0 at the minimiser, where Gaussian noise is.
    gaussian = number - (number - 101) % 3
    best = minimiser("bbob-noisy", gaussian - 100, 5, 1)
    suite, theirs = loaded("bbob-noisy", gaussian - 100, 5, 1)
    optimum = theirs(best)
    suite, theirs = loaded("bbob-noisy", number - 100, 5, 1)
    values = np.array([theirs(x) for _ in range(n)]) - optimum
    assert len(suite) == 1  # the suite is alive while its problem is called
    ours = np.array([problem.observe(regret, 0, trial) for trial in range(n)])
    # Cauchy noise is a constant in most trials: rounding must not tell equal values apart.
    statistic = ks_2samp(ours.round(6), values.round(6)).statistic
    assert statistic < 0.07  # the random numbers of COCO are not quite independent
    assert problem.observe(regret, 0, 7) == ours[7] != problem.observe(regret, 1, 7)


def test_the_minimiser_has_no_regret_and_no_multiplicative_noise():
    pytest.importorskip("cocoex", reason="needs coco-experiment")
    for number in (101, 117, 128):
        problem = get_problem(f"noisy_f{number}_d5")
        best = params_of(minimiser("bbob-noisy", number - 100, 5, 3))
        assert problem.instance(2)(best) == pytest.approx(0.0, abs=1e-8)
        assert problem.observe(0.0, 0, 0) == 0.0


def test_a_run_is_scored_without_noise(tmp_path):
    pytest.importorskip("cocoex", reason="needs coco-experiment")
    run = Run("noisy_f108_d2", "random", 1, 40, tmp_path, None)
    execute(run)
    records = read_run(run.path)
    problem, plain = get_problem("noisy_f108_d2"), get_problem("bbob_f1_d2")
    for record in records:
        assert record.exact == pytest.approx(plain.instance(1)(record.params), rel=1e-9)
        assert record.value == problem.observe(record.exact, 1, record.number) != record.exact
    told = np.array([record.value for record in records])
    exact = np.array([record.exact for record in records])
    expected = [exact[told[: i + 1].argmin()] for i in range(len(records))]
    assert [record.best for record in records] == expected
    assert not np.array_equal(expected, np.minimum.accumulate(exact))


def test_without_the_package_problems_are_skipped(monkeypatch):
    monkeypatch.setattr("mondrian_bo.benchmarks.problems.base.find_spec", lambda name: None)
    told = []
    assert installed_problems(["branin", "noisy_f101_d2"], told.append) == ["branin"]
    assert "cocoex" in told[0] and "noisy_f101_d2" in told[0]
