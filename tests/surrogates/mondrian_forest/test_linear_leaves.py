"""Linear leaves: hyper-parameters, streams and extrapolation of the estimator."""

import numpy as np
import pytest
from trees.dense_affine import DenseAffineTree
from trees.oracles import assert_same_bits, grow, snapshot

from mondrian_bo.surrogates import MondrianForestRegressor
from mondrian_bo.surrogates.mondrian_forest.linear_forest import LinearForest, LinearHyperparameters
from mondrian_bo.surrogates.mondrian_forest.linear_model import learn_linear
from mondrian_bo.surrogates.shared.parallel import trees_of
from mondrian_bo.trees.affine_leave_one_out import (
    AffineTargets,
    affine_leave_one_out,
    sort_by_leaf,
)
from mondrian_bo.trees.affine_messages import centres_of_rows, n_columns
from mondrian_bo.trees.leave_one_out import restrict_forest

MEAN_PRIOR, GAMMA_1 = 0.3, 1.7
PARAMETERS = LinearHyperparameters(gamma_2=0.4, noise=0.03, slope=1.2)


def make_grown(seed=0, n=25, **settings):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2))
    points[-3:] = points[:3]
    targets = np.cos(4.0 * points[:, 0]) + points[:, 1] + rng.normal(scale=0.2, size=n)
    options = {"kind": LinearForest, "hyperparameters": PARAMETERS, "n_trees": 3}
    return grow(points, targets, seed=seed, **options, **settings)


def left_out(forest, t):
    """Return means and variances in units of gamma_1 of each target given all others."""
    arrays = trees_of(forest.arrays, slice(t, t + 1))
    kept = np.arange(forest.n_points)
    targets = forest.targets - MEAN_PRIOR
    trees = restrict_forest(arrays, kept, targets)
    rows = forest.node_stats.messages[t, trees.node]
    data = AffineTargets(forest.points, targets, centres_of_rows(rows, 2), *sort_by_leaf(trees))
    state, moments = np.empty((2, len(rows), n_columns(2))), np.empty((3, len(kept)))
    settings = forest.message_settings(forest.hyperparameters)
    affine_leave_one_out(trees, data, settings, state, moments)
    return moments[0] + MEAN_PRIOR, moments[1]


@pytest.mark.parametrize(("min_samples_split", "lifetime"), [(2, np.inf), (6, np.inf), (6, 0.8)])
@pytest.mark.parametrize("first", [0, 25])
def test_targets_given_all_others(first, min_samples_split, lifetime):
    forest = make_grown(first=first, min_samples_split=min_samples_split, lifetime=lifetime)
    for t in range(3):
        dense = DenseAffineTree(forest, t, mean_prior=MEAN_PRIOR, gamma_1=GAMMA_1)
        # Of a normal distribution: the precision matrix says what each has given the others.
        precision = np.linalg.inv(dense.target_covariance)
        spread = 1.0 / np.diag(precision)
        expected = forest.targets - spread * (precision @ (forest.targets - MEAN_PRIOR))
        means, variances = left_out(forest, t)
        assert np.allclose(means, expected, atol=1e-8)
        assert np.allclose(GAMMA_1 * variances, spread, atol=1e-8)


def test_learnt_hyperparameters_are_better_than_the_heuristic():
    forest = make_grown(1, n=60)
    heuristic = LinearHyperparameters(2.0 / (20.0 * np.log2(60)), 1.0 / 120.0, 1.0)
    learnt = learn_linear(forest, MEAN_PRIOR, forest.targets.var(), heuristic, heuristic)
    assert forest.hyperparameters == learnt.hyperparameters

    # The density of the moments over trees, at the maximum and around it.
    def density(hyperparameters, gamma_1):
        forest.set_hyperparameters(hyperparameters)
        parts = [left_out(forest, t) for t in range(3)]
        means = np.array([part[0] for part in parts])
        total = gamma_1 * np.mean([part[1] for part in parts], axis=0) + means.var(axis=0)
        errors = forest.targets - means.mean(axis=0)
        return -0.5 * np.sum(np.log(2.0 * np.pi * total) + errors**2 / total)

    found = density(learnt.hyperparameters, learnt.gamma_1)
    assert found == pytest.approx(learnt.log_density)
    assert found > density(heuristic, learnt.gamma_1)
    for factor in (0.5, 2.0):
        assert found > density(learnt.hyperparameters, factor * learnt.gamma_1)


def make_data(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, X @ [1.0, -2.0, 0.5] + np.abs(X[:, 0] - 0.5) + 0.05 * rng.normal(size=n)


@pytest.mark.parametrize("bounds", [None, [[0.0, 1.0]] * 3])
def test_streams_do_not_depend_on_their_division(bounds):
    X, y = make_data(150)
    options = {"leaf": "linear", "n_estimators": 2, "random_state": 0, "bounds": bounds}
    one = MondrianForestRegressor(**options).fit(X[:20], y[:20])
    two = MondrianForestRegressor(**options).fit(X[:20], y[:20])
    one.partial_fit(X[20:], y[20:])
    for i in range(20, 150, 13):
        two.partial_fit(X[i : i + 13], y[i : i + 13])
    assert_same_bits(snapshot(one.model_.forest), snapshot(two.model_.forest))
    assert np.array_equal(one.predict(X), two.predict(X))


@pytest.mark.parametrize("bounds", [None, [[0.0, 1.0]] * 3])
@pytest.mark.parametrize("outlier", [1e6, 1e20, -8e307])
def test_a_point_far_from_all_others(bounds, outlier):
    X, y = make_data()
    X[130, :2] = outlier
    new = np.concatenate([X[:140], [[-1e250] * 3]])
    results = []
    for ends in ([100], [100, 130], [100, 130, 131], [100, *range(110, 135)]):
        forest = MondrianForestRegressor(4, leaf="linear", bounds=bounds, random_state=0)
        for start, end in zip([0, *ends], [*ends, 140], strict=True):
            forest.partial_fit(X[start:end], y[start:end])
        results.append(np.stack(forest.predict(new, return_std=True)))
        assert np.all(np.isfinite(results[-1]))
        assert np.array_equal(results[-1], results[0])
        assert np.all(np.isfinite(forest.sample_y(new)))
    others = np.delete(np.arange(140), 130)
    assert np.sqrt(np.mean((results[0][0, others] - y[others]) ** 2)) < 0.5 * y[others].std()


def test_a_kink_and_its_continuation():
    X, y = make_data()
    test, expected = make_data(seed=1)
    errors = {}
    for leaf in ("constant", "linear"):
        forest = MondrianForestRegressor(leaf=leaf, random_state=0).fit(X, y)
        errors[leaf] = np.sqrt(np.mean((forest.predict(test) - expected) ** 2))
    assert errors["linear"] < 0.6 * errors["constant"]
    forest = MondrianForestRegressor(leaf="linear", random_state=0).fit(X[:, 1:2], 3.0 * X[:, 1])
    mean, std = forest.predict([[3.0], [-4.0], [0.5]], return_std=True)
    assert np.allclose(mean, [9.0, -12.0, 1.5], rtol=0.1)
    assert std[1] > std[0] > std[2]


def test_what_linear_leaves_do_not_have():
    X, y = make_data(20)
    for options in ({"posterior": "empirical"}, {"branch_off": "bridge"}):
        forest = MondrianForestRegressor(leaf="linear", **options)
        with pytest.raises(ValueError, match="leaf='linear' needs posterior='exact'"):
            forest.fit(X, y)
