"""Moved lifetimes equal grids made and solved from scratch."""

import numpy as np
import pytest
from kernel_refits import indicators, log_evidence, rms

from mondrian_bo.surrogates import MondrianGridRegressor
from mondrian_bo.surrogates.mondrian_grid.cells import EMPTY, GridCells

NOISE, PRIOR = 0.02, 1.3


def make_data(n=30, n_val=20, n_features=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n + n_val, n_features))
    X[:, 0] = X[:, 0].round(1)
    y = np.sin(6.0 * X[:, 0]) + X[:, -1] ** 2 + 0.1 * rng.normal(size=len(X))
    return X[:n], y[:n], X[n:], y[n:]


def grid_model(seed=0, n_estimators=3, noise=NOISE, **options):
    data = make_data(seed=seed, **options)
    regressor = MondrianGridRegressor(
        n_estimators,
        noise_variance=noise,
        prior_variance=PRIOR,
        normalize_y=False,
        random_state=seed,
    )
    return regressor.grid_model(*data), data


def plain_cells(cells, points):
    """Cells from the definition: which cuts lie below each coordinate."""
    found = np.empty((len(points), cells.n_grids), dtype=int)
    n_cells = 0
    for m in range(cells.n_grids):
        codes = []
        for d, known in enumerate(cells.coordinates):
            is_cut = cells.times[d][m] <= cells.lifetimes[d]
            ranks = np.searchsorted(known, points[:, d])
            codes.append(np.append(0, np.cumsum(is_cut))[ranks])
        _, own = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
        found[:, m] = n_cells + own
        n_cells += own.max() + 1
    return found, n_cells


def assert_equals_scratch(model, data, noise=NOISE, tolerance=1e-8):
    X, y, X_val, y_val = data
    n = len(y)
    points = np.concatenate([X, X_val])
    cells, n_cells = plain_cells(model.cells, points)
    # The same points are together; without training points, cells have no number of their own.
    for own, plain in zip(model.cells.numbers.T, cells.T, strict=True):
        trained = np.isin(plain, plain[:n])
        assert np.array_equal(own == EMPTY, ~trained)
        pairs = np.unique(np.stack([own[trained], plain[trained]]), axis=1)
        assert pairs.shape[1] == len(np.unique(pairs[0])) == len(np.unique(pairs[1]))
    assert model.cells.n_cells == sum(len(np.unique(column[:n])) for column in cells.T)
    features = indicators(cells, n_cells)
    train = features[:n]
    weights = np.linalg.solve(train.T @ train + noise / PRIOR * np.eye(n_cells), train.T @ y)
    predicted = features @ weights
    assert abs(model.training_error() - rms(predicted[:n] - y)) < tolerance
    assert abs(model.validation_error() - rms(predicted[n:] - y_val)) < tolerance
    evidence = log_evidence(y, PRIOR * train @ train.T + noise * np.eye(n))
    assert abs(model.log_marginal_likelihood() - evidence) < tolerance * abs(evidence)
    own_weights = model.fit().weights[model.cells.numbers]
    assert np.abs(own_weights - weights[cells] * (model.cells.numbers != EMPTY)).max() < tolerance


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [NOISE, 1e-4])
@pytest.mark.parametrize("always_updates", [True, False])
def test_random_walks(seed, noise, always_updates, monkeypatch):
    if always_updates:
        monkeypatch.setattr("mondrian_bo.surrogates.mondrian_grid.model._MANY", np.inf)
    model, data = grid_model(seed, noise=noise, n_features=3 if seed % 2 else 2)
    rng = np.random.default_rng(seed)
    assert_equals_scratch(model, data, noise)
    sizes = []
    for _ in range(25):
        dimension = int(rng.integers(len(model.lifetimes)))
        model.set_lifetime(dimension, float(rng.choice([0.0, 1.0, 4.0, 15.0]) * rng.random()))
        sizes.append(model.cells.n_cells)
        assert_equals_scratch(model, data, noise)
    # The walk has been in both forms of the equations.
    assert min(sizes) < 20
    assert max(sizes) > 30


def test_cut_by_cut():
    model, data = grid_model(5)
    for dimension in (0, 1, 0, 0, 1):
        lifetime = model.cells.cut_time(dimension, 1)
        model.set_lifetime(dimension, lifetime)
        assert_equals_scratch(model, data)
    while (lifetime := model.cells.cut_time(0, -1)) is not None:
        model.set_lifetime(0, lifetime)
        assert_equals_scratch(model, data)
    assert model.lifetimes[0] == 0.0
    assert model.cells.cut_time(0, -1) is None
    assert model.cells.cut_time(0, 10**6) is None


def test_all_lifetimes_at_once():
    model, data = grid_model(6)
    model.set_lifetimes(np.array([5.0, 2.0]))
    assert np.array_equal(model.lifetimes, [5.0, 2.0])
    assert_equals_scratch(model, data)
    model.set_lifetimes(np.array([1.0, 7.0]))
    assert_equals_scratch(model, data)


def test_many_moves_do_not_wear_the_model_out(monkeypatch):
    monkeypatch.setattr("mondrian_bo.surrogates.mondrian_grid.model._MANY", np.inf)
    model, data = grid_model(7, noise=1e-4)
    rng = np.random.default_rng(0)
    for _ in range(300):
        model.set_lifetime(int(rng.integers(2)), float(3.0 * rng.random()))
    assert_equals_scratch(model, data, 1e-4)


@pytest.mark.parametrize("lifetime", [-1.0, np.nan, np.inf])
def test_wrong_lifetimes(lifetime):
    model, _ = grid_model()
    with pytest.raises(ValueError, match="must be finite and at least 0"):
        model.set_lifetime(0, lifetime)
    with pytest.raises(ValueError, match="must be finite and at least 0"):
        model.set_lifetimes([1.0, lifetime])
    assert np.array_equal(model.lifetimes, [0.0, 0.0])


@pytest.mark.parametrize("lifetimes", [1.0, [1.0], [[1.0, 2.0]], [1.0, 2.0, 3.0]])
def test_wrong_shapes_of_lifetimes(lifetimes):
    model, _ = grid_model()
    with pytest.raises(ValueError, match=r"lifetimes must have shape \(2,\).*got shape \("):
        model.set_lifetimes(lifetimes)
    with pytest.raises(TypeError, match="lifetime must be a number, got"):
        model.set_lifetime(0, [1.0])
    assert np.array_equal(model.lifetimes, [0.0, 0.0])


def test_lifetimes_as_a_list():
    model, data = grid_model(6)
    model.set_lifetimes([1, 2.0])
    assert np.array_equal(model.lifetimes, [1.0, 2.0])
    assert_equals_scratch(model, data)


@pytest.mark.parametrize("lifetimes", [[1.0, 1.0], [4.0, 0.5], [2.0, 0.0]])
def test_expectation_is_the_general_laplace_kernel(lifetimes):
    """Of learnt points among themselves, and with points that were not learnt."""
    n = 4000
    X = np.array([[0.0, 0.0], [0.1, 0.3], [0.5, 0.2], [0.2, 0.9], [0.5, 0.9]])
    new = np.array([[0.3, 0.5], [-0.2, 0.1], [0.45, 1.4], [0.1, 0.25]])
    cells = GridCells(X, len(X), n, np.random.default_rng(0))
    for d, lifetime in enumerate(lifetimes):
        for _ in cells.changes(d, lifetime):
            pass
    together = (cells.numbers[:, None] == cells.numbers[None]).mean(axis=2)
    exact = np.exp(-np.abs(X[:, None] - X[None]) @ lifetimes)
    error = np.sqrt(exact * (1.0 - exact) / n)
    assert np.all(np.abs(together - exact) <= 5.0 * error)
    found, stays = cells.locate(new)
    cross = ((found[:, None] == cells.numbers[None]) * stays[:, None]).mean(axis=2)
    exact = np.exp(-np.abs(new[:, None] - X[None]) @ lifetimes)
    error = np.sqrt(exact * (1.0 - exact) / n)
    assert np.all(np.abs(cross - exact) <= 5.0 * error)


def test_learnt_points_are_found_in_their_cells():
    X = make_data()[0]
    cells = GridCells(X, len(X), 4, np.random.default_rng(0))
    for d in (0, 1):
        for _ in cells.changes(d, 6.0):
            pass
    found, stays = cells.locate(X)
    assert np.array_equal(found, cells.numbers)
    assert np.all(stays == 1.0)
