"""Candidates and the search among them: valid rows, low discrepancy, known maxima."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, qmc

from mondrian_bo.optimizer import MondrianOptimizer
from mondrian_bo.optimizer.maximization import candidates
from mondrian_bo.optimizer.maximization.candidates import (
    CandidateSearch,
    centre,
    maximize,
    perturb,
    quasi_random_rows,
)
from mondrian_bo.optimizer.search import search
from mondrian_bo.search_space import Categorical, Condition, Float, Int, SearchSpace

CUBE = SearchSpace({f"x{i}": Float(-1.0, 1.0) for i in range(6)})
MIXED = SearchSpace(
    {
        "x": Float(-1.0, 3.0),
        "rate": Float(1e-5, 1.0, log=True),
        "kind": Categorical(("a", "b", "c")),
        "n": Int(1, 100, log=True, condition=Condition("kind", ("a", "c"))),
        "sub": Categorical((None, True), condition=Condition("n", tuple(range(1, 30)))),
        "grid": Float(0.0, 1.0, step=0.1, condition=Condition("sub", (True,))),
        "one": Float(2.0, 2.0),
    }
)
FINITE = SearchSpace(
    {
        "n": Int(0, 7),
        "kind": Categorical(("a", "b", "c")),
        "sub": Int(1, 9, log=True, condition=Condition("kind", ("b",))),
    }
)
spaces = pytest.mark.parametrize("space", [CUBE, MIXED, FINITE], ids=["cube", "mixed", "finite"])


def is_active(space, params, name):
    """The definition: the parent is active and has one of the values."""
    condition = space[name].condition
    if condition is None:
        return True
    held = params.get(condition.parent)
    return held in condition.values and is_active(space, params, condition.parent)


def check_rows(space, rows):
    """Rows are of the space, and those with grids are, bit by bit, what encoding gives."""
    assert rows.dtype == np.float64
    assert np.array_equal(space.snap(rows), rows, equal_nan=True)
    for row in rows:
        params = space.from_unit(row)
        assert set(params) == {name for name in space if is_active(space, params, name)}
        encoded = space.to_unit(params)
        assert np.allclose(encoded, row, rtol=0.0, atol=1e-12, equal_nan=True)
        grid = space.grid_sizes > 0
        # Known rows are recognised by their bytes.
        assert encoded[grid].tobytes() == row[grid].tobytes()


@spaces
def test_spread_gives_valid_rows(space):
    rows = quasi_random_rows(space, 5, 200, np.random.default_rng(0).random(space.n_dimensions))
    assert rows.shape == (200, space.n_dimensions)
    check_rows(space, rows)
    assert quasi_random_rows(space, 0, 0, np.zeros(space.n_dimensions)).shape == (
        0,
        space.n_dimensions,
    )


@settings(derandomize=True)
@given(start=st.integers(0, 70), n=st.integers(0, 40), seed=st.integers(0, 5))
def test_spread_is_the_shifted_sequence(start, n, seed):
    shift = np.random.default_rng(seed).random(6)
    sequence = qmc.Sobol(6, scramble=False).random(128)[start : start + n]
    assert np.allclose(
        quasi_random_rows(CUBE, start, n, shift), (sequence + shift) % 1.0, atol=1e-12
    )


@spaces
def test_centre_is_the_middle_of_every_range(space):
    shift = np.random.default_rng(0).random(space.n_dimensions)
    row = centre(space, shift)
    check_rows(space, row[None])
    numeric = ~space.is_categorical & ~np.isnan(row)
    # The middle lies in a cell of a grid, or on the border of two.
    cells = np.where(space.grid_sizes > 0, 0.5 / np.maximum(space.grid_sizes, 1), 1e-12)
    uniform = np.array(
        [isinstance(p, Float) or not getattr(p, "log", False) for p in space.parameters]
    )
    assert np.all((np.abs(row - 0.5) <= cells + 1e-12)[numeric & uniform])


def test_centre_of_a_logarithmic_range_and_of_choices():
    for shift, kind in ((0.1, "a"), (0.5, "b"), (0.9, "c")):
        params = MIXED.from_unit(centre(MIXED, np.full(7, shift)))
        assert params["kind"] == kind
        assert params["x"] == pytest.approx(1.0)
        assert params["rate"] == pytest.approx(10**-2.5)
        assert ("n" in params) == (kind != "b")
        # Cells of integers reach from 0.5 to 100.5 on the scale of logarithms.
        assert params.get("n", 7) == 7


def test_spread_stratifies():
    shift = np.random.default_rng(1).random(6)
    rows = quasi_random_rows(CUBE, 0, 64, shift)
    # Each coordinate falls once into each of 64 equal intervals.
    cells = np.rint(((rows - shift) % 1.0) * 64).astype(int) % 64
    assert (np.sort(cells, axis=0) == np.arange(64)[:, None]).all()


def test_spread_shares_out_choices():
    rows = quasi_random_rows(MIXED, 0, 300, np.random.default_rng(2).random(7))
    counts = np.bincount(rows[:, 2].astype(int), minlength=3)
    assert np.abs(counts - 100).max() <= 5


@spaces
def test_perturb_gives_valid_rows(space):
    rng = np.random.default_rng(0)
    rows = space.sample(4, rng)
    before = rows.copy()
    neighbours = perturb(space, rows, 300, rng)
    assert neighbours.shape == (300, space.n_dimensions)
    check_rows(space, neighbours)
    assert np.array_equal(rows, before, equal_nan=True)
    assert perturb(space, rows, 0, rng).shape == (0, space.n_dimensions)


def test_perturb_starts_from_rows_of_other_ranges_and_with_gaps():
    rng = np.random.default_rng(1)
    rows = np.array([[1.7, -0.4, 2.0, 0.5, np.nan, np.nan, 0.5], [np.nan] * 7])
    check_rows(MIXED, perturb(MIXED, rows, 300, rng))


def test_perturb_starts_from_the_nearest_point_of_the_space():
    space = SearchSpace({"x": Float(0.0, 1.0)})
    for outside, nearest in ((1.7, 1.0), (-0.6, 0.0)):
        near = perturb(space, np.array([[outside]]), 500, np.random.default_rng(6))
        assert np.median(np.abs(near - nearest)) < 0.1


def test_perturb_moves_at_many_scales():
    rng = np.random.default_rng(2)
    start = np.full((1, 6), 0.5)
    steps = np.abs(perturb(CUBE, start, 4000, rng) - start)
    changed = steps > 0.0
    assert changed.any(axis=1).all()
    # Some change a single coordinate, some all of them.
    n_changed = changed.sum(axis=1)
    assert (n_changed == 1).mean() > 0.1
    assert (n_changed == 6).mean() > 0.1
    largest = steps.max(axis=1)
    for low, high in [(0.0, 0.005), (0.005, 0.05), (0.05, 0.5)]:
        assert ((largest > low) & (largest <= high)).mean() > 0.1
    # Upwards as often as downwards, in every coordinate.
    ups = perturb(CUBE, start, 4000, rng)
    for j in range(6):
        moved = ups[ups[:, j] != 0.5, j] - 0.5
        # At 1e-4: binomial with thousands of draws.
        assert abs((moved > 0.0).mean() - 0.5) < 4.0 * 0.5 / np.sqrt(len(moved))


def test_perturb_reaches_the_next_cell_of_a_grid():
    space = SearchSpace({"n": Int(0, 1000)})
    start = space.to_unit({"n": 500})[None]
    found = {space.from_unit(r)["n"] for r in perturb(space, start, 500, np.random.default_rng(3))}
    assert 500 not in found
    assert {499, 501} <= found


def test_perturb_draws_choices_evenly():
    space = SearchSpace({"c": Categorical(tuple(range(7)))})
    drawn = perturb(space, np.array([[2.0]]), 7000, np.random.default_rng(4))[:, 0]
    assert np.abs(np.bincount(drawn.astype(int), minlength=7) - 1000).max() < 150


def test_perturb_fills_what_a_choice_activates():
    """From choice b, which has no `n`, to a and c: their `n` is drawn from its whole range."""
    start = MIXED.to_unit({"x": 0.0, "rate": 0.1, "kind": "b", "one": 2.0})[None]
    drawn = perturb(MIXED, start, 3000, np.random.default_rng(5))[:, 3]
    drawn = drawn[~np.isnan(drawn)]
    assert len(drawn) > 300
    assert kstest(drawn, "uniform").statistic < 0.15


def peak(centre):
    return lambda rows: -np.sum((rows - centre) ** 2, axis=1)


def known(rows):
    taken = {row.tobytes() for row in rows}
    return lambda row: row.tobytes() in taken


def nothing_known(row):
    return False


def test_finds_a_maximum_in_six_dimensions():
    centre = np.array([0.1, 0.9, 0.33, 0.5, 0.77, 0.02])
    score = peak(centre)
    found, drawn = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        row = maximize(score, CandidateSearch(CUBE, rng.random((5, 6)), nothing_known, rng, 3000))
        assert np.abs(row - centre).max() < 0.2
        found.append(score(row[None])[0])
        drawn.append(score(rng.random((30_000, 6))).max())
    # Better than ten times as many uniform points.
    assert np.median(found) > 0.8 * np.median(drawn)


def test_polishes_the_incumbents():
    """A needle next to the best trial is found, which no spread-out points would meet."""
    centre = np.full(6, 0.4)
    best = centre + 0.02
    for seed in range(5):
        rng = np.random.default_rng(seed)
        row = maximize(peak(centre), CandidateSearch(CUBE, best[None], nothing_known, rng, 600))
        assert peak(centre)(row[None]) > 0.5 * peak(centre)(best[None])


@pytest.mark.parametrize("n_candidates", [1, 2, 3, 50, 601])
@spaces
def test_result_is_a_valid_row_of_the_best_score(space, n_candidates):
    rng = np.random.default_rng(0)
    weights = rng.normal(size=space.n_dimensions)
    seen = []

    def score(rows):
        scores = np.nan_to_num(rows, nan=0.3) @ weights
        seen.append((rows.copy(), scores))
        return scores

    row = maximize(
        score, CandidateSearch(space, space.sample(3, rng), nothing_known, rng, n_candidates)
    )
    check_rows(space, row[None])
    rows = np.concatenate([rows for rows, _ in seen])
    scores = np.concatenate([scores for _, scores in seen])
    assert np.array_equal(row, rows[scores.argmax()], equal_nan=True)
    if not np.isfinite(space.cardinality):
        # What it scores is what it was allowed to, give or take the rounding of the shares.
        assert len(rows) <= n_candidates + 3


def test_small_spaces_are_searched_exhaustively():
    rows = FINITE.enumerate_rows()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table = {row.tobytes(): rng.normal() for row in rows}

        def score(some, table=table):
            return np.array([table[row.tobytes()] for row in some])

        order = rows[np.argsort(-score(rows))]
        # One candidate is enough: the number does not matter here.
        found = maximize(score, CandidateSearch(FINITE, rows[:1], nothing_known, rng, 1))
        assert np.array_equal(found, order[0], equal_nan=True)
        found = maximize(score, CandidateSearch(FINITE, rows[:1], known(order[:50]), rng, 1))
        assert np.array_equal(found, order[50], equal_nan=True)
        found = maximize(score, CandidateSearch(FINITE, rows[:1], known(rows), rng, 1))
        assert np.array_equal(found, order[0], equal_nan=True)


def test_avoids_known_rows_of_a_large_space():
    space = SearchSpace({"n": Int(0, 9), "m": Int(0, 9), "k": Int(0, 99)})
    centre = space.to_unit({"n": 4, "m": 4, "k": 50})
    rng = np.random.default_rng(0)
    first = maximize(peak(centre), CandidateSearch(space, centre[None], nothing_known, rng, 600))
    assert np.array_equal(first, centre)
    second = maximize(
        peak(centre), CandidateSearch(space, centre[None], known(centre[None]), rng, 600)
    )
    assert not np.array_equal(second, centre)
    assert np.abs(second - centre).max() < 0.12


def test_infinite_scores():
    rng = np.random.default_rng(0)
    row = maximize(
        lambda rows: np.where(rows[:, 0] > 0.5, np.inf, -np.inf),
        CandidateSearch(CUBE, rng.random((2, 6)), nothing_known, rng, 60),
    )
    assert row[0] > 0.5


@settings(max_examples=100)
@given(st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.0, 2.0, np.inf, np.nan]), min_size=1))
def test_the_chosen_rows_are_those_of_a_stable_sort(scores):
    """Also with ties, infinities and NaN; starts are those far from all better ones."""
    scores = np.array(scores)
    rows = 0.3 * np.random.default_rng(len(scores)).random((len(scores), 2))
    rows[::7, 1] = np.nan
    order = np.argsort(-scores, kind="stable")
    chosen = np.empty(min(4, len(scores)), dtype=np.int64)
    candidates._choose_best(scores, chosen)
    assert chosen.tolist() == order[:4].tolist()
    expected = []
    for i in order:
        gaps = np.where(np.isnan(rows[i]) & np.isnan(rows[expected]), 0.0, rows[i] - rows[expected])
        if len(expected) < 5 and not (np.abs(gaps) <= 0.05).all(axis=1).any():
            expected.append(i)
    starts = np.empty(5, dtype=np.int64)
    n_starts = candidates._choose_distinct(rows, scores, starts)
    assert starts[:n_starts].tolist() == expected


@spaces
def test_same_generator_same_row(space):
    rows = [
        maximize(
            lambda rows: np.nan_to_num(rows[:, 0], nan=0.0),
            CandidateSearch(
                space,
                space.sample(3, np.random.default_rng(1)),
                nothing_known,
                np.random.default_rng(2),
                100,
            ),
        )
        for _ in range(2)
    ]
    assert rows[0].tobytes() == rows[1].tobytes()


def test_shares_of_the_candidates_are_scored():
    rng, scored = np.random.default_rng(0), []

    def score(rows):
        scored.append(len(rows))
        return rows[:, 0]

    wanted = CandidateSearch(CUBE, rng.random((2, 6)), nothing_known, rng, 600)
    maximize(score, wanted)
    maximize(score, wanted._replace(near_share=0.5))
    maximize(score, wanted._replace(near_share=0.25, far_share=0.25))
    assert scored == [400, 100, 100, 300, 50, 50, 100, 25, 25]


@pytest.mark.parametrize(
    ("n_trials", "shares"), [(200, (1.0, 1.0)), (201, (0.25, 1.0)), (2001, (0.25, 0.25))]
)
def test_fewer_candidates_with_many_trials(monkeypatch, n_trials, shares):
    found = []

    def find(score, wanted, improve=None):
        found.append((wanted.near_share, wanted.far_share))
        return wanted.starts[0]

    monkeypatch.setattr(search, "maximize", find)
    optimizer = MondrianOptimizer(SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}), seed=0)
    rows = np.random.default_rng(0).random((n_trials, 2))
    optimizer.tell(
        [{"x": x, "y": y} for x, y in rows.tolist()], [x * x + y for x, y in rows.tolist()]
    )
    optimizer.ask()
    assert found == [shares]
