"""Warm-started descent keeps predictions at cuts and comes near the optimum between them."""

import numpy as np
import pytest
from kernel_refits import cells_at, indicators
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from mondrian_bo.surrogates import sgd_lifetime_path
from mondrian_bo.surrogates.mondrian_kernel.descent_step import LOSSES
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cuts import CutSequence
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import sample_path_data
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.sgd_path import (
    DescentSettings,
    _Descent,
)

SETTINGS = {"n_estimators": 10, "max_lifetime": 3.0, "random_state": 0}
ALPHA = 0.01


def make_data(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.sin(6.0 * X[:, 0]) + X[:, 1] - 0.5 + 0.1 * rng.normal(size=n)


def value_of(loss, predictions, targets, epsilon=0.1):
    return np.mean(
        {
            "hinge": np.maximum(1.0 - targets * predictions, 0.0),
            "log_loss": np.logaddexp(0.0, -targets * predictions),
            "squared_error": 0.5 * (targets - predictions) ** 2,
            "epsilon_insensitive": np.maximum(np.abs(targets - predictions) - epsilon, 0.0),
        }[loss]
    )


def optimum(loss, features, targets):
    """The least regularised loss, by solvers that have nothing to do with ours."""
    n = len(targets)
    if loss in ("hinge", "log_loss"):
        options = {"C": 1.0 / (ALPHA * n), "fit_intercept": False, "max_iter": 10**6, "tol": 1e-8}
        solver = (
            LinearSVC(loss="hinge", **options) if loss == "hinge" else LogisticRegression(**options)
        )
        weights = solver.fit(features, targets).coef_[0]
    elif loss == "squared_error":
        gram = features.T @ features / n + ALPHA * np.eye(features.shape[1])
        weights = np.linalg.solve(gram, features.T @ targets / n)
    else:

        def objective(weights):
            predictions = features @ weights
            errors = predictions - targets
            slope = np.sign(errors) * (np.abs(errors) > 0.1)
            return (
                value_of(loss, predictions, targets) + 0.5 * ALPHA * weights @ weights,
                features.T @ slope / n + ALPHA * weights,
            )

        weights = minimize(
            objective, np.zeros(features.shape[1]), jac=True, options={"maxiter": 5000}
        ).x
    return value_of(loss, features @ weights, targets) + 0.5 * ALPHA * weights @ weights


def descent_of(loss, n_estimators=10):
    X, y = make_data()
    targets = np.sign(y) if loss in ("hinge", "log_loss") else y
    settings = SETTINGS | {"n_estimators": n_estimators}
    data = sample_path_data(X, targets, None, None, normalize_y=False, **settings)
    cuts = CutSequence(data.partitions, len(X))
    settings = DescentSettings(LOSSES[loss], ALPHA, epsilon=0.1, first_step=0.1)
    descent = _Descent(data.targets[None], cuts, settings, np.random.default_rng(0))
    return descent, cuts, data


@pytest.mark.parametrize("loss", list(LOSSES))
def test_cuts_keep_predictions(loss):
    descent, cuts, data = descent_of(loss)
    descent.start(500)
    for _ in range(len(cuts)):
        before = descent.predictions()
        descent.advance(1, 0)
        assert np.allclose(descent.predictions(), before, rtol=0.0, atol=1e-12)
    cells, n_cells = cells_at(data.partitions, 3.0)
    assert descent.n_cells == n_cells
    for own, plain in zip(descent.cells.T, cells.T, strict=True):
        assert len(np.unique(np.stack([own, plain]), axis=1)[0]) == len(np.unique(plain))


@pytest.mark.parametrize("loss", list(LOSSES))
def test_comes_near_the_optimum(loss):
    descent, cuts, data = descent_of(loss)
    for _ in range(len(cuts) - 1):
        descent.advance(1, 100)
    descent.advance(1, 100_000)
    features = indicators(*cells_at(data.partitions, 3.0))
    best = optimum(loss, features, data.targets)
    weights = descent.weights()[0]
    predictions = descent.predictions()[:, 0]
    own = value_of(loss, predictions, data.targets) + 0.5 * ALPHA * weights @ weights
    start = value_of(loss, np.zeros(len(data.targets)), data.targets)
    assert best - 1e-6 < own < best + 0.02 * (start - best)


GRADIENTS = {
    "hinge": lambda f, y: y * (y * f < 1.0),
    "log_loss": lambda f, y: y * expit(-y * f),
    "squared_error": lambda f, y: y - f,
    "epsilon_insensitive": lambda f, y: np.sign(y - f) * (abs(y - f) > 0.1),
}
"""Minus the derivatives of the losses with respect to a prediction."""


@pytest.mark.parametrize("product", [1.0 - 1e-12, 1.0, 2.0])
@pytest.mark.parametrize("loss", list(LOSSES))
def test_first_step_that_takes_all_former_weights_away(loss, product):
    """If ``learning_rate * alpha`` is 1, the first step leaves nothing of the former weights."""
    X, y = make_data()
    targets = np.sign(y) if loss in ("hinge", "log_loss") else y
    data = sample_path_data(X, targets, None, None, normalize_y=False, **SETTINGS)
    rate = 0.5
    alpha = product / rate
    settings = DescentSettings(LOSSES[loss], alpha, epsilon=0.1, first_step=rate)
    cuts = CutSequence(data.partitions, len(X))
    descent = _Descent(data.targets[None], cuts, settings, np.random.default_rng(0))
    descent.advance(len(cuts), 0)
    features = indicators(descent.cells, cuts.n_numbers)
    descent._state.vectors[:] = former = np.random.default_rng(1).normal(size=cuts.n_numbers)
    descent.start(300)
    weights = former
    rng = np.random.default_rng(0)
    rng.integers(len(X), size=0)  # the steps after cuts: none
    for t, point in enumerate(rng.integers(len(X), size=300)):
        length = rate / (1.0 + rate * alpha * t)
        step = GRADIENTS[loss](features[point] @ weights, data.targets[point])
        weights = (1.0 - length * alpha) * weights + length * step * features[point]
    np.testing.assert_allclose(descent.weights()[0], weights, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", list(LOSSES))
def test_path_whose_first_step_forgets_the_weights(loss):
    X, y = make_data(40)
    targets = np.sign(y) if loss in ("hinge", "log_loss") else y
    path = sgd_lifetime_path(X, targets, loss=loss, alpha=1.0, learning_rate=1.0, **SETTINGS)
    assert np.all(np.isfinite(path.training_error))


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_path_of_a_classifier(loss):
    X, y = make_data(500)
    labels = np.where(y > 0.0, "yes", "no")
    path = sgd_lifetime_path(
        X[:300], labels[:300], X[300:], labels[300:], loss=loss, alpha=1e-3, **SETTINGS
    )
    assert np.all(path.training_error[[0, -1]] <= [0.6, 0.1])
    best = path.validation_error.min()
    assert path.validation_error[path.index(path.best_lifetime())] == best < 0.1
    assert np.isnan(path.log_marginal_likelihood).all()
    assert len(path) > 80


@pytest.mark.parametrize("loss", ["squared_error", "epsilon_insensitive"])
def test_path_of_a_regression(loss):
    X, y = make_data(500)
    y = y + 7.0
    path = sgd_lifetime_path(X[:300], y[:300], X[300:], y[300:], loss=loss, **SETTINGS)
    assert abs(path.validation_error[0] - np.std(y[300:])) < 0.2
    assert path.validation_error.min() < 0.35
    again = sgd_lifetime_path(X[:300], y[:300], X[300:], y[300:], loss=loss, **SETTINGS)
    assert np.array_equal(path.validation_error, again.validation_error)


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_several_classes_are_one_against_the_rest(loss):
    X, y = make_data()
    classes = np.digitize(y, [-0.3, 0.4])
    data = sample_path_data(X, classes, None, None, normalize_y=False, **SETTINGS)
    cuts = CutSequence(data.partitions, len(X))
    settings = DescentSettings(LOSSES[loss], ALPHA, epsilon=0.1, first_step=0.1)

    def result(targets):
        descent = _Descent(targets, cuts, settings, np.random.default_rng(3))
        descent.start(200)
        descent.advance(len(cuts), 5)
        return descent.predictions()

    signs = [np.where(classes == k, 1.0, -1.0) for k in range(3)]
    together = result(np.stack(signs))
    for k in range(3):
        assert np.array_equal(together[:, k], result(signs[k][None])[:, 0])
    names = np.array(["low", "middle", "high"])[classes]
    path = sgd_lifetime_path(X, names, X, names, loss=loss, alpha=1e-3, **SETTINGS)
    assert np.array_equal(path.training_error, path.validation_error)
    assert path.training_error[-1] < 0.2 < 0.5 < path.training_error[0]


def test_all_lifetimes_and_no_steps():
    X, y = make_data(40)
    path = sgd_lifetime_path(
        X, y, loss="squared_error", first_steps=0, steps_per_cut=0, n_evaluations=None, **SETTINGS
    )
    assert np.all(np.diff(path.n_cells) == 1)
    assert np.allclose(path.training_error, np.std(y))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "huber"}, "loss must be one of"),
        ({"loss": "hinge", "alpha": 0.0}, "alpha must be positive and finite"),
        ({"loss": "hinge", "learning_rate": np.inf}, "learning_rate must be positive"),
        ({"loss": "hinge", "epsilon": -1.0}, "epsilon must not be negative"),
        ({"loss": "hinge", "first_steps": -1}, "`first_steps` must be at least 0"),
        ({"loss": "squared_error", "max_lifetime": -1.0}, "max_lifetime must be finite"),
        ({"loss": "squared_error", "max_lifetime": np.nan}, "max_lifetime must be finite"),
        ({"loss": "squared_error", "max_lifetime": np.inf}, "max_lifetime must be finite"),
        ({"loss": "squared_error", "n_estimators": 0}, "`n_estimators` must be at least 1"),
        ({"loss": "squared_error", "n_evaluations": 0}, "`n_evaluations` must be at least 1"),
        ({"loss": "hinge"}, "Unknown label type: continuous"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        sgd_lifetime_path(*make_data(), **options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("first_steps", 1.5),
        ("steps_per_cut", True),
        ("n_estimators", 2.0),
        ("n_evaluations", 1.5),
        ("max_lifetime", "long"),
        ("alpha", "small"),
        ("epsilon", None),
    ],
)
def test_arguments_of_wrong_types(name, value):
    with pytest.raises(TypeError, match=f"`{name}` must be"):
        sgd_lifetime_path(*make_data(), loss="squared_error", **{name: value})


def test_one_class_is_too_few():
    X, _ = make_data()
    with pytest.raises(ValueError, match="y must have at least two classes; got 1"):
        sgd_lifetime_path(X, np.ones(len(X)), loss="hinge")
