"""Paths equal models fitted from scratch at every lifetime."""

from functools import partial

import numpy as np
import pytest
from inverse_system import InverseSystem
from kernel_refits import cells_at, refit_forest, refit_kernel
from sklearn.base import is_classifier

from mondrian_bo.surrogates import (
    MondrianKernelClassifier,
    MondrianKernelRegressor,
    MondrianKernelSVR,
    sgd_lifetime_path,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths import solvers
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.forest_path import forest_path
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.kernel_path import kernel_path
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import sample_path_data


def make_data(n=35, n_val=25, n_features=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n + n_val, n_features))
    X[3] = X[5]
    y = 3.0 + np.sin(7.0 * X[:, 0]) + X[:, -1] ** 2 + 0.1 * rng.normal(size=len(X))
    return X[:n], y[:n], X[n:], y[n:]


def path_data(seed=0, n_estimators=4, max_lifetime=6.0, **options):
    return sample_path_data(
        *make_data(seed=seed, **options),
        n_estimators=n_estimators,
        max_lifetime=max_lifetime,
        random_state=seed,
    )


def assert_equals_refits(path, data, noise, prior, tolerance=1e-8):
    assert np.all(np.diff(path.lifetimes) > 0.0)
    assert path.lifetimes[0] == 0.0
    for i, lifetime in enumerate(path.lifetimes):
        training, validation, evidence, weights, n_cells = refit_kernel(
            data, lifetime, noise, prior
        )
        assert abs(path.training_error[i] - training) < tolerance
        assert abs(path.validation_error[i] - validation) < tolerance
        assert abs(path.log_marginal_likelihood[i] - evidence) < tolerance * abs(evidence)
        assert path.n_cells[i] == n_cells
        if path.coefficients is not None:
            own, _ = path.weights(i)
            assert np.abs(own - weights).max() < tolerance


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("method", ["auto", "cholesky", "dual"])
@pytest.mark.parametrize("seed", [0, 1])
def test_equal_to_refitting_at_every_cut(method, direction, seed):
    data = path_data(seed)
    noise, prior = 0.01, 1.7
    path = kernel_path(data, noise, prior, method=method, direction=direction, keep_weights=True)
    # There are more cells than points at the end, so that "auto" changes its form on the way.
    assert path.n_cells[0] == 4 < 35 < path.n_cells[-1]
    assert_equals_refits(path, data, noise, prior)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_inverse_form_is_a_reference(direction, monkeypatch):
    """Its errors grow with the condition of the equations, which is small here."""
    monkeypatch.setattr(solvers, "CholeskySystem", InverseSystem)
    data = path_data(2)
    path = kernel_path(data, 0.3, 1.0, method="cholesky", direction=direction, keep_weights=True)
    assert_equals_refits(path, data, 0.3, 1.0)


def test_former_inverse_method_is_the_cholesky_one():
    data = path_data(2)
    with pytest.warns(FutureWarning, match='Use method="cholesky"'):
        former = kernel_path(data, 0.3, 1.0, method="inverse")
    assert_equals_refits(former, data, 0.3, 1.0)
    path = kernel_path(data, 0.3, 1.0, method="cholesky")
    assert np.array_equal(former.validation_error, path.validation_error)


@pytest.mark.parametrize("method", ["auto", "cholesky", "dual"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_little_noise(method, direction):
    """The paper's delta^2 = 1e-4."""
    data = path_data(3, n_features=3, n_estimators=3, max_lifetime=4.0)
    path = kernel_path(data, 1e-4, 1.0, method=method, direction=direction, keep_weights=True)
    assert_equals_refits(path, data, 1e-4, 1.0)


def test_every_change_is_there():
    """Between the lifetimes of a path cells do not change; at each, some prediction may."""
    data = path_data(4, n_estimators=3)
    path = kernel_path(data, 0.1, 1.0)
    n = len(data.targets)
    before = None
    for lifetime in path.lifetimes:
        cells, _ = cells_at(data.partitions, lifetime)
        assert before is None or not np.array_equal(cells, before)
        before = cells
    # Cells of training points at lifetimes in between are those of the path.
    for lifetime in np.random.default_rng(0).uniform(0.0, 6.0, 50):
        index = path.index(lifetime)
        for here, there in zip(
            cells_at(data.partitions, lifetime)[0].T,
            cells_at(data.partitions, path.lifetimes[index])[0].T,
            strict=True,
        ):
            known = np.isin(here, here[:n])
            pairs = np.unique(np.stack([here[known], there[known]]), axis=1)
            assert pairs.shape[1] == len(np.unique(pairs[0])) == len(np.unique(pairs[1]))


@pytest.mark.parametrize("name", ["direction", "method"])
def test_unknown_ways_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be one of .*, got 'primal'"):
        kernel_path(path_data(5), 0.01, 1.0, **{name: "primal"})


@pytest.mark.parametrize("method", ["auto", "cholesky"])
def test_directions_agree(method):
    data = path_data(5)
    one, two = (
        kernel_path(data, 0.01, 1.0, method=method, direction=direction)
        for direction in ("forward", "backward")
    )
    assert np.array_equal(one.lifetimes, two.lifetimes)
    assert np.array_equal(one.n_cells, two.n_cells)
    assert np.allclose(one.validation_error, two.validation_error, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_forest_path_equals_refitting(seed):
    data = path_data(seed)
    path = forest_path(data, 0.05, 1.3)
    for i, lifetime in enumerate(path.lifetimes):
        training, validation, evidence = refit_forest(data, lifetime, 0.05, 1.3)
        assert abs(path.training_error[i] - training) < 1e-8
        assert abs(path.validation_error[i] - validation) < 1e-8
        assert abs(path.log_marginal_likelihood[i] - evidence) < 1e-8 * abs(evidence)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_kernel_and_forest_coincide_for_one_tree(seed):
    """Balog2016thesis, Appendix B.1."""
    data = path_data(seed, n_estimators=1)
    kernel, forest = kernel_path(data, 0.1, 1.0), forest_path(data, 0.1, 1.0)
    assert np.array_equal(kernel.lifetimes, forest.lifetimes)
    for name in ("training_error", "validation_error", "log_marginal_likelihood"):
        assert np.allclose(getattr(kernel, name), getattr(forest, name), rtol=1e-9, atol=1e-9)


def test_fewer_evaluations_are_a_part_of_all():
    data = path_data(6)
    whole, part = kernel_path(data, 0.1, 1.0), kernel_path(data, 0.1, 1.0, n_evaluations=9)
    assert len(part) == 9
    chosen = np.searchsorted(whole.lifetimes, part.lifetimes)
    assert np.array_equal(whole.lifetimes[chosen], part.lifetimes)
    assert np.allclose(whole.validation_error[chosen], part.validation_error, atol=1e-10)
    assert chosen[0] == 0
    assert chosen[-1] == len(whole) - 1


def test_without_validation_points():
    X, y, _, _ = make_data()
    model = MondrianKernelRegressor(5, 4.0, random_state=0)
    path = model.lifetime_path(X, y)
    assert np.isnan(path.validation_error).all()
    best = path.best_lifetime()
    assert path.log_marginal_likelihood[path.index(best)] == path.log_marginal_likelihood.max()
    with pytest.raises(ValueError, match="no validation_error"):
        path.best_lifetime("validation_error")


def test_best_lifetime_and_index():
    data = path_data(7)
    path = kernel_path(data, 0.1, 1.0)
    index = path.index(path.best_lifetime())
    assert path.validation_error[index] == path.validation_error.min()
    index = path.index(path.best_lifetime("log_marginal_likelihood"))
    assert path.log_marginal_likelihood[index] == path.log_marginal_likelihood.max()
    assert path.index(0.0) == 0
    assert path.index(6.0) == len(path) - 1
    assert path.index(path.lifetimes[3]) == 3
    for lifetime in (-0.1, 6.1):
        with pytest.raises(ValueError, match="lifetime must be in"):
            path.index(lifetime)
    with pytest.raises(ValueError, match="keep_weights=True"):
        path.weights(0)


def test_estimator_paths():
    """Units of the targets, and one call for both models on the same partitions."""
    X, y, X_val, y_val = make_data()
    model = MondrianKernelRegressor(4, 6.0, noise_variance=0.02, random_state=0)
    kernel, forest = model.lifetime_paths(X, y, X_val, y_val)
    alone = model.lifetime_path(X, y, X_val, y_val)
    assert np.array_equal(kernel.validation_error, alone.validation_error)
    assert kernel.partitions is forest.partitions
    assert np.array_equal(kernel.lifetimes, forest.lifetimes)
    forest_alone = model.forest_lifetime_path(X, y, X_val, y_val)
    assert np.array_equal(forest.training_error, forest_alone.training_error)
    assert np.array_equal(forest.validation_error, forest_alone.validation_error)
    assert not hasattr(model, "model_")
    # A model of the same partitions: fitted on all inputs, with the targets of some.
    data = sample_path_data(X, y, X_val, y_val, n_estimators=4, max_lifetime=6.0, random_state=0)
    unit = np.var(y)
    training, validation, evidence, *_ = refit_kernel(data, 6.0, 0.02 * unit, unit)
    assert abs(kernel.training_error[-1] - training) < 1e-8
    assert abs(kernel.validation_error[-1] - validation) < 1e-8
    assert abs(kernel.log_marginal_likelihood[-1] - evidence) < 1e-6


def test_wrong_data():
    X, y, X_val, y_val = make_data()
    model = MondrianKernelRegressor(2, random_state=0)
    with pytest.raises(ValueError, match="given together"):
        model.lifetime_path(X, y, X_val)
    with pytest.raises(ValueError, match="X_val must have the 2 features"):
        model.lifetime_path(X, y, X_val[:, :1], y_val)
    with pytest.raises(ValueError, match="NaN"):
        model.lifetime_path(X, np.full(len(y), np.nan), X_val, y_val)
    with pytest.raises(ValueError, match="lifetime"):
        MondrianKernelRegressor(2, -1.0).lifetime_path(X, y)


@pytest.mark.parametrize(
    "estimator",
    [
        MondrianKernelRegressor(3, 2.0, random_state=0),
        MondrianKernelSVR(3, 2.0, random_state=0),
        MondrianKernelClassifier(n_estimators=3, lifetime=2.0, random_state=0),
    ],
)
@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (-3, ValueError), (1.5, TypeError)])
def test_wrong_numbers_of_evaluations(estimator, value, error):
    X, y, *_ = make_data()
    targets = y > np.median(y) if is_classifier(estimator) else y
    with pytest.raises(error, match="`n_evaluations` must be"):
        estimator.lifetime_path(X, targets, n_evaluations=value)


PATHS = {
    "kernel": MondrianKernelRegressor(3, 2.0, random_state=0).lifetime_path,
    "forest": MondrianKernelRegressor(3, 2.0, random_state=0).forest_lifetime_path,
    "both": MondrianKernelRegressor(3, 2.0, random_state=0).lifetime_paths,
    "support vectors": MondrianKernelSVR(3, 2.0, random_state=0).lifetime_path,
    "classes": MondrianKernelClassifier(n_estimators=3, random_state=0).lifetime_path,
    "descent": partial(sgd_lifetime_path, loss="squared_error", n_estimators=3, random_state=0),
}


@pytest.mark.parametrize("name", PATHS)
def test_validation_inputs_have_the_feature_names_of_the_training_inputs(name):
    pandas = pytest.importorskip("pandas")
    X, y, X_val, y_val = make_data()
    if name == "classes":
        y, y_val = y > 3.5, y_val > 3.5
    frame, other = (pandas.DataFrame(inputs, columns=["a", "b"]) for inputs in (X, X_val))
    for wrong in (other[["b", "a"]], other.rename(columns={"b": "c"})):
        with pytest.raises(ValueError, match="feature names should match"):
            PATHS[name](frame, y, wrong, y_val)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        PATHS[name](frame, y, X_val, y_val)
    PATHS[name](frame, y, other, y_val)
