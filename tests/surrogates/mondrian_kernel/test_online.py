"""Streams for estimators of the Mondrian kernel without a closed form, and for the mixture."""

from __future__ import annotations

import pickle
import tracemalloc
from copy import deepcopy

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from mondrian_bo.surrogates import (
    MondrianKernelClassifier,
    MondrianKernelMixtureRegressor,
    MondrianKernelSVR,
)


def make_data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.sin(5.0 * X[:, 0]) + 0.1 * rng.normal(size=n)


def classes_of(X, n_classes):
    return np.array(["a", "b", "c"])[np.floor(n_classes * X[:, 0]).astype(int)]


def descended(rows, targets, gradient, prior_variance, first_step, start):
    """Gradient descent in plain numpy, on dense features."""
    weights = np.zeros(rows.shape[1])
    for i, (row, target) in enumerate(zip(rows, targets, strict=True)):
        n = start + i + 1
        alpha = 1.0 / (prior_variance * n)
        rate = first_step / (1.0 + first_step * alpha * n)
        step = gradient(row @ weights, target)
        weights = (1.0 - rate * alpha) * weights + rate * step * row
    return weights


GRADIENTS = {
    "hinge": lambda f, y: y * (y * f < 1.0),
    "log_loss": lambda f, y: y * expit(-y * f),
}


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifier_descends(loss, n_classes):
    X, _ = make_data()
    y = classes_of(X, n_classes)
    classes = np.array(["a", "b", "c"])[:n_classes]
    options = {"n_estimators": 7, "lifetime": 3.0, "prior_variance": 2.0, "random_state": 0}
    models = []
    for size in (1, 13):
        model = MondrianKernelClassifier(loss, **options)
        model.partial_fit(X[:20], y[:20], classes=classes)
        for start in range(20, len(y), size):
            model.partial_fit(X[start : start + size], y[start : start + size])
        models.append(model)
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-10)
    rows = models[0].features_.transform(X).toarray()
    positive = classes[1:] if n_classes == 2 else classes
    for label, weights in zip(positive, models[0].coef_, strict=True):
        signs = np.where(y == label, 1.0, -1.0)
        expected = descended(rows, signs, GRADIENTS[loss], 2.0, 1.0, 0)
        np.testing.assert_allclose(weights, expected, atol=1e-10)


@pytest.mark.parametrize("prior_variance", [1e-17, 1e-9, 1e-7, 1e-3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_small_scales_of_the_weights(prior_variance, n_classes):
    """The factor of all weights shrinks to ``prior_variance`` in the first step, then as 1/n."""
    X, _ = make_data(60)
    y = classes_of(X, n_classes)
    model = MondrianKernelClassifier(
        "log_loss", n_estimators=7, lifetime=3.0, prior_variance=prior_variance, random_state=0
    )
    classes = np.array(["a", "b", "c"])[:n_classes]
    for x, label in zip(X, y, strict=True):
        model.partial_fit([x], [label], classes=classes)
    rows = model.features_.transform(X).toarray()
    positive = classes[1:] if n_classes == 2 else classes
    for label, weights in zip(positive, model.coef_, strict=True):
        signs = np.where(y == label, 1.0, -1.0)
        expected = descended(rows, signs, GRADIENTS["log_loss"], prior_variance, 1.0, 0)
        np.testing.assert_allclose(weights, expected, rtol=1e-9, atol=1e-30)


def test_a_step_does_not_copy_the_weights():
    X, _ = make_data(3000)
    y = np.where(X[:, 0] > 0.5, 1.0, 0.0)
    model = MondrianKernelSVR(10, 1000.0, random_state=0).partial_fit(X, y)
    model.partial_fit(X[:1] + 0.001, y[:1])
    memory = model.coef_.nbytes
    assert memory > 200_000
    peaks = []
    tracemalloc.start()
    for x in X[:20] + 0.002:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        model.partial_fit([x], [1.0])
        model.predict([x])
        peaks.append(tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    # Arrays that grow by a factor are copied in few calls.
    assert np.median(peaks) < 0.5 * memory


def test_weights_are_an_array_to_read_to_set_and_to_pickle():
    X, y = make_data(60)
    model = MondrianKernelSVR(7, 3.0, random_state=0).partial_fit(X[:50], y[:50])
    for x, target in zip(X[50:], y[50:], strict=True):
        model.partial_fit([x], [target])
    before = model.coef_
    copied = pickle.loads(pickle.dumps(model))
    # Versions whose estimators had an attribute `coef_` have it in their pickles.
    state = {key: value for key, value in vars(model).items() if key != "_cell_weights"}
    former = MondrianKernelSVR.__new__(MondrianKernelSVR)
    former.__setstate__(state | {"features_": deepcopy(model.features_), "coef_": before.copy()})
    for other in (model, copied, former):
        other.partial_fit(X[:1] + 0.01, y[:1])
        assert other.coef_.shape == (1, other.features_.partitions_.n_cells)
        np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-12)
        assert not np.array_equal(other.coef_[:, : before.shape[1]], before)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(copied)).coef_, copied.coef_)
    model.coef_ = np.zeros_like(model.coef_)
    np.testing.assert_allclose(model.predict(X), y[:50].mean(), rtol=1e-12)


def test_support_vector_regression_descends():
    X, y = make_data()
    model = MondrianKernelSVR(7, 3.0, epsilon=0.05, random_state=0).partial_fit(X[:30], y[:30])
    model.partial_fit(X[30:], y[30:])
    scaled = (y - y[:30].mean()) / y[:30].std()
    rows = model.features_.transform(X).toarray()
    gradient = lambda f, z: np.sign(z - f) * (abs(z - f) > 0.05)  # noqa: E731
    expected = descended(rows, scaled, gradient, 1.0, 0.1, 0)
    np.testing.assert_allclose(model.coef_[0], expected, atol=1e-10)
    predicted = y[:30].mean() + y[:30].std() * rows @ expected
    np.testing.assert_allclose(model.predict(X), predicted, atol=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@pytest.mark.parametrize("prior_variance", [1e-17, 1e-300])
def test_classifier_descends_with_hardly_any_prior_variance(loss, prior_variance):
    """The first step forgets all weights: their share that remains is 0 after rounding."""
    X, _ = make_data(40)
    y = classes_of(X, 2)
    model = MondrianKernelClassifier(
        loss, n_estimators=7, lifetime=3.0, prior_variance=prior_variance, random_state=0
    ).partial_fit(X, y)
    rows = model.features_.transform(X).toarray()
    signs = np.where(y == "b", 1.0, -1.0)
    expected = descended(rows, signs, GRADIENTS[loss], prior_variance, 1.0, 0)
    assert np.any(expected != 0.0)
    np.testing.assert_allclose(model.coef_[0], expected, rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_a_stream_learns_nearly_as_well_as_a_batch(loss):
    X, _ = make_data(2000)
    y = classes_of(X, 3)
    Q, _ = make_data(1000, seed=1)
    options = {"lifetime": 5.0, "random_state": 0}
    stream = MondrianKernelClassifier(loss, **options).partial_fit(X, y)
    batch = MondrianKernelClassifier(loss, **options).fit(X, y)
    truth = classes_of(Q, 3)
    assert stream.score(Q, truth) > batch.score(Q, truth) - 0.03
    assert batch.partial_fit(X[:50], y[:50]).score(Q, truth) > 0.9


def test_regression_of_a_stream():
    X, y = make_data(2000)
    Q, truth = make_data(500, seed=1)
    model = MondrianKernelSVR(lifetime=5.0, random_state=0).partial_fit(X, y)
    assert model.score(Q, truth) > 0.9


def test_errors_of_streams():
    X, _ = make_data(20)
    y = classes_of(X, 2)
    model = MondrianKernelClassifier()
    with pytest.raises(ValueError, match="at least two classes"):
        model.partial_fit(X[:1], y[:1])
    assert not hasattr(model, "classes_")
    model.partial_fit(X, y)
    before = model.coef_.copy()
    for arguments, message in [
        ((X, np.full(20, "z")), "not among the classes"),
        ((X[:, :1], y), "features"),
        ((X, y[:3]), "one label per row"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(*arguments)
    with pytest.raises(ValueError, match="not those of the first call"):
        model.partial_fit(X, y, classes=["a", "c"])
    np.testing.assert_array_equal(model.coef_, before)


# The posterior over the lifetime ------------------------------------------------------------------


def test_posterior_over_the_lifetime_follows_a_stream():
    """Evidence and predictions from dense kernels of the extended partitions at each lifetime."""
    X, y = make_data(45)
    model = MondrianKernelMixtureRegressor(
        4, 3.0, noise_variance=0.1, max_models=None, random_state=0
    ).fit(X[:20], y[:20])
    first = model.posterior_.probabilities
    model.partial_fit(X[20:33], y[20:33]).partial_fit(X[33:], y[33:])
    assert len(model.posterior_.probabilities) > len(first)
    unit, centred = y.var(), y - y.mean()
    Q = X[::5]  # learnt points, whose cells are known
    logs, means = [], []
    for lifetime in model.path_.lifetimes:
        cells = model._partitions.at_lifetime(float(lifetime)).cells
        kernel = unit * np.mean(cells[:, None] == cells[None], axis=2)
        covariance = kernel + 0.1 * unit * np.eye(45)
        logs.append(multivariate_normal(np.zeros(45), covariance).logpdf(centred))
        means.append(y.mean() + kernel[::5] @ np.linalg.solve(covariance, centred))
    np.testing.assert_allclose(model.path_.log_marginal_likelihood, logs, rtol=1e-8)
    shares = np.diff(np.append(model.path_.lifetimes, 3.0)) / 3.0
    weights = shares * np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    np.testing.assert_allclose(model.posterior_.probabilities, weights, atol=1e-9)
    np.testing.assert_allclose(model.predict(Q), weights @ np.array(means), atol=1e-8)


def test_first_call_of_the_mixture_is_fit():
    X, y = make_data(30)
    one, other = (MondrianKernelMixtureRegressor(4, 2.0, random_state=0) for _ in range(2))
    np.testing.assert_array_equal(one.partial_fit(X, y).predict(X), other.fit(X, y).predict(X))
