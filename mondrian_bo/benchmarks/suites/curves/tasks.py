"""Models of scikit-learn on its own data sets, trained step by step over a grid of settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mondrian_bo.shared.array_types import FloatArray

__all__ = ["TASKS", "Levels", "Outcome", "Task"]

Levels: TypeAlias = Mapping[str, tuple[float, ...]]
"""The recorded values of each parameter, by name."""

Outcome: TypeAlias = Literal["last", "best", "mean"]
"""Which summary of a curve is the value of its trial."""

_TRAIN_SHARE = 2.0 / 3.0
"""Share of the samples that train; the others validate. Our choice."""

_LEAST_PROBABILITY = 1e-6
"""Probabilities are clipped here, so that one sample cannot dominate a log-loss. Our choice."""


@dataclass(frozen=True)
class Task:
    """A model that is trained with each setting of a grid, and validated after each step.

    Attributes
    ----------
    description : str
        One line for listings.
    levels : mapping of str to tuple of float
        Values of each setting. The grid is their product.
    n_steps : int
        Number of reports of a complete training.
    outcome : {"last", "best", "mean"}
        What the trial returns: the last report, the smallest, or the mean of all (folds).
    half : {"development", "held-out"}
        Whether defaults may be chosen on it.
    train : callable
        Takes the settings and yields the reports, which are minimised.
    """

    description: str
    levels: Levels
    n_steps: int
    outcome: Outcome
    half: Literal["development", "held-out"]
    train: Callable[[Mapping[str, float]], Iterator[float]]


def _geometric(low: float, high: float, n: int) -> tuple[float, ...]:
    return tuple(float(f"{value:.3g}") for value in np.geomspace(low, high, n))


@cache
def _split(load: Callable[..., Any], scale_targets: bool = False) -> tuple[Any, ...]:
    """Return inputs that train and that validate, and their targets, as `train_test_split` does."""
    x, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    n_train = int(_TRAIN_SHARE * len(x))
    train, valid = order[:n_train], order[n_train:]
    x = StandardScaler().fit(x[train]).transform(x)
    if scale_targets:
        y = (y - y[train].mean()) / y[train].std()
    return x[train], x[valid], y[train], y[valid]


def _log_loss(targets: Any, probabilities: FloatArray, classes: Any) -> float:
    if not np.isfinite(probabilities).all():
        return float("nan")
    clipped = np.clip(probabilities, _LEAST_PROBABILITY, 1.0)
    return float(
        log_loss(targets, clipped / clipped.sum(axis=1, keepdims=True), labels=list(classes))
    )


_PERCEPTRON_GRID: Levels = {
    "learning_rate": _geometric(1e-4, 1e-1, 7),
    "n_hidden": (8.0, 24.0, 72.0),
    "alpha": _geometric(1e-4, 1e1, 5),
    "batch_size": (16.0, 64.0, 256.0),
}
"""Values of the settings of `_perceptron`: our choice."""


def _perceptron(settings: Mapping[str, float]) -> Iterator[float]:
    train_x, valid_x, train_y, valid_y = _split(load_digits)
    model = MLPClassifier(
        (int(settings["n_hidden"]),),
        learning_rate_init=settings["learning_rate"],
        alpha=settings["alpha"],
        batch_size=int(settings["batch_size"]),
        random_state=0,
    )
    classes = np.arange(10)
    while True:
        model.partial_fit(train_x, train_y, classes=classes)
        yield _log_loss(valid_y, model.predict_proba(valid_x), classes)


_LINEAR_GRID: Levels = {
    "eta0": _geometric(1e-4, 1e1, 8),
    "alpha": _geometric(1e-6, 1e0, 5),
    "power_t": (0.0, 0.25, 0.5),
    "loss": (0.0, 1.0, 2.0),
}
"""Values of the settings of `_linear`: our choice."""


def _linear(settings: Mapping[str, float]) -> Iterator[float]:
    train_x, valid_x, train_y, valid_y = _split(load_digits)
    model = SGDClassifier(
        loss=("hinge", "log_loss", "modified_huber")[int(settings["loss"])],
        alpha=settings["alpha"],
        learning_rate="invscaling",
        power_t=settings["power_t"],
        eta0=settings["eta0"],
        random_state=0,
    )
    classes = np.arange(10)
    # Few samples for each step: the error is a noisy curve, as that of large data sets is.
    rng = np.random.default_rng(1)
    while True:
        chosen = rng.choice(len(train_x), 200, replace=False)
        model.partial_fit(train_x[chosen], train_y[chosen], classes=classes)
        yield float(np.mean(model.predict(valid_x) != valid_y))


_REGRESSION_GRID: Levels = {
    "learning_rate": _geometric(1e-4, 1e0, 7),
    "n_hidden": (10.0, 50.0),
    "n_layers": (1.0, 2.0),
    "momentum": (0.0, 0.7, 0.95),
    "alpha": _geometric(1e-3, 1e1, 4),
}
"""Values of the settings of `_regression_perceptron`: our choice."""


def _regression_perceptron(settings: Mapping[str, float]) -> Iterator[float]:
    train_x, valid_x, train_y, valid_y = _split(load_diabetes, scale_targets=True)
    model = MLPRegressor(
        hidden_layer_sizes=(int(settings["n_hidden"]),) * int(settings["n_layers"]),
        solver="sgd",
        learning_rate_init=settings["learning_rate"],
        momentum=settings["momentum"],
        alpha=settings["alpha"],
        batch_size=32,
        random_state=0,
    )
    while True:
        try:
            model.partial_fit(train_x, train_y)
            predicted = model.predict(valid_x)
        except ValueError:
            # Weights have overflowed.
            yield float("nan")
            continue
        yield float(np.mean((predicted - valid_y) ** 2))


def _boosting(train_x: FloatArray, train_y: Any, settings: Mapping[str, float]) -> Any:
    is_regression = train_y.dtype.kind == "f"
    estimator = GradientBoostingRegressor if is_regression else GradientBoostingClassifier
    return estimator(
        learning_rate=settings["learning_rate"],
        max_depth=int(settings["max_depth"]),
        subsample=settings["subsample"],
        min_samples_leaf=int(settings["min_samples_leaf"]),
        max_features=settings["max_features"],
        n_estimators=_BOOSTING_STEPS * _STAGES,
        random_state=0,
    ).fit(train_x, train_y)


_STAGES = 4
"""Trees of a report in boosting: our choice."""

_BOOSTING_STEPS = 50
"""Reports of a complete boosting: our choice."""


def _boosting_grid(fastest: float, max_features: tuple[float, ...]) -> dict[str, tuple[float, ...]]:
    return {
        "learning_rate": _geometric(1e-2, fastest, 7),
        "max_depth": (1.0, 2.0, 3.0, 5.0),
        "subsample": (0.4, 0.7, 1.0),
        "min_samples_leaf": (1.0, 10.0),
        "max_features": max_features,
    }


def _boosted_diabetes(settings: Mapping[str, float]) -> Iterator[float]:
    train_x, valid_x, train_y, valid_y = _split(load_diabetes, scale_targets=True)
    model = _boosting(train_x, train_y, settings)
    staged = list(model.staged_predict(valid_x))[_STAGES - 1 :: _STAGES]
    yield from (float(np.mean((one - valid_y) ** 2)) for one in staged)


def _boosted_cancer(settings: Mapping[str, float]) -> Iterator[float]:
    train_x, valid_x, train_y, valid_y = _split(load_breast_cancer)
    model = _boosting(train_x, train_y, settings)
    staged = list(model.staged_predict_proba(valid_x))[_STAGES - 1 :: _STAGES]
    yield from (_log_loss(valid_y, one, (0, 1)) for one in staged)


_N_FOLDS = 20
"""Folds of a cross-validation: our choice."""


_FOLDS_GRID: Levels = {
    "C": _geometric(1e-2, 1e3, 9),
    "gamma": _geometric(1e-3, 1e1, 9),
    "components": (4.0, 8.0, 16.0, 32.0),
}
"""Values of the settings of `_folds`: our choice."""


def _folds(settings: Mapping[str, float]) -> Iterator[float]:
    pixels, digits = load_digits(return_X_y=True)
    chosen = np.random.default_rng(2).permutation(len(digits))[:600]
    x, y = pixels[chosen] / 16.0, digits[chosen]
    folds = StratifiedKFold(_N_FOLDS, shuffle=True, random_state=0).split(x, y)
    for train, valid in folds:
        pca = PCA(int(settings["components"]), svd_solver="full").fit(x[train])
        model = SVC(C=settings["C"], gamma=settings["gamma"], random_state=0)
        model.fit(pca.transform(x[train]), y[train])
        yield float(np.mean(model.predict(pca.transform(x[valid])) != y[valid]))


TASKS: dict[str, Task] = {
    "mlp_digits": Task(
        "log-loss of a perceptron (Adam) on the digits",
        _PERCEPTRON_GRID,
        50,
        "last",
        "development",
        _perceptron,
    ),
    "boosting_diabetes": Task(
        "squared error of gradient boosting on the diabetes data",
        _boosting_grid(fastest=5e-1, max_features=(0.3, 1.0)),
        _BOOSTING_STEPS,
        "last",
        "development",
        _boosted_diabetes,
    ),
    "svm_folds": Task(
        "cross-validated error of a support vector machine on 600 digits",
        _FOLDS_GRID,
        _N_FOLDS,
        "mean",
        "development",
        _folds,
    ),
    "sgd_digits": Task(
        "error of a linear classifier (stochastic gradient descent) on the digits",
        _LINEAR_GRID,
        60,
        "last",
        "held-out",
        _linear,
    ),
    "mlp_diabetes": Task(
        "squared error of a perceptron (momentum) on the diabetes data; some settings diverge",
        _REGRESSION_GRID,
        60,
        "last",
        "held-out",
        _regression_perceptron,
    ),
    "boosting_cancer": Task(
        "log-loss of gradient boosting on the breast cancer data; the best stage counts",
        _boosting_grid(fastest=1e0, max_features=(0.2, 0.6)),
        _BOOSTING_STEPS,
        "best",
        "held-out",
        _boosted_cancer,
    ),
}
"""The recorded tasks by name."""
