"""Hyper-parameters of scikit-learn models on the data sets that scikit-learn ships.

Problems are small: an evaluation takes some 20 to 100 ms on one thread. Every part is seeded, so
that a value depends on the parameters alone. The optima are unknown.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from mondrian_bo.benchmarks.problems.base import Problem, problem
from mondrian_bo.search_space import Categorical, Condition, Float, Int, SearchSpace
from mondrian_bo.shared.array_types import AnyArray, FloatArray

__all__ = ["LEARNING_PROBLEMS", "PERCEPTRON_SPACE", "perceptron", "shuffled_data"]

_FOLDS = 3
"""Folds of cross-validation: few, so that evaluations are fast."""


class _Data(NamedTuple):
    x: FloatArray
    y: AnyArray


@cache
def shuffled_data(name: str, n_rows: int) -> _Data:
    """Return a fixed random subset of the rows of a data set of scikit-learn."""
    from sklearn import datasets

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:n_rows]
    return _Data(x[rows], y[rows])


def _cross_validated(model: Any, data: _Data, scoring: str) -> float:
    """Return the negative mean score over folds of consecutive rows, which come shuffled.

    Returns NaN if the fit of any fold fails.
    """
    from sklearn.model_selection import cross_val_score

    with warnings.catch_warnings():
        # The problems include few iterations, and parameters with which models do not converge.
        warnings.simplefilter("ignore")
        try:
            scores = cross_val_score(model, *data, cv=_FOLDS, scoring=scoring, error_score=np.nan)
        except ValueError:
            # All fits failed.
            return math.nan
    return float(-np.mean(scores))


def _support_vectors(params: Mapping[str, Any]) -> float:
    from sklearn.svm import SVC

    model = SVC(C=params["C"], gamma=params["gamma"], kernel=params["kernel"], coef0=1.0)
    return 1.0 + _cross_validated(model, shuffled_data("digits", 400), "accuracy")


def _boosting(params: Mapping[str, Any]) -> float:
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        max_iter=20, max_bins=32, early_stopping=False, random_state=0, **params
    )
    return _cross_validated(model, shuffled_data("diabetes", 442), "neg_root_mean_squared_error")


def perceptron(params: Mapping[str, Any]) -> float:
    """Return the cross-validated log loss of a perceptron with equal layers on digits."""
    from sklearn.neural_network import MLPClassifier

    settings = dict(params)
    layers = [settings.pop("width")] * settings.pop("depth")
    model = MLPClassifier(layers, max_iter=6, random_state=0, **settings)
    x, y = shuffled_data("digits", 360)
    return _cross_validated(model, _Data(x / 16.0, y), "neg_log_loss")


def _pipeline(params: Mapping[str, Any]) -> float:
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import RobustScaler, StandardScaler
    from sklearn.svm import SVC

    model: Any
    if params["model"] == "support vectors":
        model = SVC(C=params["svm_C"], gamma=params["svm_gamma"])
    elif params["model"] == "logistic":
        model = LogisticRegression(C=params["logistic_C"], max_iter=50)
    elif params["model"] == "neighbours":
        model = KNeighborsClassifier(params["n_neighbors"], p=params["p"], weights="distance")
    else:
        model = ExtraTreesClassifier(
            10,
            max_features=params["max_features"],
            min_samples_leaf=params["min_samples_leaf"],
            random_state=0,
        )
    scalers = {"none": (), "standard": (StandardScaler(),), "robust": (RobustScaler(),)}
    steps = (*scalers[params["scaler"]], model)
    return 1.0 + _cross_validated(
        make_pipeline(*steps), shuffled_data("breast_cancer", 300), "roc_auc"
    )


_SUPPORT_VECTORS_SPACE = SearchSpace(
    {
        "C": Float(1e-3, 1e3, log=True),
        "gamma": Float(1e-6, 1, log=True),
        "kernel": Categorical(("rbf", "poly", "sigmoid")),
    }
)
"""Two numbers and a choice of a support vector machine; ranges are our choice."""

_BOOSTING_SPACE = SearchSpace(
    {
        "learning_rate": Float(0.01, 1, log=True),
        "max_leaf_nodes": Int(2, 64, log=True),
        "min_samples_leaf": Int(1, 100, log=True),
        "l2_regularization": Float(1e-3, 1e3, log=True),
        "max_features": Float(0.1, 1),
    }
)
"""Five numbers of histogram gradient boosting; ranges are our choice."""

PERCEPTRON_SPACE = SearchSpace(
    {
        "depth": Int(1, 3),
        "width": Int(4, 64, log=True),
        "activation": Categorical(("relu", "tanh", "logistic")),
        "alpha": Float(1e-6, 1, log=True),
        "batch_size": Int(16, 128, log=True),
        "learning_rate_init": Float(1e-4, 0.3, log=True),
        "beta_1": Float(0.5, 0.99),
    }
)
"""Six numbers and a choice of a perceptron trained by Adam; ranges are our choice."""

_PIPELINE_SPACE = SearchSpace(
    {
        "scaler": Categorical(("none", "standard", "robust")),
        "model": Categorical(("support vectors", "logistic", "neighbours", "trees")),
        "svm_C": Float(1e-3, 1e3, log=True, condition=Condition("model", ("support vectors",))),
        "svm_gamma": Float(1e-6, 10, log=True, condition=Condition("model", ("support vectors",))),
        "logistic_C": Float(1e-4, 1e4, log=True, condition=Condition("model", ("logistic",))),
        "n_neighbors": Int(1, 50, log=True, condition=Condition("model", ("neighbours",))),
        "p": Float(1, 4, condition=Condition("model", ("neighbours",))),
        "max_features": Float(0.05, 1, condition=Condition("model", ("trees",))),
        "min_samples_leaf": Int(1, 50, log=True, condition=Condition("model", ("trees",))),
    }
)
"""A scaler, one of four models, and the parameters of each model; ranges are our choice."""

_development = partial(problem, optimum=None, group="real", tolerance=0.0)
"""Makes a development problem that trains a model; its optimum is unknown."""

_held_out = partial(_development, half="held-out", tolerance=0.01)
"""Makes a held-out problem that trains a model."""

LEARNING_PROBLEMS: tuple[Problem, ...] = (
    _development(
        "real_support_vectors",
        _SUPPORT_VECTORS_SPACE,
        _support_vectors,
        "error of a support vector machine on digits",
    ),
    _held_out(
        "real_boosting",
        _BOOSTING_SPACE,
        _boosting,
        "RMSE of histogram gradient boosting on diabetes",
    ),
    _held_out(
        "real_perceptron",
        PERCEPTRON_SPACE,
        perceptron,
        "log loss of a multilayer perceptron on digits",
    ),
    _development(
        "real_pipeline",
        _PIPELINE_SPACE,
        _pipeline,
        "1 - AUC of a scaler and one of four models on breast cancer",
    ),
)
"""Problems that train real models."""
