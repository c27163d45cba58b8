"""Error rates of scikit-learn models on the data sets that scikit-learn ships.

An error rate is a number of samples divided by their number, so it takes few values: there are
plateaus, and the best of them are small. Each seed has other folds of cross-validation, and other
seeds of models that are random. An evaluation takes some 5 to 50 ms on one thread. The optima are
unknown.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from mondrian_bo.benchmarks.problems.base import Objective, Problem
from mondrian_bo.benchmarks.problems.learning import shuffled_data
from mondrian_bo.search_space import Categorical, Float, Int, SearchSpace

__all__ = ["ACCURACY_PROBLEMS", "AccuracyProblem"]

Model: TypeAlias = Callable[[Mapping[str, Any], int], Any]
"""Returns a classifier for parameters and a seed."""

_FOLDS = 3
"""Folds of cross-validation: few, so that evaluations are fast."""

_BUDGET = 100
"""Trials per run: half of the usual number, because evaluations are slower than others."""

_ROWS = {"iris": 150, "wine": 178, "breast_cancer": 569, "digits": 500}
"""Rows of each data set that are used: all, except for digits."""


@dataclass(frozen=True, kw_only=True)
class AccuracyProblem(Problem):
    """The error rate of a model, for which each seed draws other folds.

    Further attributes are those of :class:`Problem`.

    Attributes
    ----------
    data : str
        Name of the data set.
    model : callable
        Takes the parameters and a seed, and returns the classifier.
    """

    data: str
    model: Model

    def instance(self, seed: int) -> Objective:
        """Return the error rate with the folds of a run's seed; 1 where a fit fails."""
        state = np.random.default_rng([seed, zlib.crc32(self.name.encode())]).integers(2**31)
        return partial(_error_rate, self.data, self.model, int(state))


def _error_rate(data: str, model: Model, state: int, params: Mapping[str, Any]) -> float:
    """Return the cross-validated error rate; `state` is the seed of the folds and the model."""
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    x, y = shuffled_data(data, _ROWS[data])
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=state)
    with warnings.catch_warnings():
        # The problems include parameters with which models do not converge.
        warnings.simplefilter("ignore")
        try:
            scores = cross_val_score(model(params, state), x, y, cv=folds, error_score="raise")
        except ValueError:
            return 1.0
    # Equal rates differ in the last bits, as the order of a sum depends on the folds.
    return round(1.0 - float(np.mean(scores)), 10)


def _scaled(*steps: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), *steps)


def _random_features(gamma: float, n_components: int, seed: int) -> Any:
    from sklearn.kernel_approximation import RBFSampler

    return RBFSampler(gamma=gamma, n_components=n_components, random_state=seed)


def _support_vectors(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.svm import SVC

    # A limit of the iterations, as fits of nearly singular kernels take minutes.
    return _scaled(SVC(max_iter=2000, **params))


def _logistic(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return _scaled(LogisticRegression(solver="liblinear", **params))


def _neighbours(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return _scaled(KNeighborsClassifier(**params))


def _tree(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(random_state=seed, **params)


def _gradient_descent(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.linear_model import SGDClassifier

    return _scaled(
        SGDClassifier(
            penalty="elasticnet",
            learning_rate="invscaling",
            max_iter=10,
            random_state=seed,
            **params,
        )
    )


def _linear_discriminant(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=params["shrinkage"])
    return _scaled(_random_features(params["gamma"], 80, seed), model)


def _extra_trees(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(10, random_state=seed, **params)


def _ridge(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.linear_model import RidgeClassifier

    features = _random_features(params["gamma"], params["n_components"], seed)
    return _scaled(features, RidgeClassifier(alpha=params["alpha"]))


def _boosting(params: Mapping[str, Any], seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=12, early_stopping=False, random_state=seed, **params
    )


_SUPPORT_VECTORS = {"C": Float(1e-2, 1e3, log=True), "gamma": Float(1e-5, 1.0, log=True)}
"""Two numbers of a support vector machine with a Gaussian kernel."""

_TREE = {
    "max_depth": Int(1, 12),
    "min_samples_leaf": Float(0.005, 0.3),
    "max_features": Float(0.05, 1.0),
    "ccp_alpha": Float(1e-5, 1e-1, log=True),
}
"""Four numbers of a decision tree."""


def _accuracy(
    name: str, description: str, data: str, model: Model, **space: Any
) -> AccuracyProblem:
    """Return a problem; ranges of the parameters are our choice."""
    return AccuracyProblem(
        name=f"accuracy_{name}",
        space=SearchSpace(space),
        function=partial(_error_rate, data, model, 0),
        optimum=None,
        budget=_BUDGET,
        group="accuracy",
        tolerance=0.0,
        description=description,
        data=data,
        model=model,
    )


ACCURACY_PROBLEMS: tuple[AccuracyProblem, ...] = (
    _accuracy(
        "svm_cancer",
        "error rate of a support vector machine on breast cancer",
        "breast_cancer",
        _support_vectors,
        **_SUPPORT_VECTORS,
    ),
    _accuracy(
        "svm_digits",
        "error rate of a support vector machine on digits",
        "digits",
        _support_vectors,
        **_SUPPORT_VECTORS,
    ),
    _accuracy(
        "svm_iris",
        "error rate of a support vector machine with two kernels on iris",
        "iris",
        _support_vectors,
        kernel=Categorical(("poly", "sigmoid")),
        C=Float(1e-3, 1e2, log=True),
        gamma=Float(1e-3, 1e1, log=True),
        degree=Int(1, 5),
        coef0=Float(0.0, 2.0),
    ),
    _accuracy(
        "logistic_cancer",
        "error rate of logistic regression on breast cancer",
        "breast_cancer",
        _logistic,
        C=Float(1e-3, 1e3, log=True),
        intercept_scaling=Float(1e-2, 1e2, log=True),
        tol=Float(1e-5, 1e-1, log=True),
    ),
    _accuracy(
        "neighbours_wine",
        "error rate of nearest neighbours on wine",
        "wine",
        _neighbours,
        n_neighbors=Int(1, 40),
        p=Float(1.0, 5.0),
        weights=Categorical(("uniform", "distance")),
    ),
    _accuracy(
        "tree_cancer",
        "error rate of a decision tree on breast cancer",
        "breast_cancer",
        _tree,
        **_TREE,
    ),
    _accuracy(
        "tree_wine",
        "error rate of a decision tree on wine",
        "wine",
        _tree,
        **_TREE,
        min_impurity_decrease=Float(0.0, 0.3),
    ),
    _accuracy(
        "sgd_digits",
        "error rate of a linear model trained by stochastic gradients on digits",
        "digits",
        _gradient_descent,
        loss=Categorical(("hinge", "log_loss", "modified_huber")),
        alpha=Float(1e-6, 1.0, log=True),
        l1_ratio=Float(0.0, 1.0),
        eta0=Float(1e-4, 1e1, log=True),
        power_t=Float(0.1, 0.9),
    ),
    _accuracy(
        "lda_digits",
        "error rate of linear discriminant analysis of random features on digits",
        "digits",
        _linear_discriminant,
        gamma=Float(1e-4, 1e-1, log=True),
        shrinkage=Float(0.0, 1.0),
    ),
    _accuracy(
        "trees_digits",
        "error rate of ten randomised trees on digits",
        "digits",
        _extra_trees,
        max_features=Float(0.05, 1.0),
        min_samples_leaf=Int(1, 30, log=True),
        min_samples_split=Float(0.005, 0.3, log=True),
        ccp_alpha=Float(1e-5, 1e-1, log=True),
    ),
    _accuracy(
        "ridge_cancer",
        "error rate of ridge regression of random features on breast cancer",
        "breast_cancer",
        _ridge,
        gamma=Float(1e-4, 1.0, log=True),
        n_components=Int(10, 200),
        alpha=Float(1e-4, 1e2, log=True),
    ),
    _accuracy(
        "boosting_cancer",
        "error rate of gradient boosting on breast cancer",
        "breast_cancer",
        _boosting,
        learning_rate=Float(1e-2, 1.0, log=True),
        max_leaf_nodes=Int(2, 30),
        l2_regularization=Float(1e-4, 1e1, log=True),
        max_bins=Int(4, 100),
        min_samples_leaf=Int(2, 60),
    ),
)
"""Problems whose values are error rates."""
