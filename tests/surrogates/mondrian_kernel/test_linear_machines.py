"""Classifier and support vector regression: their functions are those of the dual problem."""

import pickle

import numpy as np
import pytest
import sklearn
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from mondrian_bo.surrogates import (
    LaplaceKernel,
    MondrianKernelClassifier,
    MondrianKernelRegressor,
    MondrianKernelSVR,
    sgd_lifetime_path,
)

EXACT = {"tol": 1e-8, "max_iter": 10**6}
LOSSES = ["hinge", "log_loss"]


def make_data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.sin(6.0 * X[:, 0]) + X[:, 1] - 0.5 + 0.2 * rng.normal(size=n)


def dual_hinge(gram, signs, C):
    """Shares of the points in a support vector machine without intercept."""
    Q = gram * np.outer(signs, signs)
    found = minimize(
        lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1.0),
        np.zeros(len(signs)),
        jac=True,
        bounds=[(0.0, C)] * len(signs),
        options={"maxiter": 20000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-10},
    )
    return signs * found.x


def dual_log_loss(gram, signs, C):
    """Shares of the points in a logistic regression with a kernel: a fixed point."""

    def objective(a):
        values = gram @ a
        slope = -C * signs * expit(-signs * values)
        loss = C * np.logaddexp(0.0, -signs * values).sum() + 0.5 * a @ values
        return loss, gram @ (slope + a)

    found = minimize(objective, np.zeros(len(signs)), jac=True, options={"gtol": 1e-10})
    return found.x


def dual_epsilon_insensitive(gram, targets, C, epsilon):
    n = len(targets)

    def objective(both):
        difference = both[:n] - both[n:]
        slope = gram @ difference
        value = 0.5 * difference @ slope - targets @ difference + epsilon * both.sum()
        return value, np.concatenate([slope - targets + epsilon, targets - slope + epsilon])

    found = minimize(
        objective,
        np.zeros(2 * n),
        jac=True,
        bounds=[(0.0, C)] * (2 * n),
        options={"maxiter": 20000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-10},
    )
    return found.x[:n] - found.x[n:]


DUALS = {"hinge": dual_hinge, "log_loss": dual_log_loss}


@pytest.mark.parametrize("C", [0.3, 5.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_classifier_solves_the_dual_problem(loss, C):
    X, y = make_data()
    model = MondrianKernelClassifier(
        loss, n_estimators=20, lifetime=4.0, prior_variance=C, random_state=0, **EXACT
    ).fit(X, y > 0.0)
    rows = model.features_.transform(X).toarray()
    shares = DUALS[loss](rows @ rows.T, np.where(y > 0.0, 1.0, -1.0), C)
    assert np.allclose(model.decision_function(X), rows @ rows.T @ shares, atol=1e-3)
    new = make_data(seed=1)[0]
    cross = model.features_.transform(new).toarray() @ rows.T
    assert np.allclose(model.decision_function(new), cross @ shares, atol=1e-3)


@pytest.mark.parametrize(("C", "epsilon"), [(0.3, 0.0), (5.0, 0.2)])
def test_regression_solves_the_dual_problem(C, epsilon):
    X, y = make_data()
    y = 40.0 + 3.0 * y
    model = MondrianKernelSVR(
        20, 4.0, epsilon=epsilon, prior_variance=C, random_state=0, **EXACT
    ).fit(X, y)
    rows = model.features_.transform(X).toarray()
    scaled = (y - y.mean()) / y.std()
    shares = dual_epsilon_insensitive(rows @ rows.T, scaled, C, epsilon)
    expected = y.mean() + y.std() * (rows @ rows.T @ shares)
    assert np.allclose(model.predict(X), expected, atol=5e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_tends_to_the_machine_with_the_laplace_kernel(loss):
    X, y = make_data(80)
    signs = np.where(y > 0.0, 1.0, -1.0)
    kernel = LaplaceKernel(3.0)
    new = make_data(300, seed=1)[0]
    exact = kernel(new, X) @ DUALS[loss](kernel(X), signs, 1.0)
    errors = []
    for n_estimators in (20, 500):
        model = MondrianKernelClassifier(
            loss, n_estimators=n_estimators, lifetime=3.0, random_state=0, **EXACT
        ).fit(X, signs)
        errors.append(np.sqrt(np.mean((model.decision_function(new) - exact) ** 2)))
    assert errors[1] < 0.1
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_classifies_as_well_as_the_laplace_kernel(loss):
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, names = X[order], np.array(["red", "rose", "white"])[y[order]]
    train, test = slice(0, 100), slice(100, None)
    model = make_pipeline(
        MinMaxScaler(), MondrianKernelClassifier(loss, n_estimators=200, random_state=0)
    ).fit(X[train], names[train])
    exact = make_pipeline(MinMaxScaler(), SVC(kernel=LaplaceKernel(1.0))).fit(
        X[train], names[train]
    )
    assert model.score(X[test], names[test]) >= exact.score(X[test], names[test]) - 0.05
    assert set(model.predict(X[test])) == {"red", "rose", "white"}
    assert model.decision_function(X[test]).shape == (78, 3)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities(n_classes):
    X, y = make_data(1500)
    rng = np.random.default_rng(2)
    # Class 0 against the others is known with its probability.
    truth = expit(3.0 * y)
    others = rng.integers(1, n_classes, size=len(y))
    classes = np.where(rng.random(len(y)) < truth, 0, others)
    model = MondrianKernelClassifier("log_loss", lifetime=2.0, random_state=0)
    model.fit(X[:1000], classes[:1000])
    proba = model.predict_proba(X[1000:])
    assert proba.shape == (500, n_classes)
    assert np.allclose(proba.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X[1000:]))
    assert np.mean(np.abs(proba[:, 0] - truth[1000:])) < 0.15


def test_only_the_log_loss_has_probabilities():
    assert hasattr(MondrianKernelClassifier("log_loss"), "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        MondrianKernelClassifier().predict_proba([[0.0]])


@pytest.mark.parametrize("loss", LOSSES)
def test_path_of_the_classifier_chooses_its_lifetime(loss):
    rng = np.random.default_rng(0)
    X = rng.random((900, 2))
    board = (np.floor(3.0 * X[:, 0]) + np.floor(3.0 * X[:, 1])) % 2
    names = np.where(board == 1.0, "black", "white")
    parts = slice(0, 300), slice(300, 600), slice(600, None)
    model = MondrianKernelClassifier(loss, lifetime=20.0, prior_variance=10.0, random_state=0)
    path = model.lifetime_path(X[parts[0]], names[parts[0]], X[parts[1]], names[parts[1]])
    assert not hasattr(model, "coef_")
    best = path.best_lifetime()
    assert path.validation_error.min() < 0.5 * path.validation_error[0]
    chosen = model.set_params(lifetime=best).fit(X[parts[0]], names[parts[0]])
    assert 1.0 - chosen.score(X[parts[2]], names[parts[2]]) < path.validation_error.min() + 0.08


def test_path_is_that_of_the_same_problem():
    X, y = make_data(200)
    held_out = make_data(100, seed=1)
    model = MondrianKernelSVR(10, 3.0, epsilon=0.2, prior_variance=2.0, random_state=0)
    path = model.lifetime_path(X, 40.0 + 3.0 * y, held_out[0], 40.0 + 3.0 * held_out[1])
    plain = sgd_lifetime_path(
        X,
        y / y.std(),
        held_out[0],
        held_out[1] / y.std(),
        loss="epsilon_insensitive",
        epsilon=0.2,
        alpha=1.0 / (2.0 * 200),
        n_estimators=10,
        max_lifetime=3.0,
        random_state=0,
    )
    assert np.allclose(path.training_error, 3.0 * y.std() * plain.training_error)
    assert np.allclose(path.validation_error, 3.0 * y.std() * plain.validation_error)
    fitted = model.fit(X, y).predict(X)
    assert abs(path.training_error[-1] / 3.0 - np.sqrt(np.mean((fitted - y) ** 2))) < 0.05
    assert np.isnan(model.lifetime_path(X, y).validation_error).all()


def test_withstands_outliers():
    X, y = make_data(200)
    X_new, y_new = make_data(200, seed=1)
    y[::10] += 40.0
    error = {
        type(model): np.sqrt(np.mean((model.fit(X, y).predict(X_new) - y_new) ** 2))
        for model in (
            MondrianKernelSVR(50, 3.0, epsilon=0.0, random_state=0),
            MondrianKernelRegressor(50, 3.0, random_state=0),
        )
    }
    assert error[MondrianKernelSVR] < 0.2 * error[MondrianKernelRegressor]


@pytest.mark.parametrize("model", [MondrianKernelClassifier(), MondrianKernelSVR()])
def test_far_from_the_data_the_prior_remains(model):
    X, y = make_data()
    targets = (y > 0.0).astype(float) if isinstance(model, MondrianKernelClassifier) else y
    model.set_params(lifetime=5.0, random_state=0).fit(X, targets)
    far = np.full((1, 2), 50.0)
    value = model.decision_function(far) if hasattr(model, "classes_") else model.predict(far)
    assert np.allclose(value, 0.0 if hasattr(model, "classes_") else y.mean(), atol=1e-6)


def test_in_a_search_and_pickled():
    X, y = make_data(150)
    search = GridSearchCV(
        MondrianKernelClassifier(random_state=0), {"lifetime": [1e-3, 3.0], "loss": LOSSES}
    ).fit(X, y > 0.0)
    assert search.best_params_["lifetime"] == 3.0
    replica = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(replica.decision_function(X), search.decision_function(X))


@pytest.mark.parametrize(
    "model",
    [
        MondrianKernelClassifier(n_estimators=3, random_state=0),
        MondrianKernelSVR(3, random_state=0),
    ],
)
def test_frames_as_output_of_transformers_change_nothing(model):
    """The features are sparse, which scikit-learn refuses as the output of a transformer."""
    pytest.importorskip("pandas")
    X, y = make_data(60)
    targets = (y > 0.0).astype(float)
    expected = model.fit(X, targets).predict(X)
    stored = pickle.dumps(model)
    with sklearn.config_context(transform_output="pandas"):
        assert np.array_equal(model.fit(X, targets).predict(X), expected)
        replica = pickle.loads(stored)
        assert np.array_equal(replica.predict(X), expected)
        replica.partial_fit(X + 0.01, targets)
    model.partial_fit(X + 0.01, targets)
    assert np.array_equal(replica.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("model", "targets", "message"),
    [
        (MondrianKernelClassifier("huber"), [0, 1, 0], "'loss' parameter"),
        (MondrianKernelClassifier(prior_variance=0.0), [0, 1, 0], "'prior_variance' parameter"),
        (MondrianKernelClassifier(), [1, 1, 1], "y must have at least two classes"),
        (MondrianKernelClassifier(), [0.1, 0.2, 0.3], "Unknown label type"),
        (MondrianKernelSVR(epsilon=-1.0), [0.1, 0.2, 0.3], "'epsilon' parameter"),
        (MondrianKernelSVR(), [0.1, np.nan, 0.3], "NaN"),
        (MondrianKernelClassifier(), None, "the target y is None"),
        (MondrianKernelSVR(), None, "the target y is None"),
        (MondrianKernelSVR(), [], "inconsistent numbers of samples"),
    ],
)
def test_wrong_arguments(model, targets, message):
    with pytest.raises(ValueError, match=message):
        model.fit([[0.0], [1.0], [2.0]], targets)
    with pytest.raises(ValueError, match=message):
        model.lifetime_path([[0.0], [1.0], [2.0]], targets)
    with pytest.raises(NotFittedError):
        model.predict([[0.0]])
