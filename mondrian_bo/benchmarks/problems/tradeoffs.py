"""Real problems with several outcomes: error against cost of a pipeline, a network of bounded size.

Both learn the digits data set of scikit-learn. Every part is seeded, so that outcomes depend on the
parameters alone. The optima are unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mondrian_bo.benchmarks.problems.learning import PERCEPTRON_SPACE, perceptron, shuffled_data
from mondrian_bo.benchmarks.problems.outcomes import OutcomeProblem, Outcomes
from mondrian_bo.search_space import Categorical, Condition, Float, Int, SearchSpace
from mondrian_bo.shared.array_types import AnyArray, FloatArray

__all__ = ["TRADEOFF_PROBLEMS", "n_weights"]

_N_ROWS = 450
"""Rows of the pipeline's data: few, so that evaluations are fast."""

_N_TRAINING = 300
"""Rows that a pipeline learns from; the others measure its error and its cost."""

_INPUTS, _CLASSES = 64, 10
"""Inputs and classes of the digits data."""

_LARGEST_COST = 4.6
"""Decimal logarithm of a bound of the operations per prediction: a projection on 64 components and
distances to 300 points, 64 * 64 + 300 * 64 multiply-adds, are 4.37."""

_WEIGHT_LIMIT = 1000
"""Bound of the weights of the perceptron: one layer of 13 units, where the space goes up to three
layers of 64."""

_GUESSING = math.log(_CLASSES)
"""Log loss of equal probabilities for all classes."""


def _error_and_cost(params: Mapping[str, Any]) -> Outcomes:
    """Return the error of a pipeline and the decimal logarithm of its operations per prediction.

    Wall time is too noisy for an objective of some microseconds. Operations are multiply-adds of
    the projection and of linear models, distances and kernels, and visited nodes of trees.
    """
    from sklearn.decomposition import PCA

    x, y = shuffled_data("digits", _N_ROWS)
    train, test = slice(None, _N_TRAINING), slice(_N_TRAINING, None)
    n_components = params["n_components"]
    projection = PCA(n_components, svd_solver="full").fit(x[train])
    inputs = projection.transform(x) / 10.0
    model, operations = _fitted(params, inputs[train], y[train], inputs[test])
    error = float(np.mean(model.predict(inputs[test]) != y[test]))
    return Outcomes((error, math.log10(_INPUTS * n_components + operations)))


def _fitted(
    params: Mapping[str, Any], x: FloatArray, y: AnyArray, new: FloatArray
) -> tuple[Any, float]:
    """Return a fitted classifier and its mean number of operations per prediction of `new`."""
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import RidgeClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    d = x.shape[1]
    model: Any
    if params["model"] == "linear":
        model = RidgeClassifier(alpha=params["alpha"]).fit(x, y)
        return model, d * _CLASSES
    if params["model"] == "neighbours":
        n_kept = params["n_kept"]
        n_neighbors = min(params["n_neighbors"], n_kept)
        model = KNeighborsClassifier(n_neighbors, weights="distance").fit(x[:n_kept], y[:n_kept])
        return model, d * n_kept
    if params["model"] == "support vectors":
        model = SVC(C=params["C"], gamma=params["gamma"]).fit(x, y)
        return model, d * len(model.support_)
    model = ExtraTreesClassifier(
        params["n_trees"],
        max_depth=params["max_depth"],
        max_features=params["max_features"],
        random_state=0,
    ).fit(x, y)
    paths, _ = model.decision_path(new)
    return model, paths.nnz / len(new)


def n_weights(depth: int, width: int) -> int:
    """Return the number of weights, biases included, of a perceptron with equal hidden layers."""
    return (_INPUTS + 1) * width + (depth - 1) * (width + 1) * width + (width + 1) * _CLASSES


def _small_perceptron(params: Mapping[str, Any]) -> Outcomes:
    size = n_weights(params["depth"], params["width"])
    return Outcomes((perceptron(params),), (size / _WEIGHT_LIMIT - 1.0,))


def _only(model: str) -> Condition:
    return Condition("model", (model,))


_PIPELINE_SPACE = SearchSpace(
    {
        "n_components": Int(1, 64, log=True),
        "model": Categorical(("linear", "neighbours", "support vectors", "trees")),
        "alpha": Float(1e-3, 1e3, log=True, condition=_only("linear")),
        "n_kept": Int(10, _N_TRAINING, log=True, condition=_only("neighbours")),
        "n_neighbors": Int(1, 20, log=True, condition=_only("neighbours")),
        "C": Float(1e-2, 1e3, log=True, condition=_only("support vectors")),
        "gamma": Float(1e-4, 1.0, log=True, condition=_only("support vectors")),
        "n_trees": Int(1, 100, log=True, condition=_only("trees")),
        "max_depth": Int(1, 20, condition=_only("trees")),
        "max_features": Float(0.05, 1.0, condition=_only("trees")),
    }
)
"""A projection, one of four models, and the parameters of each model; ranges are our choice."""

TRADEOFF_PROBLEMS: tuple[OutcomeProblem, ...] = (
    OutcomeProblem(
        name="real_small_perceptron",
        space=PERCEPTRON_SPACE,
        function=_small_perceptron,
        n_constraints=1,
        worst=_GUESSING,
        optimum=None,
        tolerance=0.01,
        group="real",
        description="log loss of a perceptron on digits, at most 1,000 weights",
    ),
    OutcomeProblem(
        name="real_error_and_cost",
        space=_PIPELINE_SPACE,
        function=_error_and_cost,
        n_objectives=2,
        reference=(0.9, _LARGEST_COST),  # guessing among ten classes, and the bound of the cost
        optimum=None,
        tolerance=0.01,
        group="real",
        half="held-out",
        description="error and operations per prediction of a pipeline on digits",
    ),
)
"""Problems that train real models."""
