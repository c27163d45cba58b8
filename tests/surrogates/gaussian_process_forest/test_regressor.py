"""The forest with Gaussian processes in its leaves as a regressor."""

import pickle

import joblib
import numpy as np
import pytest
from example_runs import run_example
from scipy.special import expit
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from mondrian_bo.surrogates import GaussianProcessForestRegressor
from mondrian_bo.surrogates.gaussian_process.fit import REGRESSION_PRIOR
from mondrian_bo.trees.layout import NONE

UNITS = np.array([1.0, 100.0, 0.01])


def make_forest(block_size=20, **options):
    options = {"n_estimators": 3, "random_state": 0} | options
    return GaussianProcessForestRegressor(block_size=block_size, **options)


def make_data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = 40.0 + 8.0 * np.sin(4.0 * X[:, 0]) + 5.0 * X[:, 1] + 0.5 * rng.normal(size=n)
    return X * UNITS, y


@parametrize_with_checks([make_forest(40, n_estimators=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("block_size", [20, 100])
def test_n_jobs(block_size):
    """Threads share the trees of predictions at many points, whatever joblib's backend."""
    X, y = make_data()
    many = make_data(300, seed=1)[0]
    forest = make_forest(block_size).fit(X, y)
    expected = forest.predict(many, return_std=True)
    for n_jobs in (2, -1):
        other = make_forest(block_size, n_jobs=n_jobs).fit(X, y)
        np.testing.assert_array_equal(other.predict(many, return_std=True), expected)
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend, n_jobs=2):
            np.testing.assert_array_equal(forest.predict(many, return_std=True), expected)


class DenseDistribution:
    """The joint normal distribution of targets and functions in one tree, in units of targets."""

    def __init__(self, model, t):
        self.model, self.trees, self.t = model, model.forest.arrays, t
        self.mean, self.std = model._target_mean, model._target_std
        self.covariance = model._processes.covariance
        self.points, self.targets = model.forest.points[0], model._targets.rows
        self.own = self.between(self.points, self.points)
        self.own += self.std**2 * np.diag(self.noise(self.points))

    def path(self, leaf):
        while leaf != NONE:
            yield int(leaf)
            leaf = self.trees.parent[self.t, leaf]

    def spent(self, node):
        gamma_2 = self.model.forest.hyperparameters.gamma_2
        time = self.trees.split_time[self.t, node]
        return 2.0 * REGRESSION_PRIOR.mean_variance * (expit(gamma_2 * time) - 0.5)

    def leaves(self, points):
        return self.model.forest.leaves(points[None])[:, self.t]

    def scale(self, leaf):
        inside = self.leaves(self.points) == leaf
        rows = self.model._rows(self.points[None])[inside]
        targets = (self.targets[inside] - self.mean) / self.std
        own = self.covariance.noise - self.covariance.shared_noise
        matrix = self.covariance.between(rows, rows) + own * np.eye(len(rows))
        inverse = np.linalg.inv(matrix)
        centred = targets - inverse.sum(axis=0) @ targets / inverse.sum()
        return (10.0 + centred @ inverse @ centred) / (10.0 + len(rows))

    def noise(self, points):
        own = self.covariance.noise - self.covariance.shared_noise
        return [own * self.scale(leaf) for leaf in self.leaves(points)]

    def between(self, some, others):
        one, two = self.leaves(some), self.leaves(others)
        scales = {leaf: self.scale(leaf) for leaf in np.unique(one)}
        rows = [self.model._rows(x[None]) for x in (some, others)]
        kernel = self.covariance.between(*rows)
        result = np.empty((len(some), len(others)))
        for i, leaf in enumerate(one):
            above = set(self.path(leaf))
            for k, other in enumerate(two):
                shared = above & set(self.path(other))
                result[i, k] = max((self.spent(node) for node in shared), default=0.0)
                if leaf == other:
                    result[i, k] += scales[leaf] * kernel[i, k]
        return self.std**2 * result

    def predict(self, probes):
        cross = self.between(probes, self.points)
        gain = np.linalg.solve(self.own, cross.T).T
        variances = np.diag(self.between(probes, probes)) - np.einsum("ij,ij->i", gain, cross)
        means = self.mean + gain @ (self.targets - self.mean)
        return means, variances + self.std**2 * np.array(self.noise(probes))

    def leave_one_out(self):
        """Return residuals and variances in standard units, from the precision matrix."""
        inverse = np.linalg.inv(self.own)
        variances = 1.0 / inverse.diagonal()
        residuals = variances * (inverse @ (self.targets - self.mean))
        return residuals / self.std, variances / self.std**2

    def log_likelihood(self):
        shift = np.full(len(self.targets), self.mean)
        return multivariate_normal(shift, self.own).logpdf(self.targets)


@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("block_size", [20, 100])
@pytest.mark.parametrize("first", [1, 60])
def test_one_normal_distribution_in_each_tree(block_size, first, duplicates):
    X, y = make_data()
    if duplicates:
        X[1::2] = X[::2]
    forest = make_forest(block_size).fit(X[:first], y[:first])
    forest.partial_fit(X[first:], y[first:]) if first < 60 else None
    probes = np.concatenate([make_data(8, seed=1)[0], X[:3], [3.0 * UNITS, -5.0 * UNITS]])
    means, variances = forest.model_.predict_uncorrected(probes[None])
    assert (forest.model_._processes.covariance.shared_noise > 0.0) == duplicates
    n_trees = 3 if block_size == 20 else 1
    distributions = [DenseDistribution(forest.model_, t) for t in range(n_trees)]
    assert len(means) == n_trees
    for t, distribution in enumerate(distributions):
        expected = distribution.predict(probes)
        assert np.allclose(means[t], expected[0], rtol=1e-7)
        assert np.allclose(variances[t], expected[1], rtol=1e-6)
    residuals, left_out = forest.model_._processes.leave_one_out()
    for t, distribution in enumerate(distributions):
        expected = distribution.leave_one_out()
        assert np.allclose(residuals[t], expected[0], rtol=1e-6, atol=1e-9)
        assert np.allclose(left_out[t], expected[1], rtol=1e-6)
    likelihoods = np.array([distribution.log_likelihood() for distribution in distributions])
    mean_likelihood = np.log(np.mean(np.exp(likelihoods - likelihoods.max()))) + likelihoods.max()
    assert forest.log_marginal_likelihood() == pytest.approx(mean_likelihood, rel=1e-7)
    # The trees' distributions, mixed and corrected: moments, densities and quantiles.
    centre, spread = means.mean(axis=0), forest.model_._correction.factors(probes[None])
    corrected = centre + np.sqrt(spread) * (means - centre), spread * variances
    means, variances = forest.model_.predict(probes[None])
    assert np.allclose((means, variances), corrected, rtol=1e-12)
    assert not np.allclose(spread, 1.0)
    mean, std = forest.predict(probes, return_std=True)
    assert np.allclose(mean, means.mean(axis=0))
    assert np.allclose(std**2, variances.mean(axis=0) + means.var(axis=0))
    densities = norm.pdf(mean, means, np.sqrt(variances)).mean(axis=0)
    assert np.allclose(forest.logpdf(probes, mean), np.log(densities))
    middle = forest.predict_quantiles(probes, (0.7,))[:, 0]
    assert np.allclose(norm.cdf(middle, means, np.sqrt(variances)).mean(axis=0), 0.7)


@pytest.mark.parametrize("block_size", [20, 100])
def test_draws_have_the_moments_of_predictions(block_size):
    X, y = make_data()
    forest = make_forest(block_size).fit(X, y)
    probes = np.concatenate([make_data(4, seed=1)[0], X[:1], [2.0 * UNITS]])
    draws = forest.sample_y(probes, 400, random_state=1)
    mean, std = forest.predict(probes, return_std=True)
    error = std / np.sqrt(draws.shape[1])
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 4.5 * error)
    assert np.allclose(draws.std(axis=1), std, rtol=0.15)
    # Neighbours get the same function, but noise of their own.
    twice = forest.sample_y(np.repeat(X[:1], 2, axis=0), 100)
    noise = np.std(twice[0] - twice[1])
    assert 0.0 < noise < np.sqrt(2.0) * forest.predict(X[:1], return_std=True)[1][0]


@pytest.mark.parametrize("seed", range(2))
def test_equal_inputs_with_equal_targets(seed):
    """Equal targets of equal inputs do not lower the noise estimate."""
    rng = np.random.default_rng(seed)
    X = rng.random((400, 2))
    y = np.sin(4.0 * X[:, 0]) + rng.standard_normal(400)
    known, new = slice(0, 200), slice(200, 400)
    repeated = np.concatenate([np.arange(200), np.arange(60)])
    forest = make_forest(100, random_state=seed).fit(X[repeated], y[repeated])
    mean, std = forest.predict(X, return_std=True)
    assert np.allclose(mean[known], y[known], atol=0.05)
    assert np.all(std[known] < 0.1)
    # Next to nothing if the noise were what equal inputs say; 200 samples and blocks are few.
    assert np.mean(np.abs(mean[new] - y[new]) < norm.ppf(0.95) * std[new]) > 0.8
    error = np.sqrt(np.mean((mean[new] - np.sin(4.0 * X[new, 0])) ** 2))
    assert error < 0.5
    draws = forest.sample_y(np.repeat(X[198:203], 2, axis=0), 200)
    assert np.allclose(draws[::2], draws[1::2], atol=0.1)
    assert np.all(draws[4:].std(axis=1) > 0.4) and np.all(draws[:4].std(axis=1) < 0.1)


def test_inputs_are_equal_but_for_features_of_weight_0():
    rng = np.random.default_rng(0)
    x = np.append(rng.random(30).repeat(2), rng.random(20))
    y = np.sin(5.0 * x) + (0.3 + x) * rng.standard_normal(80)
    predictions = []
    for ignored in (rng.random(80), np.zeros(80)):
        X = np.column_stack([x, ignored])
        forest = make_forest(30, feature_weights=[1.0, 0.0]).fit(X, y)
        predictions.append(forest.predict(X, return_std=True))
    np.testing.assert_allclose(*predictions, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ends", [(7, 8, 20, 21, 50), tuple(range(6, 70))])
def test_the_division_of_a_stream_does_not_matter(ends):
    X, y = make_data(70)
    whole = make_forest().fit(X[:5], y[:5]).partial_fit(X[5:], y[5:])
    parts, start = make_forest().fit(X[:5], y[:5]), 5
    for end in (*ends, 70):
        parts.partial_fit(X[start:end], y[start:end])
        if end % 3 == 0:
            parts.predict(X[:2])
        start = end
    for one, two in zip(
        whole.predict(X + 0.01 * UNITS, return_std=True),
        parts.predict(X + 0.01 * UNITS, return_std=True),
        strict=True,
    ):
        assert np.array_equal(one, two)


def test_random_state():
    X, y = make_data(90)
    probes = make_data(20, seed=1)[0]
    first = make_forest().fit(X, y)
    assert np.array_equal(first.predict(probes), clone(first).fit(X, y).predict(probes))
    assert np.array_equal(first.sample_y(probes, 2), first.sample_y(probes, 2))
    other = make_forest(random_state=1).fit(X, y).predict(probes)
    assert not np.array_equal(first.predict(probes), other)


def test_scales_of_inputs_and_targets_do_not_matter():
    X, y = make_data(90)
    probes = make_data(20, seed=1)[0]
    mean, std = make_forest().fit(X, y).predict(probes, return_std=True)
    # Powers of two, so that rounding is the same.
    factors = np.array([2.0**20, 0.5, 2.0**-30])
    replica = make_forest().fit(X * factors, 2.0**-12 * y)
    own_mean, own_std = replica.predict(probes * factors, return_std=True)
    assert np.allclose(own_mean * 2.0**12, mean, rtol=1e-9)
    assert np.allclose(own_std * 2.0**12, std, rtol=1e-9)


def test_pickle_goes_on_learning():
    X, y = make_data(70)
    forest = make_forest().fit(X[:40], y[:40]).partial_fit(X[40:45], y[40:45])
    replica = pickle.loads(pickle.dumps(forest))
    for model in (forest, replica):
        model.partial_fit(X[45:], y[45:])
    assert np.array_equal(forest.predict(X), replica.predict(X))
    assert np.array_equal(forest.sample_y(X, 3), replica.sample_y(X, 3))


def test_leaves_and_paths():
    X, y = make_data(90)
    forest = make_forest().fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    leaves = forest.apply(X)
    for t in range(3):
        _, sizes = np.unique(leaves[:, t], return_counts=True)
        assert len(sizes) > 1 and sizes.max() <= 20
    indicator, ends = forest.decision_path(X)
    assert indicator.shape == (90, ends[-1])
    for t in range(3):
        assert np.all(indicator[np.arange(90), ends[t] + leaves[:, t]] == 1)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"block_size": 1}, "block_size"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"bounds": [[0.0, 1.0]]}, "bounds must have shape"),
        ({"feature_weights": [1.0, -1.0, 0.0]}, "non-negative"),
    ],
)
def test_wrong_options(options, name):
    X, y = make_data()
    for start in (GaussianProcessForestRegressor.fit, GaussianProcessForestRegressor.partial_fit):
        forest = make_forest().set_params(**options)
        with pytest.raises(ValueError, match=name):
            start(forest, X, y)
        assert not hasattr(forest, "model_")


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.5, np.nan, 0.5]], [1.0], "NaN"),
        ([[0.5, 0.5, 0.5]], [np.inf], "infinity"),
        ([[0.5, 0.5, 0.5]], [1e160], "squares overflow"),
        ([[0.5, 0.5]], [1.0], "features"),
        ([[0.5] * 3] * 3, [1.0, 2.0], "inconsistent"),
    ],
)
def test_wrong_input_changes_nothing(X, y, message):
    inputs, targets = make_data()
    forest, replica = (make_forest().fit(inputs, targets) for _ in range(2))
    with pytest.raises(ValueError, match=message):
        forest.partial_fit(X, y)
    with pytest.raises(ValueError, match=message):
        forest.partial_fit(np.array(X), np.array(y))
    if message != "features":
        with pytest.raises(ValueError, match=message):
            forest.fit(X, y)
    forest.partial_fit(np.ones((0, 3)), np.ones(0))
    for model in (forest, replica):
        model.partial_fit(inputs[:1] + 0.1, targets[:1])
    assert np.array_equal(forest.predict(inputs), replica.predict(inputs))


@pytest.mark.parametrize("level", [0.0, -3.0, 1e6, 1e-12])
def test_constant_targets(level):
    X, _ = make_data(40)
    forest = make_forest().fit(X[:15], np.full(15, level)).partial_fit(X[15:], np.full(25, level))
    probes = np.concatenate([X, X + 0.01, X + 1e12])
    mean, std = forest.predict(probes, return_std=True)
    assert np.allclose(mean, level, rtol=1e-9, atol=1e-300)
    assert np.all(np.isfinite(std)) and np.all(std > 0.0)
    assert np.all(np.isfinite(forest.logpdf(probes, mean)))
    assert np.isfinite(forest.log_marginal_likelihood())


def test_hard_inputs():
    X, y = make_data(40)
    far = np.array([[1e300, 0.0, 0.0], [-1e308, 1e308, 0.0], [1e8, 0.0, 1e-300]])
    # Repeated inputs, a constant one that begins to vary, one sample.
    repeated = make_forest().fit(np.repeat(X[:3], 13, axis=0), y[:39])
    padded = np.insert(X, 1, 7.5, axis=1)[:, :3]
    constant = make_forest().fit(padded[:30], y[:30])
    varied = make_forest().fit(padded[:30], y[:30]).partial_fit(X[30:], y[30:])
    single = make_forest().fit(X[:1], y[:1])
    for forest in (repeated, constant, varied, single):
        mean, std = forest.predict(np.concatenate([X, far]), return_std=True)
        assert np.all(np.isfinite(mean)) and np.all(np.isfinite(std)) and np.all(std > 0.0)
        assert np.all(np.isfinite(forest.sample_y(np.concatenate([X, far]), 2)))
    centre = repeated.predict(X[:3])
    assert np.allclose(centre, y[:39].reshape(3, 13).mean(axis=1), atol=0.5 * y.std())
    assert single.predict(X[:1])[0] == pytest.approx(y[0])


def test_a_weight_of_zero_hides_a_feature():
    X, y = make_data(60)
    moved = X + np.array([0.0, 1e3, 0.0]) * np.random.default_rng(0).random((60, 1))
    options = {"feature_weights": [1.0, 0.0, 1.0], "bounds": [[0, 1], [0, 100], [0, 0.01]]}
    one, two = (make_forest(**options).fit(data, y) for data in (X, moved))
    assert np.array_equal(one.predict(X), two.predict(moved))


def test_predictions_are_those_of_a_good_regressor():
    errors, densities = {}, {}
    for name, (X, y) in {
        "diabetes": load_diabetes(return_X_y=True),
        "friedman": make_friedman1(900, 10, noise=1.0, random_state=0),
    }.items():
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[:300], order[300:]
        forest = make_forest(100).fit(X[train], y[train])
        mean, std = forest.predict(X[test], return_std=True)
        error = np.sqrt(np.mean((mean - y[test]) ** 2))
        rival = RandomForestRegressor(50, random_state=0).fit(X[train], y[train])
        errors[name] = error / np.sqrt(np.mean((rival.predict(X[test]) - y[test]) ** 2))
        covered = np.mean(np.abs(mean - y[test]) < 1.645 * std)
        densities[name] = norm.logpdf(y[test], mean, std).mean() + np.log(y[train].std())
        assert 0.82 < covered < 0.98
    assert errors["diabetes"] < 1.05 and errors["friedman"] < 0.7
    # A normal density with the mean and variance of all targets has a mean log of -1.42.
    assert densities["diabetes"] > -1.2 and densities["friedman"] > -0.6


def test_the_example_runs(tmp_path):
    options = ("--quick", "--only", "diabetes")
    printed = run_example("gaussian_process_leaves.py", *options, cwd=tmp_path)
    models = [" ".join(line.split()[2:-4]) for line in printed.splitlines()[1:]]
    assert models == [
        "GP leaves, m=40",
        "uncorrected, m=40",
        "constant leaves",
        "linear leaves",
        "constant, relevance",
        "constant, lengthscales",
        *(f"rule {rule}, leave_one_out" for rule in ("paper", "remaining", "bridge")),
        *(f"rule {rule}, paper" for rule in ("paper", "remaining", "bridge")),
        "empirical",
        "Gaussian process",
        "random forest",
        "extra trees",
    ]
