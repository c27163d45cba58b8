"""Models of constraints: what they know, how correlated ones count, and where a search goes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from mondrian_bo import Categorical, Float, MondrianOptimizer, SearchSpace
from mondrian_bo.optimizer.constraints.constraint_transform import ConstraintTransform
from mondrian_bo.optimizer.constraints.constraints import (
    Constraints,
    JointFeasibility,
    _joint,
    _pair_exponents,
)
from mondrian_bo.optimizer.maximization import local_search
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.models.outcome_models import OutcomeModels
from mondrian_bo.optimizer.search import search

SQUARE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})


def told(constraint_values, n=30, seed=0, **options):
    """An optimizer that knows n random trials; `constraint_values` maps rows to (n, q)."""
    names = [f"c{i}" for i in range(constraint_values(np.zeros((1, 2))).shape[1])]
    optimizer = MondrianOptimizer(SQUARE, constraints=names, seed=seed, **options)
    rows = SQUARE.sample(n, np.random.default_rng(seed))
    optimizer.tell_rows(rows, rows.sum(axis=1), constraint_values(rows))
    return optimizer


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, 0.999])
def test_two_events_at_their_median_have_their_joint_probability(correlation):
    rng = np.random.default_rng(0)
    covariance = np.array([[1.0, correlation], [correlation, 1.0]])
    values = rng.multivariate_normal([0.0, 0.0], covariance, size=20_000)
    # Bilogs of Gaussians have nearly the correlation of the Gaussians.
    total, _ = _joint(np.log([[0.5], [0.5]]), _pair_exponents(values))
    expected = multivariate_normal([0.0, 0.0], covariance, allow_singular=True).cdf([0.0, 0.0])
    assert np.exp(total[0]) == pytest.approx(expected, abs=0.015)


def test_independent_events_multiply_and_negative_correlations_do_not_count():
    logs = np.log(np.array([[0.5, 0.9], [0.2, 0.3], [0.7, 0.8]]))
    total, factors = _joint(logs, np.ones((3, 3)))
    np.testing.assert_allclose(total, logs.sum(axis=0))
    assert (factors == 1.0).all()
    values = np.random.default_rng(0).standard_normal((50, 1))
    assert (_pair_exponents(np.hstack([values, -values])) == 1.0).all()


def test_of_equal_constraints_one_counts():
    def once(rows):
        return np.sin(9.0 * rows[:, :1] + 4.0 * rows[:, 1:])

    one, three = told(once), told(lambda rows: np.repeat(once(rows), 3, axis=1) * [1.0, 10.0, 0.1])
    points = SQUARE.sample(200, np.random.default_rng(1))
    alone, together = one.log_feasibility(points), three.log_feasibility(points)
    near = (alone > -2.0) & (alone < -0.02)
    assert near.sum() > 3
    # Correlations are shrunk a little, so that a part of the copies counts.
    assert np.abs(together - alone)[near].max() < 0.8 * np.abs(2.0 * alone)[near].max()
    assert np.median(together[near] - alone[near]) > 0.5 * np.median(2.0 * alone[near])


def test_probability_at_trials_and_between():
    optimizer = told(lambda rows: rows[:, :1] - 0.4, n=60)
    mean, std, probability = optimizer.predict_constraints(
        [{"x": x, "y": 0.5} for x in (0.1, 0.35, 0.4, 0.45, 0.9)]
    )
    np.testing.assert_allclose(mean[:, 0], [-0.3, -0.05, 0.0, 0.05, 0.5], atol=0.02)
    assert (std < 0.05).all()
    assert probability[0] > 0.99 and probability[-1] < 0.01
    assert 0.1 < probability[2] < 0.9


def test_gradients_of_the_log_probability():
    optimizer = told(lambda rows: np.column_stack([rows[:, 0] - 0.4, rows[:, 1] ** 2 - 0.5]))
    constraints, step = optimizer._constraints.feasibility(), 1e-5
    rows = np.array([[0.5, 0.3], [0.2, 0.8], [0.45, 0.65]])
    logs, slopes = constraints.gradients(rows)
    np.testing.assert_allclose(logs, constraints.log_probability(rows))
    for j in range(2):
        moved = step * np.eye(2)[j]
        up, down = (constraints.log_probability(rows + sign * moved) for sign in (1.0, -1.0))
        np.testing.assert_allclose(slopes[:, j], (up - down) / (2.0 * step), rtol=1e-3, atol=1e-4)


def test_values_may_be_missing_and_constraints_may_appear_later():
    optimizer = told(lambda rows: rows[:, :1] - 0.4)
    rows = SQUARE.sample(20, np.random.default_rng(5))
    values = np.column_stack([np.full(20, np.nan), 0.5 - rows[:, 1]])
    optimizer.tell_rows(rows, rows.sum(axis=1), values)
    points = [{"x": 0.1, "y": 0.9}, {"x": 0.1, "y": 0.1}, {"x": 0.9, "y": 0.9}]
    probability = np.exp(optimizer.log_feasibility(optimizer._encode(points)))
    assert probability[0] > 0.9 and (probability[1:] < 0.1).all()


@pytest.mark.parametrize("n_constraints", [1, 2])
@pytest.mark.parametrize("is_first", [True, False])
def test_unmeasured_trials_are_no_incumbents_where_nan_is_no_failure(n_constraints, is_first):
    """The best trial lacks a constraint; it was told before or after the first measured ones."""
    names = ["c", "d"][:n_constraints]
    rows = SQUARE.sample(12, np.random.default_rng(1))
    best, measured = np.zeros((1, 2)), np.full((12, n_constraints), -0.1)
    unmeasured = np.array([[-0.1, np.nan][-n_constraints:]])
    for nan_is_failure in (True, False):
        optimizer = MondrianOptimizer(SQUARE, constraints=names, seed=0)
        batches = [(rows, measured), (best, unmeasured)]
        for points, constraints in reversed(batches) if is_first else batches:
            optimizer.tell_rows(
                points, points.sum(axis=1), constraints, nan_is_failure=nan_is_failure
            )
        incumbent, _, is_eligible = optimizer._search.trials.best()
        assert is_eligible
        expected = best[0] if nan_is_failure else rows[rows.sum(axis=1).argmin()]
        np.testing.assert_array_equal(incumbent, expected)
        assert np.isfinite(optimizer.predict([{"x": 0.5, "y": 0.5}])[0]).all()


def test_feasibility_is_unknown_while_no_constraint_has_a_value():
    optimizer = MondrianOptimizer(SQUARE, constraints=["c"], seed=0)
    for _ in range(2):
        mean, std, probability = optimizer.predict_constraints([{"x": 0.9, "y": 0.5}] * 2)
        assert np.isnan(mean).all() and np.isnan(std).all() and np.isnan(probability).all()
        optimizer.tell(optimizer.ask(), 1.0)
    optimizer.tell(optimizer.ask(), 1.0, [-1.0])
    assert np.isfinite(optimizer.predict_constraints({"x": 0.9, "y": 0.5})[2]).all()


def test_failed_trials_may_have_constraints():
    optimizer = MondrianOptimizer(SQUARE, constraints=["c"], seed=0)
    for x in np.linspace(0.0, 1.0, 15):
        optimizer.tell({"x": x, "y": 0.5}, np.nan if x > 0.5 else x, [x - 0.25])
    mean, _, _ = optimizer.predict_constraints({"x": 0.9, "y": 0.5})
    assert mean[0, 0] == pytest.approx(0.65, abs=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_first_trials_of_a_model_are_feasible_where_constraints_are_known(seed):
    """The objective fails, so that no trial is learnt; the region is 7 % of the square."""
    optimizer, n_feasible = MondrianOptimizer(SQUARE, constraints=["c"], seed=seed), 0
    rows = SQUARE.sample(40, np.random.default_rng(seed))
    values = ((rows - [0.7, 0.2]) ** 2).sum(axis=1) - 0.15**2
    optimizer.tell_rows(rows, np.full(40, np.nan), values[:, None])
    for _ in range(9):
        params = optimizer.ask()
        value = (params["x"] - 0.7) ** 2 + (params["y"] - 0.2) ** 2 - 0.15**2
        n_feasible += value <= 0.0
        optimizer.tell(params, np.nan, [value])
    assert n_feasible >= 8


def test_first_trials_of_a_model_are_valid_where_constraints_are_known():
    """As above, and the middle of the feasible region is not valid."""
    optimizer = MondrianOptimizer(
        SQUARE, constraints=["c"], seed=0, is_valid=lambda params: params["x"] <= 0.6
    )
    rows = SQUARE.sample(40, np.random.default_rng(0))
    values = ((rows - [0.7, 0.2]) ** 2).sum(axis=1) - 0.15**2
    optimizer.tell_rows(rows, np.full(40, np.nan), values[:, None])
    for _ in range(6):
        params = optimizer.ask()
        assert params["x"] <= 0.6
        optimizer.tell(params, np.nan, [1.0])


@pytest.mark.parametrize("seed", range(3))
def test_finds_a_small_feasible_region(seed):
    """Nothing is feasible at first; the region is 1 % of the square."""

    def violation(params):
        return np.hypot(params["x"] - 0.83, params["y"] - 0.13) - 0.056

    optimizer = MondrianOptimizer(SQUARE, constraints=["c"], seed=seed)
    for _ in range(25):
        params = optimizer.ask()
        optimizer.tell(params, params["x"], {"c": violation(params)})
        if violation(params) <= 0.0:
            break
    assert optimizer.best[0] == params


def test_only_violated_or_not_is_known():
    space = SearchSpace({"x": Float(-1.0, 1.0), "y": Float(-1.0, 1.0)})
    optimizer = MondrianOptimizer(space, constraints=["c"], seed=1)
    inside = []
    for _ in range(40):
        params = optimizer.ask()
        holds = params["x"] ** 2 + params["y"] ** 2 <= 0.5
        inside.append(holds)
        optimizer.tell(params, -params["x"] - params["y"], {"c": float(not holds)})
    # The optimum is on the circle, at -1.
    assert -1.0 <= optimizer.best[1] < -0.9
    assert np.mean(inside[20:]) > 0.1


def test_constraints_over_categories_and_conditions():
    space = SearchSpace({"kind": Categorical(("a", "b", "c")), "x": Float(0.0, 1.0)})
    optimizer = MondrianOptimizer(space, constraints=["c"], seed=0)
    for _ in range(30):
        params = optimizer.ask()
        cost = {"a": 1.0, "b": -0.5, "c": -1.0}[params["kind"]] + 0.1 * params["x"]
        optimizer.tell(params, -params["x"] - (params["kind"] == "a"), [cost])
    params, value = optimizer.best
    assert params["kind"] != "a"
    assert value < -0.98


def test_pending_trials_are_imputed_in_constraints_too(monkeypatch):
    optimizer = told(lambda rows: rows[:, :1] - 0.4)
    imputed, imputing = set(), OutcomeModel.imputing

    def record(self, rows, rng):
        if len(rows):
            imputed.add(id(self))
        return imputing(self, rows, rng)

    monkeypatch.setattr(OutcomeModel, "imputing", record)
    batch = optimizer.ask(6)
    # The models of the objective and of the constraint.
    assert len(imputed) == 2
    assert len({tuple(params.values()) for params in batch}) == 6
    assert np.mean([params["x"] <= 0.45 for params in batch]) > 0.5


@pytest.mark.parametrize(("n_trials", "most"), [(60, 2**62), (205, 40)])
def test_polishing_has_a_limit_where_a_model_has_several_leaves(n_trials, most, monkeypatch):
    minimise, limits = local_search.minimise_in_box, []

    def recorded(*arguments, max_evaluations):
        limits.append(max_evaluations)
        return minimise(*arguments, max_evaluations=max_evaluations)

    monkeypatch.setattr(local_search, "minimise_in_box", recorded)
    optimizer = told(lambda rows: rows[:, :1] - 0.4, n=n_trials)
    for _ in range(8):
        optimizer.ask()
    assert set(limits) == {most}


@pytest.mark.parametrize("n_objectives", [1, 2])
@pytest.mark.parametrize(("bound", "exponent"), [(0.99, 1.0), (0.5, 2.0), (0.0, 1.0)])
def test_feasibility_counts_more_where_many_trials_fail(bound, exponent, n_objectives, monkeypatch):
    """With a bound of 0.99 nearly all trials are feasible, with 0.5 half of them, with 0 none."""
    used, weight = [], search.constrained

    def recorded(*arguments):
        used.append(arguments[-1])
        return weight(*arguments)

    monkeypatch.setattr(search, "constrained", recorded)
    optimizer = MondrianOptimizer(
        SQUARE, directions=["maximize"] * n_objectives, constraints=["c"], seed=0
    )
    rows = SQUARE.sample(30, np.random.default_rng(0))
    values = np.sin(3.0 * rows[:, :n_objectives])
    optimizer.tell_rows(rows, values, values[:, :1] ** 2 - bound**2)
    optimizer.ask()
    # While nothing is feasible only feasibility counts.
    assert used == ([exponent if n_objectives == 1 else 1.0] if bound else [])


def test_exponent_counts_from_the_first_feasible_trial_on():
    class Model:
        def __init__(self, trials, number):
            self.trials = trials

    constraints = Constraints(OutcomeModels(1, Model))
    assert constraints.exponent == 1.0
    row = np.array([[0.5]])
    for value, exponent in ((1.0, 1.0), (1.0, 1.0), (-1.0, 1.0), (0.0, 1.0), (1.0, 2.0)):
        before = constraints.state()
        constraints.tell(row, np.array([[value]]))
        assert constraints.exponent == exponent
    constraints.restore(before)
    assert constraints.exponent == 1.0
    constraints.tell(np.repeat(row, 4, axis=0), np.array([[1.0], [-1.0], [-1.0], [-1.0]]))
    # Five of six, then six of seven.
    assert constraints.exponent == 2.0
    # A trial without a known constraint does not count.
    constraints.tell(row, np.array([[np.nan]]))
    assert constraints.exponent == 2.0
    constraints.tell(row, np.array([[-1.0]]))
    assert constraints.exponent == 1.0


def test_correlations_of_an_undone_call_are_forgotten():
    class Model:
        def __init__(self, trials, number):
            self.trials = trials

        @property
        def transform(self):
            return ConstraintTransform(self.trials.values)

        def forget(self):
            pass

    rng = np.random.default_rng(0)
    rows, values = np.zeros((20, 1)), np.repeat(rng.standard_normal((20, 1)), 2, axis=1)
    plain, constraints = (Constraints(OutcomeModels(1, Model)) for _ in range(2))
    for one in (plain, constraints):
        one.tell(rows, values)
    before = constraints.state()
    constraints.tell(rows, rng.standard_normal((20, 2)))
    constraints.feasibility()
    assert constraints.n_correlated == 40
    constraints.restore(before)
    constraints.forget()
    for one in (plain, constraints):
        one.feasibility()
    assert constraints.n_correlated == 20
    np.testing.assert_array_equal(constraints._exponents, plain._exponents)


def test_a_probability_is_calibrated():
    """Of points with probability p of being feasible, about a share p is feasible."""
    rng, hits, probabilities = np.random.default_rng(0), [], []
    for seed in range(8):
        slope, shift = rng.normal(size=2), rng.normal(scale=0.3)

        def values(rows, slope=slope, shift=shift):
            return np.sin(4.0 * rows @ slope + shift)[:, None]

        optimizer = told(values, n=15, seed=seed)
        points = SQUARE.sample(200, np.random.default_rng(100 + seed))
        probabilities.append(np.exp(optimizer.log_feasibility(points)))
        hits.append(values(points)[:, 0] <= 0.0)
    probability, hit = np.concatenate(probabilities), np.concatenate(hits)
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        chosen = (probability >= low) & (probability < low + 0.2)
        expected, error = probability[chosen].mean(), norm.ppf(0.999) * 0.15
        assert hit[chosen].mean() == pytest.approx(expected, abs=error)


def test_the_split_of_trials_into_calls_does_not_matter():
    rng = np.random.default_rng(1)
    rows = rng.random((40, 2))
    # Every other trial lacks the constraint; of the others most are infeasible.
    values = np.where(np.arange(40) % 2 == 0, rows[:, 0] - 0.3, np.nan)[:, None]
    at_once, one_by_one = (MondrianOptimizer(SQUARE, constraints=["c"], seed=0) for _ in range(2))
    at_once.tell_rows(rows, rows.sum(axis=1), values)
    for i in range(40):
        one_by_one.tell_rows(rows[i : i + 1], rows[i : i + 1].sum(axis=1), values[i : i + 1])
    for optimizer in (at_once, one_by_one):
        assert len(optimizer._constraints.rows) == 20
        assert optimizer._constraints.exponent == 2.0
    assert at_once.ask() == one_by_one.ask()


def test_an_interrupted_suggestion_keeps_the_correlations(monkeypatch):
    def search(interrupted):
        space = SearchSpace({name: Float(0.0, 1.0) for name in "xyz"})
        optimizer = MondrianOptimizer(space, constraints=["c", "d"], seed=0)
        asked = []
        for i in range(32):
            if i in interrupted:
                with monkeypatch.context() as context:
                    context.setattr(JointFeasibility, "log_probability", interrupt)
                    with pytest.raises(KeyboardInterrupt):
                        optimizer.ask()
            asked.append(optimizer.ask())
            x, y, z = asked[-1].values()
            used = np.sin(3.0 * x) + y * y
            first, second = 1.0 - used - 0.1 * z * z, 1.05 - used - 0.2 * np.sin(3.0 * z)
            optimizer.tell(asked[-1], x + y + 0.1 * z, [first, second])
        return asked, optimizer._constraints.n_correlated

    def interrupt(*_):
        raise KeyboardInterrupt

    assert search({25}) == search(())
