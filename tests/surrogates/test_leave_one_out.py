"""Labels given all others, and hyper-parameters learnt from them."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.utils.estimator_checks import parametrize_with_checks
from trees.dense import DenseTree
from trees.oracles import grow

from mondrian_bo.surrogates import MondrianForestRegressor
from mondrian_bo.surrogates.leave_one_out import learn_hyperparameters
from mondrian_bo.trees.gaussian import Hyperparameters
from mondrian_bo.trees.leave_one_out import leave_one_out

MEAN_PRIOR, GAMMA_1 = 0.3, 1.7


def make_grown(seed=0, n=25, **settings):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2))
    points[-3:] = points[:3]
    targets = np.cos(4.0 * points[:, 0]) + rng.normal(scale=0.2, size=n)
    return grow(points, targets, seed=seed, n_trees=3, **settings)


def left_out(forest):
    means = np.empty((forest.n_trees, forest.n_points))
    variances = np.empty_like(means)
    noise = forest.hyperparameters.noise
    settings = (forest.trees, forest.values, forest.targets, MEAN_PRIOR, noise)
    leave_one_out(*settings, means, variances)
    return means, variances


@pytest.mark.parametrize(("min_samples_split", "lifetime"), [(2, np.inf), (6, np.inf), (6, 0.8)])
@pytest.mark.parametrize("first", [0, 25])
def test_labels_given_all_others(first, min_samples_split, lifetime):
    forest = make_grown(first=first, min_samples_split=min_samples_split, lifetime=lifetime)
    means, variances = left_out(forest)
    for t in range(3):
        law = DenseTree(forest, t, mean_prior=MEAN_PRIOR, gamma_1=GAMMA_1)
        # Of a normal law: the precision matrix says what each has given the others.
        precision = np.linalg.inv(law.label_covariance)
        spread = 1.0 / np.diag(precision)
        centred = law.targets - MEAN_PRIOR
        assert np.allclose(means[t], law.targets - spread * (precision @ centred), atol=1e-9)
        assert np.allclose(GAMMA_1 * variances[t], spread, atol=1e-9)


def density(forest, hyperparameters, gamma_1):
    forest.set_hyperparameters(hyperparameters)
    means, variances = left_out(forest)
    std = np.sqrt(gamma_1 * variances.mean(axis=0) + means.var(axis=0))
    return norm.logpdf(forest.targets, means.mean(axis=0), std).sum()


@pytest.mark.parametrize("seed", range(3))
def test_the_maximum_is_a_maximum(seed):
    forest = make_grown(seed, n=60)
    heuristic = Hyperparameters(2.0 / (20.0 * np.log2(60)), 1.0 / 120.0)
    variance = forest.targets.var()
    learnt = learn_hyperparameters(forest, MEAN_PRIOR, variance, heuristic, heuristic)
    assert forest.hyperparameters == learnt.hyperparameters
    found = density(forest, learnt.hyperparameters, learnt.gamma_1)
    assert found == pytest.approx(learnt.log_density)
    gamma_2, noise = learnt.hyperparameters
    for factor in (0.3, 0.7, 1.4, 3.0):
        for other in (
            (Hyperparameters(factor * gamma_2, noise), learnt.gamma_1),
            (Hyperparameters(gamma_2, min(factor * noise, 2.0)), learnt.gamma_1),
            (learnt.hyperparameters, factor * learnt.gamma_1),
        ):
            assert density(forest, *other) < found + 0.05
    assert density(forest, heuristic, 2.0 * variance) < found - 1.0


def make_data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, np.sin(5.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


def make_forest(**options):
    return MondrianForestRegressor(hyperparameters="leave_one_out", random_state=0, **options)


@parametrize_with_checks([make_forest(n_estimators=2, branch_off="bridge")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_better_densities_than_the_heuristic():
    (X, y), (probes, labels) = make_data(300), make_data(1000, seed=1)
    densities, covered = [], []
    for learning in ("paper", "leave_one_out"):
        forest = MondrianForestRegressor(
            branch_off="bridge", hyperparameters=learning, random_state=0
        ).fit(X, y)
        mean, std = forest.predict(probes, return_std=True)
        densities.append(norm.logpdf(labels, mean, std).mean())
        covered.append(np.mean(np.abs(labels - mean) < 1.645 * std))
    assert densities[1] > densities[0] + 0.1
    assert abs(covered[1] - 0.9) < abs(covered[0] - 0.9)


def test_the_division_of_a_stream_does_not_matter():
    X, y = make_data(100)
    whole = make_forest().fit(X[:5], y[:5]).partial_fit(X[5:], y[5:])
    parts = make_forest().fit(X[:5], y[:5])
    for start, end in ((5, 9), (9, 40), (40, 41), (41, 100)):
        parts.partial_fit(X[start:end], y[start:end])
    one, two = (forest.predict(X + 0.01, return_std=True) for forest in (whole, parts))
    assert np.array_equal(one, two)


def test_repeated_inputs_and_large_labels():
    X, y = make_data(40)
    same = np.repeat(X[:1], 40, axis=0)
    mean, std = (
        make_forest()
        .fit(same[:20], y[:20])
        .partial_fit(same[20:], y[20:])
        .predict(X[:1], return_std=True)
    )
    assert abs(mean[0] - y.mean()) < y.std() and 0.0 < std[0] < 3.0 * y.std()
    forest = make_forest().fit(np.repeat(X[:10], 4, axis=0), y)
    assert np.all(np.isfinite(forest.predict(X, return_std=True)))
    with pytest.raises(ValueError, match="squares overflow"):
        forest.partial_fit(X[:1], [1e160])


def test_constant_labels_and_scales():
    X, y = make_data(40)
    mean, std = make_forest().fit(X, np.full(40, 3.0)).predict(X, return_std=True)
    assert np.allclose(mean, 3.0) and np.all(std < 1e-6)
    mean, std = make_forest().fit(X, y).predict(X + 0.1, return_std=True)
    own_mean, own_std = make_forest().fit(X, 2.0**20 * y).predict(X + 0.1, return_std=True)
    assert np.allclose(own_mean, 2.0**20 * mean) and np.allclose(own_std, 2.0**20 * std)
