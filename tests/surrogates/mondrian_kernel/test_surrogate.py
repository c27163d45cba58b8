"""The Mondrian kernel as the model of a search."""

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

from mondrian_bo import Categorical, Float, MondrianOptimizer, SearchSpace
from mondrian_bo.surrogates import MondrianKernelRegressor
from mondrian_bo.surrogates.base import Columns
from mondrian_bo.surrogates.mondrian_kernel.hyperparameters import choose_hyperparameters
from mondrian_bo.surrogates.mondrian_kernel.surrogate import AdaptiveKernelModel, KernelSurrogate
from mondrian_bo.surrogates.shared.ensemble import Ensemble


def make_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.random((n, 2))
    return rows, np.sin(5.0 * rows[:, 0]) + rows[:, 1]


def surrogate_of(n, n_estimators=30):
    rows, values = make_rows(n)
    surrogate = KernelSurrogate(
        Columns(np.zeros(2, dtype=np.int64), False),
        np.random.SeedSequence(0),
        n_estimators=n_estimators,
    )
    surrogate.learn(rows, values)
    return surrogate, rows, values


def test_predicts_one_gaussian_that_knows_the_data():
    surrogate, rows, values = surrogate_of(60)
    means, stds = surrogate.predict(rows)
    assert means.shape == stds.shape == (1, 60)
    assert np.corrcoef(means[0], values)[0, 1] > 0.98
    new, truth = make_rows(200, seed=1)
    means, stds = surrogate.predict(new)
    scores = (means[0] - truth) / stds[0]
    assert np.mean((means[0] - truth) ** 2) < 0.2 * np.var(truth)
    assert 0.2 < np.sqrt(np.mean(scores**2)) < 1.5


def test_hyperparameters_have_the_largest_evidence():
    rows, values = make_rows(40)
    model = MondrianKernelRegressor(20, 8.0, normalize_y=False, random_state=0).fit(rows, values)
    partitions = model.model_.partitions
    lifetimes, ridges = np.array([0.5, 2.0, 8.0]), np.array([1e-3, 1e-1])
    chosen = choose_hyperparameters(partitions, lifetimes, ridges)
    centred = values - values.mean()

    def evidence(lifetime, ridge, variance):
        partitions.assign_cells(lifetime)
        cells = partitions.cells
        kernel = (cells[:, None] == cells[None]).mean(axis=2)
        covariance = variance * (kernel + ridge * np.eye(40))
        quadratic = centred @ cho_solve(cho_factor(covariance), centred)
        return -0.5 * (np.linalg.slogdet(covariance)[1] + quadratic)

    best = evidence(*chosen)
    for lifetime in lifetimes:
        for ridge in ridges:
            for factor in (0.5, 0.99, 1.0, 1.01, 2.0):
                other = evidence(lifetime, ridge, factor * chosen.prior_variance)
                assert other <= best + 1e-9


def test_learning_in_parts_extends_the_same_partitions():
    rows, values = make_rows(61)
    surrogate, _, _ = surrogate_of(60)
    surrogate.learn(rows[60:], values[60:])
    model = surrogate._model._model
    assert model.partitions.n_points == 61
    before = surrogate.predict(rows)
    model.refit()
    for one, two in zip(before, surrogate.predict(rows), strict=True):
        assert np.allclose(one, two, atol=1e-6)


def test_new_values():
    surrogate, rows, values = surrogate_of(50)
    surrogate.set_targets(-2.0 * values + 1.0)
    means, _ = surrogate.predict(rows)
    assert np.corrcoef(means[0], -values)[0, 1] > 0.98


def test_extended_is_undone():
    surrogate, rows, _ = surrogate_of(40)
    new = make_rows(3, seed=2)[0]
    before = surrogate.predict(rows)
    spread = surrogate.predict(new)[1]
    with surrogate.extended(new, np.array([5.0, 5.0, 5.0])):
        means, stds = surrogate.predict(new)
        assert np.all(means > 2.0)
        assert np.all(stds < spread)
    for one, two in zip(before, surrogate.predict(rows), strict=True):
        assert np.array_equal(one, two)


def test_draws_have_the_posterior_moments():
    surrogate, rows, _ = surrogate_of(15, n_estimators=10)
    where = np.concatenate([rows[:3], make_rows(3, seed=3)[0], [[3.0, -2.0]]])
    rng = np.random.default_rng(0)
    functions = [surrogate.draw(rng) for _ in range(1500)]
    assert np.array_equal(functions[0](where), functions[0](where))
    draws = np.array([function(where) for function in functions])
    means, stds = surrogate.predict(where)
    assert np.all(np.abs(draws.mean(axis=0) - means[0]) < 5.0 * stds[0] / np.sqrt(1500) + 1e-9)
    assert np.allclose(draws.std(axis=0), stds[0], rtol=0.1)


@pytest.mark.parametrize("values", [np.zeros(8), np.full(8, 3.0)])
def test_constant_values(values):
    surrogate = KernelSurrogate(
        Columns(np.zeros(2, dtype=np.int64), False), np.random.SeedSequence(0)
    )
    rows = make_rows(8)[0]
    surrogate.learn(rows, values)
    means, stds = surrogate.predict(rows)
    assert np.allclose(means, values[0])
    assert np.all(np.isfinite(stds))


def test_asking_before_learning():
    model = AdaptiveKernelModel(Ensemble(2, 1, np.random.SeedSequence(0)))
    with pytest.raises(ValueError, match="nothing has been learnt"):
        model.predict(np.zeros((1, 1, 1)))


def test_optimizer_finds_the_optimum():
    space = SearchSpace(
        {"x": Float(-1.0, 2.0), "y": Float(0.0, 1.0), "kind": Categorical(("a", "b"))}
    )
    best = []
    for seed in range(3):
        optimizer = MondrianOptimizer(space, surrogate="kernel", seed=seed)
        for _ in range(40):
            params = optimizer.ask()
            value = (params["x"] - 1.0) ** 2 + (params["y"] - 0.3) ** 2
            optimizer.tell(params, value + (params["kind"] == "b"))
        best.append(optimizer.best[1])
    # The best of 40 random trials is about 0.03.
    assert np.median(best) < 0.005
