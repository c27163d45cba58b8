"""The regressor of grids, and scikit-learn's checks of it."""

import numpy as np
import pytest
from kernel_refits import log_evidence
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from mondrian_bo.surrogates import LaplaceKernel, MondrianGridRegressor
from mondrian_bo.surrogates.mondrian_grid.cells import GridCells

NEW = np.array([[0.5, 0.5], [0.1, 0.9], [1.3, 0.5], [9.0, 9.0]])


@parametrize_with_checks(
    [
        MondrianGridRegressor(n_estimators=3, random_state=0),
        MondrianGridRegressor(n_estimators=3, lifetimes=5.0, normalize_y=False, random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make_data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, 5.0 + 2.0 * np.sin(7.0 * X[:, 0]) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("lifetimes", [0.5, [8.0, 2.0]])
def test_is_a_gaussian_process(lifetimes):
    X, y = make_data()
    model = MondrianGridRegressor(6, lifetimes, noise_variance=0.05, random_state=0).fit(X, y)
    features = model.model_.features(X[None]).toarray()
    cross = model.model_.features(NEW[None]).toarray()
    unit = np.var(y)
    covariance = unit * (features @ features.T + 0.05 * np.eye(40))
    between = unit * features @ cross.T
    mean, std = model.predict(NEW, return_std=True)
    expected = y.mean() + between.T @ np.linalg.solve(covariance, y - y.mean())
    explained = np.einsum("ij,ij->j", between, np.linalg.solve(covariance, between))
    assert np.allclose(mean, expected, rtol=0.0, atol=1e-8)
    assert np.allclose(std**2, unit * 1.05 - explained)
    evidence = log_evidence(y - y.mean(), covariance)
    assert abs(model.model_.log_marginal_likelihood() - evidence) < 1e-8 * abs(evidence)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("lifetimes", [1.0, 5.0])
def test_ranges_below_the_normal_numbers_do_not_vary(lifetimes):
    X, y = make_data()
    tiny = X * [1.0, 1e-320]
    model = MondrianGridRegressor(4, lifetimes, random_state=0).fit(tiny, y)
    assert np.isfinite(model.predict(tiny, return_std=True)).all()
    assert np.array_equal(model.predict(tiny), model.predict(tiny * [1.0, 0.0]))
    cells = GridCells(tiny, len(X), 4, np.random.default_rng(0))
    assert cells.cut_time(0, 3) < np.inf
    assert cells.cut_time(1, 1) is None


def test_approaches_the_general_laplace_process():
    X, y = make_data()
    exact = GaussianProcessRegressor(
        LaplaceKernel([4.0, 1.0], "fixed"), alpha=0.05, normalize_y=True
    ).fit(X, y)
    mean, std = exact.predict(NEW, return_std=True)
    model = MondrianGridRegressor(1500, [4.0, 1.0], noise_variance=0.05, random_state=0).fit(X, y)
    own_mean, own_variance = model.model_.predict(NEW[None])
    assert np.allclose(own_mean, mean, atol=0.15)
    assert np.allclose(np.sqrt(own_variance), std, atol=0.15)


def test_fit_and_moved_model_agree():
    X, y = make_data()
    regressor = MondrianGridRegressor(5, [3.0, 6.0], random_state=0)
    model = regressor.grid_model(X, y)
    model.set_lifetimes(np.array([3.0, 6.0]))
    fitted = regressor.fit(X, y)
    assert np.allclose(model.fit().fitted + y.mean(), fitted.predict(X), atol=1e-9)
    assert np.isclose(model.log_marginal_likelihood(), fitted.model_.log_marginal_likelihood())


@pytest.mark.parametrize(
    ("lifetimes", "message"),
    [
        ([1.0], r"lifetimes must be one number or have shape \(2,\), got \(1,\)"),
        ([1.0, -1.0], "finite and at least 0"),
        ([1.0, np.inf], "finite and at least 0"),
        (-1.0, "lifetimes"),
    ],
)
def test_wrong_lifetimes(lifetimes, message):
    with pytest.raises(ValueError, match=message):
        MondrianGridRegressor(2, lifetimes).fit(*make_data())


def test_validation_inputs_have_the_feature_names_of_the_training_inputs():
    pandas = pytest.importorskip("pandas")
    X, y = make_data()
    frame = pandas.DataFrame(X, columns=["a", "b"])
    with pytest.raises(ValueError, match="feature names should match"):
        MondrianGridRegressor(2).grid_model(frame, y, frame[["b", "a"]], y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("lifetimes", [1.0, [0.0, 1.0], 1e300])
def test_distances_that_overflow(lifetimes):
    X, y = make_data()
    X = 4e307 * (X + 1.0)
    model = MondrianGridRegressor(3, lifetimes, random_state=0).fit(X, y)
    mean, std = model.predict([[-1.7e308, -1.7e308], [1e308, -1.7e308]], return_std=True)
    np.testing.assert_allclose(mean, y.mean())
    np.testing.assert_allclose(std, np.sqrt(1.01 * y.var()))
