"""The estimator's answers: moments, densities, quantiles, draws, leaves, paths, evidence."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import r2_score
from trees.dense import BridgedTree, DenseTree, probes
from trees.oracles import chain, leaf_of, one_tree

from mondrian_bo.surrogates import MondrianForestRegressor
from mondrian_bo.trees.layout import N_NODES, NONE, ROOT
from mondrian_bo.trees.predict import BRIDGE, EMPIRICAL, PAPER, REMAINING

SETTINGS = [
    {},
    {"branch_off": "paper", "hyperparameters": "paper"},
    {"branch_off": "remaining"},
    {"posterior": "empirical", "min_samples_split": 5},
]
LEVELS = (0.001, 0.05, 0.2, 0.5, 0.8, 0.95, 0.999)


def make_data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * [1.0, 20.0]
    X[-2:] = X[:2]
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)


def make_forest(**options):
    X, y = make_data()
    forest = MondrianForestRegressor(**{"n_estimators": 4, "random_state": 0, **options})
    return forest.fit(X[:25], y[:25]).partial_fit(X[25:], y[25:])


def queries(n=10):
    return probes(make_data()[0], n, np.random.default_rng(3))


def reference_mixture(forest, x):
    """Return equation 5 at x over dense posteriors: rows (weight, mean, variance)."""
    model = forest.model_
    if forest.posterior == "empirical":
        rule = EMPIRICAL
    else:
        rule = {"bridge": BRIDGE, "remaining": REMAINING, "paper": PAPER}[forest.branch_off]
    rows = []
    for t in range(forest.n_estimators):
        dense = BridgedTree(model.forest, t, mean_prior=model.mean_prior, gamma_1=model.gamma_1)
        rows.append(dense.components(x, model.rates, rule))
    rows = np.concatenate(rows)
    rows[:, 0] /= forest.n_estimators
    return rows


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("lifetime", [np.inf, 4.0])
def test_equations_3_to_5(options, lifetime):
    forest = make_forest(lifetime=lifetime, **options)
    X = queries(4)
    mean, std = forest.predict(X, return_std=True)
    assert np.array_equal(mean, forest.predict(X))
    targets = mean + np.linspace(-1.0, 1.0, len(X))
    density = forest.logpdf(X, targets)
    for i, x in enumerate(X):
        weight, centre, variance = reference_mixture(forest, x).T
        expected = weight @ centre
        assert mean[i] == pytest.approx(expected, rel=1e-8, abs=1e-9)
        spread = np.sqrt(weight @ (variance + (centre - expected) ** 2))
        assert std[i] == pytest.approx(spread, rel=1e-7, abs=1e-7)
        total = weight @ stats.norm.pdf(targets[i], centre, np.sqrt(variance))
        assert density[i] == pytest.approx(np.log(total), rel=1e-7)


@pytest.mark.parametrize("options", SETTINGS)
def test_quantiles_invert_the_density(options):
    forest = make_forest(**options)
    X = queries()
    found = forest.predict_quantiles(X, LEVELS)
    assert found.shape == (len(X), len(LEVELS))
    assert np.all(np.diff(found, axis=1) >= 0.0)
    assert np.array_equal(forest.predict_quantiles(X, 0.5), found[:, [3]])
    assert np.array_equal(
        forest.predict_quantiles(X), forest.predict_quantiles(X, (0.05, 0.5, 0.95))
    )
    for i, x in enumerate(X):
        rows = reference_mixture(forest, x)
        weight, centre, variance = rows[rows[:, 0] > 1e-9].T
        below = stats.norm.cdf(found[i][:, None], centre, np.sqrt(variance)) @ weight
        assert np.allclose(below, LEVELS, atol=1e-7)
    # The density between two quantiles adds up to the difference of their levels.
    for i in (12, 25):
        grid = np.linspace(found[i, 1], found[i, 5], 4001)
        density = np.exp(forest.logpdf(np.repeat(X[i : i + 1], 4001, axis=0), grid))
        assert np.trapezoid(density, grid) == pytest.approx(0.9, abs=1e-3)


@pytest.mark.parametrize("options", SETTINGS)
def test_many_rows_are_the_rows_one_by_one(options):
    forest = make_forest(**options)
    X = queries()
    mean, std = forest.predict(X, return_std=True)
    targets = np.linspace(-1.0, 1.0, len(X))
    density = forest.logpdf(X, targets)
    quantiles = forest.predict_quantiles(X)
    for i in range(len(X)):
        row = X[i : i + 1]
        one = forest.predict(row, return_std=True)
        # Means over trees may be summed in another order.
        assert one[0][0] == pytest.approx(mean[i], rel=1e-13)
        assert one[1][0] == pytest.approx(std[i], rel=1e-10)
        assert forest.logpdf(row, targets[i : i + 1])[0] == pytest.approx(density[i], rel=1e-12)
        assert forest.predict_quantiles(row)[0] == pytest.approx(quantiles[i], rel=1e-12)


@pytest.mark.parametrize("options", SETTINGS)
def test_draws_of_targets(options):
    forest = make_forest(**options)
    X = queries(3)
    n_draws = 5000
    draws = forest.sample_y(X, n_draws, random_state=1)
    assert draws.shape == (len(X), n_draws)
    mean, std = forest.predict(X, return_std=True)
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 4.5 * std / np.sqrt(n_draws) + 1e-9)
    fourth = ((draws - mean[:, None]) ** 4).mean(axis=1)
    error = np.sqrt((fourth - std**4) / n_draws)
    second = ((draws - mean[:, None]) ** 2).mean(axis=1)
    assert np.all(np.abs(second - std**2) < 4.5 * error + 1e-9)
    # Seeds.
    assert np.array_equal(forest.sample_y(X, 5), forest.sample_y(X, 5, random_state=0))
    assert np.array_equal(forest.sample_y(X, 5), forest.sample_y(X, 9)[:, :5])
    assert not np.array_equal(forest.sample_y(X, 5), forest.sample_y(X, 5, random_state=1))
    assert forest.sample_y(X).shape == (len(X), 1)


def test_draws_are_joint():
    # Targets of one leaf have a common mean: their correlation is what is not noise.
    X = np.array([[0.0], [0.0], [1.0]])
    y = np.array([0.0, 2.0, 5.0])
    forest = MondrianForestRegressor(n_estimators=1, random_state=0).fit(X, y)
    model = forest.model_
    dense = DenseTree(model.forest, 0, mean_prior=model.mean_prior, gamma_1=model.gamma_1)
    draws = forest.sample_y(X, 6000, random_state=4)
    expected = dense.covariance[np.ix_(dense.leaves, dense.leaves)] + dense.noise * np.eye(3)
    spread = np.diag(expected)
    error = np.sqrt((np.outer(spread, spread) + expected**2) / 6000)
    assert np.all(np.abs(np.cov(draws) - expected) < 4.5 * error)


@pytest.mark.parametrize("options", SETTINGS)
def test_leaves_and_paths(options):
    forest = make_forest(**options)
    X = queries()
    leaves = forest.apply(X)
    assert leaves.shape == (len(X), 4)
    indicator, ends = forest.decision_path(X)
    trees = forest.model_.forest.arrays
    assert np.array_equal(np.diff(ends), trees.counters[:, N_NODES])
    assert indicator.shape == (len(X), ends[-1])
    dense = indicator.toarray()
    assert np.all((dense == 0) | (dense == 1))
    for t in range(4):
        tree = one_tree(forest.model_.forest, t)
        for i, x in enumerate(X):
            assert leaves[i, t] == leaf_of(tree, x)
            path = [leaves[i, t]]
            while tree.parent[path[-1]] != NONE:
                path.append(tree.parent[path[-1]])
            assert path[-1] == tree.counters[ROOT]
            assert set(np.flatnonzero(dense[i, ends[t] : ends[t + 1]])) == set(path)
    # A learnt sample is in the chain of the leaf that it is said to be in.
    learnt, _ = make_data()
    for t, column in enumerate(forest.apply(learnt).T):
        tree = one_tree(forest.model_.forest, t)
        for i, leaf in enumerate(column):
            assert i in chain(tree, leaf)


@pytest.mark.parametrize("options", SETTINGS)
def test_evidence(options):
    forest = make_forest(**options)
    model = forest.model_
    each = [
        DenseTree(
            model.forest, t, mean_prior=model.mean_prior, gamma_1=model.gamma_1
        ).log_likelihood()
        for t in range(4)
    ]
    expected = max(each) + np.log(np.mean(np.exp(np.array(each) - max(each))))
    assert forest.log_marginal_likelihood() == pytest.approx(expected, rel=1e-9)


def test_score():
    forest = make_forest()
    X, y = make_data(seed=1)
    assert forest.score(X, y) == pytest.approx(r2_score(y, forest.predict(X)))
    weights = np.arange(40.0)
    expected = r2_score(y, forest.predict(X), sample_weight=weights)
    assert forest.score(X, y, sample_weight=weights) == pytest.approx(expected)
