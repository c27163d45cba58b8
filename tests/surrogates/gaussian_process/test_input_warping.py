"""Input warping: which inputs get a logarithmic scale, and what predictions make of it."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from interrupts import Interrupted, interrupt_at

from mondrian_bo import MondrianOptimizer
from mondrian_bo.search_space import Float, SearchSpace
from mondrian_bo.surrogates.base import Columns
from mondrian_bo.surrogates.gaussian_process.fit import OPTIMIZER_PRIOR, initial_estimates
from mondrian_bo.surrogates.gaussian_process.input_warping import InputWarping
from mondrian_bo.surrogates.gaussian_process_forest.surrogate import GaussianProcessForestSurrogate

NUMBERS = np.array([0, 0, 0])
UNLIMITED = 10**9


def standardised(values):
    return (values - values.mean()) / values.std()


def logarithms(rows):
    """The first number acts by its logarithm, the second by that of its distance from 1."""
    low = np.log10(rows[:, 0] + 1e-5) + 2.5
    high = np.log10(1.0 - rows[:, 1] + 1e-5) + 1.5
    # About of mean 0 and variance 1 at uniform points.
    return (low**2 + high**2 + (rows[:, 2] - 0.4) ** 2 - 5.84) / 1.63


def chosen(function, n, seed):
    """Return the warping that a choice by n targets makes."""
    rows = np.random.default_rng(seed).random((n, 3))
    warping = InputWarping(np.ones(3, dtype=np.bool_))
    start = initial_estimates(np.zeros(3, dtype=np.bool_), OPTIMIZER_PRIOR)[0].covariance
    warping.choose(rows, function(rows), start, OPTIMIZER_PRIOR)
    return warping


def surrogate_of(n=60, n_choices=NUMBERS, absent=False, **options):
    surrogate = GaussianProcessForestSurrogate(
        Columns(n_choices, absent), np.random.SeedSequence(0), **options
    )
    rows = np.random.default_rng(0).random((n, 3))
    surrogate.learn(rows, logarithms(rows))
    return surrogate


@pytest.mark.parametrize("seed", range(5))
def test_logarithms_are_found_from_either_end(seed):
    assert chosen(logarithms, 50, seed).ends.tolist() == [1, -1, 0]


@pytest.mark.parametrize(
    "function",
    [
        lambda rows: np.square(rows - 0.3).sum(axis=1),
        lambda rows: np.sin(6.0 * rows).sum(axis=1),
        lambda rows: rows[:, 0] * rows[:, 1] + rows[:, 2],
        lambda rows: rows[:, 0] - 0.4,
        lambda rows: np.random.default_rng(len(rows)).normal(size=len(rows)),
    ],
    ids=["quadratic", "waves", "product", "of one input", "noise"],
)
@pytest.mark.parametrize("n", [8, 30, 100])
def test_other_functions_keep_their_scales(function, n):
    for seed in range(3):
        warping = chosen(lambda rows: standardised(function(rows)), n, seed)
        assert warping.ends.tolist() == [0, 0, 0]


def test_a_warp_is_given_up_where_later_targets_speak_against_it():
    warping = InputWarping(np.ones(3, dtype=np.bool_))
    start = initial_estimates(np.zeros(3, dtype=np.bool_), OPTIMIZER_PRIOR)[0].covariance
    rows = np.random.default_rng(0).random((60, 3))
    warped, covariance = warping.choose(rows[:30], logarithms(rows[:30]), start, OPTIMIZER_PRIOR)
    assert warping.is_active
    warped = warping(rows)
    again = warping.choose(
        warped, standardised(np.sin(6.0 * rows).sum(axis=1)), covariance, OPTIMIZER_PRIOR
    )
    assert not warping.is_active
    np.testing.assert_allclose(again[0], rows, atol=1e-12)


def test_warps_increase_and_have_inverses_and_slopes():
    warping = chosen(logarithms, 50, 0)
    assert warping.ends.tolist() == [1, -1, 0]
    rows = np.linspace(-0.2, 1.2, 141)[:, None] * np.ones(3)
    warped = warping(rows)
    assert (np.diff(warped, axis=0) > 0.0).all()
    spread = warping(np.random.default_rng(0).random((100_000, 3))).std(axis=0)
    np.testing.assert_allclose(spread, 12.0**-0.5, rtol=0.04)
    np.testing.assert_allclose(warping.inverse(warped), rows, atol=1e-12)
    np.testing.assert_array_equal(warped[:, 2], rows[:, 2])
    step = 1e-7
    differences = (warping(rows + step) - warping(rows - step)) / (2.0 * step)
    # At 0 and 1 the slope of one side differs from that of both.
    inside = np.abs(rows * (1.0 - rows)) > 1e-3
    np.testing.assert_allclose(warping.slopes(rows)[inside], differences[inside], rtol=1e-4)
    assert warping.slopes(np.array([[np.nan] * 3])).tolist() == [[1.0] * 3]


def test_targets_are_counted_until_a_choice_is_due():
    warping = InputWarping(np.ones(3, dtype=np.bool_))
    assert [warping.count(n) for n in (3, 4, 1, 1)] == [False, False, True, True]
    without = InputWarping(np.ones(3, dtype=np.bool_), chooses=False)
    assert not without.count(1000)
    fixed = InputWarping(np.ones(3, dtype=np.bool_))
    fixed.fix(chosen(logarithms, 50, 0))
    assert fixed.ends.tolist() == [1, -1, 0]
    assert fixed.is_active
    assert not fixed.count(1000)


def test_pickles_of_earlier_versions_are_read():
    warping = InputWarping(np.ones(2, dtype=np.bool_))
    state = {
        "_is_numeric": np.ones(2, dtype=np.bool_),
        "_ends": np.array([0, -1]),
        "is_active": True,
        "n_left": 2.5,
    }
    warping.__setstate__(state)
    again = pickle.loads(pickle.dumps(warping))
    for one in (warping, again):
        assert (one.ends.tolist(), one.is_active, one.n_left) == ([0, -1], True, 2.5)
        assert set(vars(one)) == set(vars(InputWarping(np.ones(2, dtype=np.bool_))))
    assert set(state) == {"_is_numeric", "_ends", "is_active", "n_left"}


def test_predictions_are_better_and_have_right_gradients():
    surrogate, plain = surrogate_of(), surrogate_of(input_warping=False)
    assert surrogate.warping.is_active
    assert not plain.warping.is_active
    probes = np.random.default_rng(1).random((200, 3))
    errors = [
        np.abs(one.predict(probes)[0].mean(axis=0) - logarithms(probes)).mean()
        for one in (surrogate, plain)
    ]
    assert errors[0] < 0.5 * errors[1]
    points = probes[100:110]
    means, stds, mean_gradients, std_gradients = surrogate.gradients(points)
    np.testing.assert_allclose(surrogate.predict(points), (means, stds))
    for j in range(3):
        step = 1e-6 * (np.arange(3) == j)
        up, down = surrogate.predict(points + step), surrogate.predict(points - step)
        np.testing.assert_allclose(
            mean_gradients[:, :, j], (up[0] - down[0]) / 2e-6, rtol=1e-3, atol=1e-3
        )
        np.testing.assert_allclose(
            std_gradients[:, :, j], (up[1] - down[1]) / 2e-6, rtol=1e-2, atol=1e-3
        )


@pytest.mark.parametrize("block_size", [200, 25])
def test_pending_rows_are_undone(block_size):
    surrogate = surrogate_of(block_size=block_size)
    probes = np.random.default_rng(2).random((30, 3))
    before = surrogate.predict(probes)
    ends = surrogate.warping.ends
    with surrogate.extended(probes, np.full(30, 3.0)):
        assert (surrogate.predict(probes)[0].mean(axis=0) > before[0].mean(axis=0)).all()
    np.testing.assert_array_equal(surrogate.predict(probes), before)
    np.testing.assert_array_equal(surrogate.warping.ends, ends)


def test_draws_and_fixed_lengthscales_have_the_warps():
    surrogate = surrogate_of()
    probes = np.random.default_rng(2).random((20, 3))
    mean, covariance = surrogate.joint(probes)
    np.testing.assert_allclose(mean, surrogate.predict(probes)[0][0], atol=1e-6)
    draws = surrogate.draw_at(probes, 400, np.random.default_rng(0))
    spread = np.sqrt(np.diag(covariance) / 400)
    assert (np.abs(draws.mean(axis=0) - mean) < 5.0 * spread + 1e-6).all()
    other = GaussianProcessForestSurrogate(Columns(NUMBERS, False), np.random.SeedSequence(1))
    other.fix_lengthscales(surrogate, 1.0)
    rows = np.random.default_rng(0).random((60, 3))
    other.learn(rows, logarithms(rows))
    np.testing.assert_allclose(other.predict(probes)[0], surrogate.predict(probes)[0], atol=1e-6)
    assert other.warping.n_left == math.inf


def test_absent_and_categorical_parameters():
    rng = np.random.default_rng(0)
    rows = rng.random((80, 3))
    rows[:, 1] = rng.integers(0, 2, 80)
    values = (np.log10(rows[:, 0] + 1e-4) + 2.0) ** 2 + rows[:, 1]
    values += np.where(rows[:, 1] == 0, (np.log10(rows[:, 2] + 1e-4) + 2.0) ** 2, 0.0)
    rows[rows[:, 1] > 0, 2] = np.nan
    surrogate = GaussianProcessForestSurrogate(
        Columns(np.array([0, 2, 0]), True), np.random.SeedSequence(0)
    )
    surrogate.learn(rows, standardised(values))
    assert surrogate.warping.ends[[0, 1]].tolist() == [1, 0]
    gradients = surrogate.gradients(rows[:10])
    assert all(np.isfinite(one).all() for one in gradients)


def test_choices_are_due_at_growing_numbers():
    surrogate = GaussianProcessForestSurrogate(Columns(NUMBERS, False), np.random.SeedSequence(0))
    rows = np.random.default_rng(0).random((130, 3))
    values = logarithms(rows)
    due = []
    for k in range(130):
        left = surrogate.warping.n_left
        surrogate.learn(rows[k : k + 1], values[k : k + 1])
        if surrogate.warping.n_left != left - 1:
            due.append(k + 1)
    assert due[0] == 8
    assert due[-1] in range(100, 126)
    assert len(due) < 15
    assert surrogate.warping.n_left == math.inf


def test_many_trials_at_once_are_warped_by_some_of_them():
    surrogate = surrogate_of(3000)
    assert surrogate.warping.ends.tolist() == [1, -1, 0]
    assert surrogate.warping.n_left == math.inf


def test_wide_spaces_keep_their_scales():
    wide = GaussianProcessForestSurrogate(
        Columns(np.zeros(65, dtype=np.int64), False), np.random.SeedSequence(0)
    )
    assert wide.warping.n_left == math.inf


def test_the_option_is_a_truth_value():
    with pytest.raises(TypeError, match="input_warping"):
        surrogate_of(input_warping="yes")


def search(n_trials, optimizer, moments=None):
    """Return the points of some trials, and their values; interrupt suggestions at some moments."""
    points, values = [], []
    for number in range(n_trials):
        try:
            params = interrupt_at((moments or {}).get(number, UNLIMITED), optimizer.ask)
        except Interrupted:
            params = optimizer.ask()
        x, y = params["x"], params["y"]
        points.append(params)
        values.append((math.log10(x + 1e-6) + 3.0) ** 2 + (y - 0.4) ** 2)
        optimizer.tell(params, values[-1])
    return points, values


SPACE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})


def test_an_interrupted_choice_is_made_again():
    expected = search(30, MondrianOptimizer(SPACE, seed=0))
    rng = np.random.default_rng(0)
    for _ in range(3):
        # Warps are chosen at 8, 10, 13, ... trials.
        moments = {n: int(np.exp(rng.uniform(3.0, 8.5))) for n in (8, 9, 10, 13, 14, 17, 21, 26)}
        assert search(30, MondrianOptimizer(SPACE, seed=0), moments) == expected


def test_a_search_finds_a_small_optimum_of_a_linear_range(tmp_path):
    for seed in range(4):
        optimizer = MondrianOptimizer(SPACE, seed=seed)
        # A uniform point comes so low with a probability of 7 in 100,000.
        assert min(search(40, optimizer)[1]) < 0.01
    optimizer.save(tmp_path / "search.npz")
    loaded = MondrianOptimizer.load(tmp_path / "search.npz")
    assert search(5, loaded) == search(5, optimizer)
