"""The regressor is a Gaussian process, and learning online equals fitting."""

import numpy as np
import pytest
from kernel_refits import log_evidence
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, Ridge

from mondrian_bo.surrogates import LaplaceKernel, MondrianGridRegressor, MondrianKernelRegressor
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cholesky_system import CholeskySystem
from mondrian_bo.surrogates.mondrian_kernel.model import KernelModel


def make_data(n=60, n_features=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, n_features))
    return X, 5.0 + 2.0 * np.sin(7.0 * X[:, 0]) + 0.1 * rng.normal(size=n)


def process(features, cross, y, noise, prior):
    """Mean and variance of a Gaussian process with given features, in the dense way."""
    covariance = prior * features @ features.T + noise * np.eye(len(y))
    between = prior * features @ cross.T
    centred = y - y.mean()
    mean = y.mean() + between.T @ np.linalg.solve(covariance, centred)
    explained = np.einsum("ij,ij->j", between, np.linalg.solve(covariance, between))
    return mean, prior - explained, log_evidence(centred, covariance)


def assert_is_process(model, X, y, new):
    unit = np.var(y)
    noise, prior = model.noise_variance * unit, model.prior_variance * unit
    partitions = model.model_.partitions
    features = model.model_.features(X[None]).toarray()
    assert features.shape[1] == partitions.n_cells
    mean, variance, evidence = process(
        features, model.model_.features(new[None]).toarray(), y, noise, prior
    )
    own_mean, own_std = model.predict(new, return_std=True)
    assert np.allclose(own_mean, mean, rtol=0.0, atol=1e-8)
    assert np.allclose(own_std**2, variance + noise, rtol=1e-8)
    assert abs(model.log_marginal_likelihood() - evidence) < 1e-8 * abs(evidence)


NEW = np.array([[0.5, 0.5], [0.1, 0.9], [1.3, 0.5], [9.0, 9.0]])


@pytest.mark.parametrize(("lifetime", "is_dual"), [(1.0, False), (8.0, True)])
@pytest.mark.parametrize("noise", [1e-4, 0.1])
def test_is_a_gaussian_process(lifetime, is_dual, noise):
    X, y = make_data()
    model = MondrianKernelRegressor(
        6, lifetime, noise_variance=noise, prior_variance=1.5, random_state=0
    ).fit(X, y)
    assert model.model_.is_dual == is_dual
    assert_is_process(model, X, y, np.concatenate([NEW, X[:3]]))


def test_mean_is_ridge_regression_on_features():
    X, y = make_data()
    model = MondrianKernelRegressor(6, 2.0, noise_variance=0.1, random_state=0).fit(X, y)
    features = model.model_.features(X[None]).toarray()
    ridge = Ridge(0.1, fit_intercept=False).fit(features, y - y.mean())
    assert np.allclose(model.predict(X), y.mean() + ridge.predict(features))


@pytest.mark.parametrize("lifetime", [1.0, 8.0])
@pytest.mark.parametrize("steps", [[60, 1, 1, 1, 17], [1, 1, 40, 38], [10, 70]])
def test_online_equals_fitting(lifetime, steps):
    """New cells and rank-one updates, in both forms and across the change between them."""
    X, y = make_data(80)
    X[60:] *= 1.5
    model = MondrianKernelRegressor(6, lifetime, noise_variance=0.01, random_state=1)
    end = 0
    for n in steps:
        model.partial_fit(X[end : end + n], y[end : end + n])
        end += n
    replica = KernelModel(model.model_.partitions, 0.01, model.model_.prior_variance)
    assert np.allclose(model.model_.weights, replica.weights, rtol=0.0, atol=1e-8)
    assert np.allclose(model.model_.forest_weights, replica.forest_weights, rtol=1e-10)
    assert np.allclose(
        model.model_.predict(NEW[None])[1], replica.predict(NEW[None])[1], rtol=1e-7, atol=1e-12
    )
    assert_is_process(model, X, y, np.concatenate([NEW, X[:3]]))


def test_approaches_the_laplace_process():
    X, y = make_data(40)
    kernel = LaplaceKernel(3.0, "fixed")
    exact = GaussianProcessRegressor(kernel, alpha=0.05, normalize_y=True).fit(X, y)
    mean, std = exact.predict(NEW, return_std=True)
    errors = []
    for n_estimators in (20, 2000):
        model = MondrianKernelRegressor(n_estimators, 3.0, noise_variance=0.05, random_state=0).fit(
            X, y
        )
        own_mean, own_variance = model.model_.predict(NEW[None])
        errors.append([np.abs(own_mean - mean).max(), np.abs(np.sqrt(own_variance) - std).max()])
    assert np.all(np.array(errors[1]) < 0.3 * np.array(errors[0]))
    assert np.all(np.array(errors[1]) < 0.15)


def test_far_away_is_the_prior():
    X, y = make_data()
    model = MondrianKernelRegressor(20, 5.0, noise_variance=0.01, random_state=0).fit(X, y)
    mean, std = model.predict([[1e3, -1e3]], return_std=True)
    assert np.allclose(mean, y.mean())
    assert np.allclose(std, np.sqrt(1.01) * y.std())


def test_kernel_and_forest_coincide_for_one_tree():
    """Balog2016thesis, Appendix B.1."""
    X, y = make_data()
    one = MondrianKernelRegressor(1, 4.0, noise_variance=0.1, random_state=0).fit(X, y)
    assert np.allclose(one.predict(NEW), one.predict_forest(NEW))
    many = MondrianKernelRegressor(10, 4.0, noise_variance=0.1, random_state=0).fit(X, y)
    assert not np.allclose(many.predict(NEW), many.predict_forest(NEW), atol=1e-3)


def test_forest_minimises_its_objective():
    """Equation 4 of Balog2016, by least squares on the features of each tree."""
    X, y = make_data()
    model = MondrianKernelRegressor(5, 4.0, noise_variance=0.3, random_state=0).fit(X, y)
    total = np.zeros(len(X))
    for column in model.model_.partitions.cells.T:
        indicator = (column[:, None] == np.unique(column)).astype(float)
        total += Ridge(0.3, fit_intercept=False).fit(indicator, y - y.mean()).predict(indicator)
    assert np.allclose(model.predict_forest(X), y.mean() + total / 5)


def test_joint_fit_has_the_smaller_training_error():
    X, y = make_data(200)
    model = MondrianKernelRegressor(20, 2.0, noise_variance=1e-3, random_state=0).fit(X, y)
    kernel, forest = (np.mean((p(X) - y) ** 2) for p in (model.predict, model.predict_forest))
    assert kernel < 0.5 * forest


def test_weights_are_a_bayesian_ridge():
    """The noise and prior that scikit-learn's evidence maximisation ends with."""
    X, y = make_data()
    model = MondrianKernelRegressor(6, 2.0, normalize_y=False, random_state=0)
    features = model.fit(X, y).model_.features(X[None]).toarray()
    other = BayesianRidge(fit_intercept=False, tol=1e-12, max_iter=5000).fit(features, y)
    model.set_params(noise_variance=1.0 / other.alpha_, prior_variance=1.0 / other.lambda_)
    model.fit(X, y)
    mean, std = model.predict(X, return_std=True)
    other_mean, other_std = other.predict(features, return_std=True)
    assert np.allclose(mean, other_mean, rtol=1e-6)
    assert np.allclose(std, other_std, rtol=1e-4)


@pytest.mark.parametrize(
    "estimator",
    [
        MondrianKernelRegressor(6, 1.0, random_state=0),
        MondrianKernelRegressor(6, 9.0, random_state=0),
        MondrianGridRegressor(6, 2.0, random_state=0),
    ],
    ids=["primal", "dual", "grid"],
)
def test_weights_solve_the_equations_for_their_own_rows(estimator, monkeypatch):
    """Not for all training points: one solution, of O(min(C, n)^2), for each row."""
    X, y = make_data()
    model = estimator.fit(X, y).model_
    assert model.is_dual == (model.partitions.n_cells > len(X))
    solved, half_solve = [], CholeskySystem.half_solve

    def noted(system, vectors):
        solved.append(1 if vectors.ndim == 1 else vectors.shape[1])
        return half_solve(system, vectors)

    monkeypatch.setattr(CholeskySystem, "half_solve", noted)
    weights = estimator.weights(NEW, tolerance=0.0).toarray()
    assert sum(solved) == len(NEW)
    features, rows = model.features(X[None]).toarray(), model.features(NEW[None]).toarray()
    equations = features @ features.T + model.ridge * np.eye(len(X))
    direct = np.linalg.solve(equations, features @ rows.T).T
    np.testing.assert_allclose(weights, direct, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("targets", [np.zeros(30), np.full(30, 1e8 / 3.0)])
def test_constant_targets(targets):
    X, _ = make_data(30)
    mean, std = (
        MondrianKernelRegressor(5, random_state=0).fit(X, targets).predict(NEW, return_std=True)
    )
    assert np.allclose(mean, targets[0], rtol=1e-12)
    assert np.all(np.isfinite(std))


def test_single_sample_and_duplicates():
    model = MondrianKernelRegressor(3, random_state=0).fit([[0.5]], [2.0])
    assert model.predict([[0.5]])[0] == 2.0
    model.fit([[0.5]] * 4, [1.0, 1.0, 3.0, 3.0])
    assert np.allclose(model.predict([[0.5]]), 2.0)


def test_scale_of_targets_does_not_matter():
    X, y = make_data()
    one, other = (
        MondrianKernelRegressor(5, 2.0, random_state=0).fit(X, v).predict(NEW, return_std=True)
        for v in (y, 1e6 * y - 3.0)
    )
    assert np.allclose(1e6 * one[0] - 3.0, other[0])
    assert np.allclose(1e6 * one[1], other[1])


def test_points_are_forgotten_exactly():
    X, y = make_data()
    points, more = X[None, :40].copy(), X[None, 40:].copy()
    model = MondrianKernelRegressor(6, 8.0, random_state=0).fit(X[:40], y[:40]).model_
    assert model.is_dual
    before = [*model.predict(NEW[None]), model.partitions.cells.copy(), model.partitions.n_cells]
    with model.extended(more, y[40:]):
        inside = model.predict(more)[0]
        assert np.mean((inside - y[40:]) ** 2) < 0.3 * np.mean((before[0][0] - y[40:]) ** 2)
        assert model.partitions.n_points == 60
    after = [*model.predict(NEW[None]), model.partitions.cells.copy(), model.partitions.n_cells]
    for one, two in zip(before, after, strict=True):
        assert np.array_equal(one, two)
    assert np.array_equal(model.partitions.points, points)
    model.learn(more, y[40:])
    assert np.allclose(model.weights, KernelModel(model.partitions, model.ridge).weights)


def test_only_dual_models_forget():
    X, y = make_data()
    model = MondrianKernelRegressor(3, 0.1, random_state=0).fit(X, y).model_
    with pytest.raises(ValueError, match="dual form"), model.extended(NEW[None], np.zeros(4)):
        pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"prior_variance": -1.0}, "prior_variance"),
        ({"lifetime": np.nan}, "lifetime"),
        ({"feature_weights": [1.0, -1.0]}, "feature_weights must be finite"),
    ],
)
def test_wrong_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        MondrianKernelRegressor(**options).fit(*make_data())


def test_wrong_data_change_nothing():
    X, y = make_data()
    model = MondrianKernelRegressor(3, random_state=0).fit(X, y)
    before = model.predict(NEW)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit([[0.1, np.nan]], [1.0])
    with pytest.raises(ValueError, match="squares overflow"):
        model.partial_fit([[0.1, 0.2]], [1e300])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, np.full(len(y), np.nan))
    assert np.array_equal(model.predict(NEW), before)


def test_too_little_noise():
    X = np.zeros((5, 1))
    with pytest.raises(np.linalg.LinAlgError, match="noise variance is too small"):
        MondrianKernelRegressor(2, noise_variance=1e-300, random_state=0).fit(X, np.arange(5.0))


def test_points_near_the_largest_number():
    """Distances are infinite there; a lifetime of 0 has no split all the same."""
    X, y = make_data(30, n_features=3)
    far = np.full((2, 3), 1e308) * np.array([[1.0], [-1.0]])
    model = MondrianKernelRegressor(5, 0.0, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(far), model.predict(X[:2]))
    model = MondrianKernelRegressor(5, 2.0, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(far), y.mean())
