"""Gaussian process, kernel PCA and support vector machine, against dense formulas."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from mondrian_bo.surrogates import (
    FastClusterKernel,
    PartitionGaussianProcessRegressor,
    PartitionKernelPCA,
    PartitionSVC,
    RandomForestKernel,
)
from mondrian_bo.surrogates.partition_kernels.operator import ALONE, PartitionGram
from mondrian_bo.surrogates.partition_kernels.regressor import choose_variances
from mondrian_bo.surrogates.partition_kernels.spectrum import (
    cluster_spectrum,
    exact_spectrum,
    lanczos_quadrature,
    lanczos_spectrum,
)

KERNELS = [FastClusterKernel(random_state=0), RandomForestKernel(50, random_state=0)]


def make_data(n=150, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 5.0 + np.sin(2.0 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)


# Gaussian process ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-145, 1e-100, 1e-30, 1e100])
@pytest.mark.parametrize("solver", ["dense", "cg"])
def test_deviations_have_the_unit_of_the_targets(scale, solver):
    X, y = make_data(60)
    one, other = (
        PartitionGaussianProcessRegressor(KERNELS[0], solver=solver).fit(X, factor * y)
        for factor in (1.0, scale)
    )
    expected = one.predict(X + 0.1, return_std=True)
    for found, moment in zip(other.predict(X + 0.1, return_std=True), expected, strict=True):
        np.testing.assert_allclose(found, scale * moment, rtol=1e-3, atol=1e-5 * scale)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("solver", ["dense", "cg"])
def test_posterior_is_that_of_a_gaussian(kernel, solver):
    X, y = make_data()
    new, targets = make_data(20, seed=1)
    model = PartitionGaussianProcessRegressor(
        kernel, signal_variance=2.0, noise_variance=0.1, solver=solver, tol=1e-12
    ).fit(X, y)
    K = 2.0 * model.kernel_(np.vstack([X, new])) + 0.1 * np.eye(170)
    gain = np.linalg.solve(K[:150, :150], K[:150, 150:]).T
    mean = y.mean() + gain @ (y - y.mean())
    covariance = K[150:, 150:] - gain @ K[:150, 150:]
    found, found_covariance = model.predict(new, return_cov=True)
    assert np.allclose(found, mean, rtol=0, atol=1e-8)
    assert np.allclose(found_covariance, covariance, rtol=0, atol=1e-8)
    found, std = model.predict(new, return_std=True)
    assert np.allclose(found, model.predict(new), rtol=0, atol=1e-12)
    assert np.allclose(std**2, np.diag(covariance), rtol=0, atol=1e-8)
    joint = multivariate_normal(mean, covariance).logpdf(targets)
    assert np.isclose(model.log_predictive_density(new, targets), joint, rtol=1e-7)
    each = -0.5 * np.sum((targets - mean) ** 2 / std**2 + np.log(2 * np.pi * std**2))
    assert np.isclose(model.log_predictive_density(new, targets, joint=False), each, rtol=1e-7)
    evidence = multivariate_normal(np.full(150, y.mean()), K[:150, :150]).logpdf(y)
    assert np.isclose(
        model.log_marginal_likelihood_, evidence, rtol=1e-9 if solver == "dense" else 0.05
    )


@pytest.mark.parametrize("joint", [True, False])
def test_log_predictive_density_refuses(joint):
    X, y = make_data(30)
    model = PartitionGaussianProcessRegressor(FastClusterKernel(20, random_state=0)).fit(X, y)
    for wrong in (y[:, None], y[:1], y[0], np.append(y, 0.0)):
        with pytest.raises(ValueError, match=r"y must have shape \(30,\).*got shape \("):
            model.log_predictive_density(X, wrong, joint=joint)
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="y contains NaN or infinity"):
            model.log_predictive_density(X, np.append(y[1:], value), joint=joint)
    with pytest.raises(ValueError, match="y must hold numbers"):
        model.log_predictive_density(X, np.full(30, "a"), joint=joint)


@pytest.mark.parametrize("signal", [None, 0.7])
@pytest.mark.parametrize("noise", [None, 0.05])
def test_variances_maximise_the_marginal_likelihood(signal, noise):
    X, y = make_data(noise=1.5)
    kernel = FastClusterKernel(random_state=0)
    model = PartitionGaussianProcessRegressor(kernel, signal_variance=signal, noise_variance=noise)
    model.fit(X, y)
    found = model.signal_variance_, model.noise_variance_
    assert signal is None or found[0] == signal
    assert noise is None or found[1] == noise
    K = model.gram_.toarray()
    targets = y - y.mean()

    def evidence(s, n):
        return multivariate_normal(cov=s * K + n * np.eye(len(K))).logpdf(targets)

    best = evidence(*found)
    assert np.isclose(best, model.log_marginal_likelihood_, rtol=1e-9)
    for factor in (0.5, 0.97, 1.03, 2.0):
        if signal is None:
            assert evidence(found[0] * factor, found[1]) < best
        if noise is None:
            assert evidence(found[0], found[1] * factor) < best


@pytest.mark.parametrize("height", [2, 8])
@pytest.mark.parametrize("alone", [False, True])
def test_clusters_give_the_whole_spectrum(height, alone):
    """Fewer clusters than points, and more."""
    rng = np.random.default_rng(height)
    rows = rng.integers(0, 2**height, (5, 90)).astype(np.int32)
    if alone:
        rows[rng.random(rows.shape) < 0.1] = ALONE
    gram = PartitionGram(rows, None, np.full(5, 2**height))
    memberships = gram.memberships()
    assert np.allclose((memberships @ memberships.T).toarray() / 5, gram.toarray())
    targets = rng.normal(size=90)
    dense, own = exact_spectrum(gram, targets), cluster_spectrum(gram, targets)
    for ratio in (1e-3, 0.1, 10.0):
        assert np.isclose(own.log_determinant(ratio), dense.log_determinant(ratio), rtol=1e-10)
        assert np.isclose(own.quadratic_form(ratio), dense.quadratic_form(ratio), rtol=1e-10)


def test_matrix_free_likelihood_is_exact_with_few_clusters():
    X, y = make_data(400)
    kernel = FastClusterKernel(20, max_height=5, random_state=0)
    dense, free = (
        PartitionGaussianProcessRegressor(kernel, solver=solver, tol=1e-12).fit(X, y)
        for solver in ("dense", "cg")
    )
    assert free.gram_.n_groups < 400
    evidence = dense.log_marginal_likelihood_
    assert np.isclose(free.log_marginal_likelihood_, evidence, rtol=0, atol=1e-8 * abs(evidence))
    assert np.isclose(free.noise_variance_, dense.noise_variance_, rtol=1e-5)
    assert np.allclose(free.predict(X), dense.predict(X), rtol=0, atol=1e-5)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_lanczos_estimates_the_likelihood(seed):
    X, y = make_data(seed=seed)
    gram = FastClusterKernel(random_state=seed).fit(X).gram(X)
    targets = y - y.mean()
    exact = exact_spectrum(gram, targets)
    K = gram.toarray()
    found = lanczos_spectrum(gram, targets, 60, 60, np.random.RandomState(seed))
    for ratio in (0.01, 1.0):
        system = K + ratio * np.eye(150)
        assert np.isclose(exact.log_determinant(ratio), np.linalg.slogdet(system)[1], rtol=1e-10)
        quadratic = targets @ np.linalg.solve(system, targets)
        assert np.isclose(exact.quadratic_form(ratio), quadratic, rtol=1e-10)
        assert np.isclose(found.quadratic_form(ratio), quadratic, rtol=1e-8)
        # The variance of Hutchinson's estimate: twice the squared entries beside the diagonal.
        values, vectors = np.linalg.eigh(system)
        logarithm = (vectors * np.log(values)) @ vectors.T
        beside = logarithm - np.diag(np.diag(logarithm))
        deviation = np.sqrt(2.0 * np.sum(beside**2) / 60)
        assert abs(found.log_determinant(ratio) - np.linalg.slogdet(system)[1]) < 4.5 * deviation
    both = [choose_variances(spectrum, None, None) for spectrum in (exact, found)]
    assert np.allclose(np.log(both[0]), np.log(both[1]), atol=0.3)


@pytest.mark.parametrize("n_steps", [3, 8, 20])
def test_unresolved_likelihoods_are_too_small(n_steps):
    X, y = make_data(400)
    # Few clusters: most eigenvalues are 0, and a small noise makes the system ill-conditioned.
    gram = FastClusterKernel(15, max_height=4, random_state=0).fit(X).gram(X)
    targets = y - y.mean()
    exact = exact_spectrum(gram, targets)
    found = lanczos_spectrum(gram, targets, 1, n_steps, np.random.RandomState(0))
    for ratio in (1e-6, 1e-3, 0.1, 1.0, 100.0):
        assert found.quadratic_form(ratio) >= exact.quadratic_form(ratio) * (1.0 - 1e-9)
    # With all unit vectors for probes the trace is exact, and Gauss's rule an upper bound.
    rules = [lanczos_quadrature(gram, vector, n_steps) for vector in np.eye(400)]
    for ratio in (1e-6, 1e-3, 0.1, 1.0, 100.0):
        trace = sum(np.sum(weights * np.log(nodes + ratio)) for nodes, weights in rules)
        assert trace >= exact.log_determinant(ratio) - 1e-6
    chosen, best = (choose_variances(spectrum, None, None) for spectrum in (found, exact))
    assert chosen[1] / chosen[0] > 0.2 * best[1] / best[0]


def test_lanczos_stops_where_nothing_is_left():
    # One cluster: the ones are an eigenvector.
    X = np.zeros((30, 1))
    gram = FastClusterKernel(5, max_height=0).fit(X).gram(X)
    found = lanczos_spectrum(gram, np.ones(30), 2, 20, np.random.RandomState(0))
    assert np.allclose(found.target_values, [30.0])
    assert np.isclose(found.quadratic_form(1.0), 30.0 / 31.0)
    assert np.isfinite(
        lanczos_spectrum(gram, np.zeros(30), 1, 5, np.random.RandomState(0)).log_likelihood(1, 1)
    )


def test_preconditioner_saves_iterations():
    X, y = make_data(400)
    for kernel in KERNELS:
        counts = [
            PartitionGaussianProcessRegressor(
                kernel, signal_variance=1.0, noise_variance=0.1, solver="cg", preconditioned=p
            )
            .fit(X, y)
            .n_iter_
            for p in (True, False)
        ]
        assert 0 < counts[0] < counts[1]


def test_one_sample_constant_targets_and_duplicates():
    model = PartitionGaussianProcessRegressor(solver="cg").fit([[1.0]], [3.0])
    assert np.allclose(model.predict([[0.0], [1.0]]), 3.0)
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    for solver in ("cg", "dense"):
        model = PartitionGaussianProcessRegressor(solver=solver, random_state=0)
        mean, std = model.fit(X, np.full(20, 2.0)).predict(X, return_std=True)
        assert np.allclose(mean, 2.0)
        assert np.all(np.isfinite(std))
        mean, std = model.fit(X, np.repeat([0.0, 1.0], 10)).predict(X, return_std=True)
        assert np.allclose(mean, np.repeat([0.0, 1.0], 10), atol=0.05)


def test_what_gaussian_processes_refuse():
    X, y = make_data(30)
    model = PartitionGaussianProcessRegressor(solver="cg", max_iter=2).fit
    with pytest.warns(ConvergenceWarning, match="max_iter=2 iterations"):
        model(X, y)
    with pytest.raises(ValueError, match="not for both"):
        PartitionGaussianProcessRegressor().fit(X, y).predict(X, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="squares overflow"):
        PartitionGaussianProcessRegressor().fit(X, 1e200 * y)


def test_noise_that_is_lost_in_rounding():
    X, y = make_data(30)
    kernel = FastClusterKernel(200, random_state=0)
    model = PartitionGaussianProcessRegressor(kernel, signal_variance=1.0, noise_variance=1e-300)
    message = "not positive definite in floating point: the noise variance 1e-300 is too small"
    with pytest.raises(np.linalg.LinAlgError, match=message):
        model.fit(X, y).log_predictive_density(X, y)
    # Equal inputs make the Gram matrix singular.
    message = "not positive definite in floating point: the multiple 1e-300 is too small"
    twice = np.repeat(X, 2, axis=0)
    with pytest.raises(np.linalg.LinAlgError, match=message):
        model.fit(twice, np.repeat(y, 2))
    with pytest.raises(np.linalg.LinAlgError, match=message):
        PartitionSVC(kernel, C=5e299).fit(twice, np.repeat(y > np.median(y), 2))


# Kernel PCA ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("solver", ["lanczos", "dense"])
def test_components_are_those_of_scikit_learn(kernel, solver):
    X, y = make_data()
    new, _ = make_data(25, seed=3)
    model = PartitionKernelPCA(4, kernel=kernel, solver=solver, random_state=0)
    scores = model.fit_transform(X, y)
    baseline = KernelPCA(4, kernel="precomputed")
    reference = baseline.fit_transform(model.kernel_(X))
    assert np.allclose(model.eigenvalues_, baseline.eigenvalues_, rtol=1e-8)
    signs = np.sign(np.sum(scores * reference, axis=0))
    assert np.allclose(scores, reference * signs, rtol=0, atol=1e-8)
    others = baseline.transform(model.kernel_(new, X)) * signs
    assert np.allclose(model.transform(new), others, rtol=0, atol=1e-8)
    vectors = model.eigenvectors_
    assert np.allclose(vectors.T @ vectors, np.eye(4), atol=1e-10)
    assert np.all(vectors[np.abs(vectors).argmax(axis=0), range(4)] > 0.0)


def test_more_components_than_there_are():
    X = np.repeat([[0.0], [1.0], [2.0]], 4, axis=0)
    model = PartitionKernelPCA(12, kernel=FastClusterKernel(30, random_state=0))
    scores = model.fit_transform(X)
    K = model.kernel_(X)
    centred = K - K.mean(0) - K.mean(1)[:, None] + K.mean()
    assert np.allclose(scores @ scores.T, centred, atol=1e-10)
    assert np.allclose(scores[:, 2:], 0.0, atol=1e-7)


# Support vector machine ---------------------------------------------------------------------------


def make_classes(n=200, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] * X[:, 1] > 0) ^ (rng.random(n) < noise)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_machine_is_at_the_minimum(kernel, C):
    X, y = make_classes()
    models = [
        PartitionSVC(kernel, C=C, solver=solver, tol=1e-12).fit(X, y) for solver in ("dense", "cg")
    ]
    for model in models:
        signs, weights = np.where(y, 1.0, -1.0), model.dual_coef_[:, 0]
        decision = model.decision_function(X)
        assert np.allclose(decision, model.kernel_(X) @ weights + model.intercept_, atol=1e-10)
        # The gradient of a convex objective vanishes, so this is its minimum.
        slack = np.maximum(1.0 - signs * decision, 0.0)
        assert np.allclose(weights, 2.0 * C * signs * slack, rtol=0, atol=1e-7)
        assert np.isclose(weights.sum(), 0.0, atol=1e-8)
    assert np.allclose(models[0].dual_coef_, models[1].dual_coef_, rtol=0, atol=1e-8)
    assert np.allclose(models[0].intercept_, models[1].intercept_, rtol=0, atol=1e-8)
    assert models[0].n_cg_iterations_ == 0 < models[1].n_cg_iterations_
    new, _ = make_classes(50, seed=1)
    assert np.allclose(*(model.decision_function(new) for model in models), atol=1e-8)


def test_machine_is_the_linear_one_on_the_features():
    X, y = make_classes()
    kernel = FastClusterKernel(50, random_state=0).fit(X)
    # liblinear penalises the intercept; a large scale makes that negligible.
    linear = LinearSVC(intercept_scaling=1e3, tol=1e-9, dual=False, max_iter=10_000)
    linear.fit(kernel.transform(X), y)
    own = PartitionSVC(FastClusterKernel(50, random_state=0)).fit(X, y)
    values = linear.decision_function(kernel.transform(X))
    assert np.allclose(own.decision_function(X), values, rtol=0, atol=1e-3)


@pytest.mark.parametrize("solver", ["cg", "dense"])
def test_several_classes(solver):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = PartitionSVC(FastClusterKernel(random_state=0), solver=solver).fit(X[::2], names[::2])
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X[1::2], names[1::2]) > 0.9
    alone = PartitionSVC(FastClusterKernel(random_state=0)).fit(X[::2], y[::2] == 1)
    assert np.allclose(alone.decision_function(X), model.decision_function(X)[:, 1], atol=1e-8)


def test_newton_steps_may_be_too_few():
    X, y = make_classes()
    with pytest.warns(ConvergenceWarning, match="max_newton=1 steps"):
        PartitionSVC(FastClusterKernel(random_state=0), max_newton=1).fit(X, y)


@pytest.mark.parametrize("solver", ["lanczos", "dense"])
def test_components_of_equal_inputs_are_zero(solver):
    model = PartitionKernelPCA(2, solver=solver, random_state=0)
    assert not model.fit_transform(np.ones((40, 3))).any()
    assert not model.eigenvalues_.any()
