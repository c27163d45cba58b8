"""What the regressors with a Mondrian forest and a Gaussian mixture share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from numbers import Integral
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.estimators.base import SupervisedEstimator, UndoesInterruptions
from mondrian_bo.surrogates.estimators.locks import learns, reads
from mondrian_bo.surrogates.estimators.predictive import PredictiveDistributionMixin
from mondrian_bo.surrogates.estimators.tree_paths import TreePathsMixin
from mondrian_bo.surrogates.estimators.validation import (
    N_JOBS,
    check_further_samples,
    check_samples,
    check_training_data,
    is_empty_batch,
    own_copy,
    seed_sequence,
)
from mondrian_bo.surrogates.mondrian_forest.evidence import log_mean_exp
from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.mixture import GaussianMixture
from mondrian_bo.trees.tree import Tree


class ForestModel(Protocol):
    """What :class:`ForestRegressor` needs of a model. Points have shape (1, m, d)."""

    @property
    def forest(self) -> GaussianForest:
        """The trees."""

    @property
    def n_points(self) -> int:
        """Number of points learnt."""

    @property
    def samples(self) -> tuple[FloatArray, FloatArray]:
        """The points, shape (1, n, d), and their targets; at least those of completed calls."""

    def learn(self, points: FloatArray, targets: FloatArray, n_jobs: int | None) -> None:
        """Learn more points."""

    def predict(self, points: FloatArray, n_jobs: int | None) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the variance of each tree's prediction, both of shape (T, m)."""

    def mixture(self, points: FloatArray) -> GaussianMixture:
        """Return the predictive mixtures."""

    def draw_targets(self, rng: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
        """Draw a function from the posterior; each evaluation adds new noise."""

    def log_marginal_likelihood(self) -> FloatArray:
        """Return the log marginal likelihood of the targets under each tree, shape (T,)."""


class ForestRegressor(
    PredictiveDistributionMixin,
    TreePathsMixin,
    RegressorMixin,
    UndoesInterruptions,
    SupervisedEstimator,
):
    """Learning and prediction of a :class:`ForestModel`, which a subclass creates."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "bounds": ["array-like", None],
        "feature_weights": ["array-like", None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }

    _learnt = "model_"

    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    model_: ForestModel

    @abstractmethod
    def _model_for(self, n_features: int) -> Callable[[Ensemble], ForestModel]:
        """Return what makes an empty model; raise ValueError if a parameter is wrong."""

    def _fit(self, X: ArrayLike, y: ArrayLike) -> None:
        """Learn a batch (Lakshminarayanan2016, Algorithms 1 and 2)."""
        data, targets = check_training_data(self, X, y)
        seed = seed_sequence(self.random_state)
        ensemble = Ensemble(int(self.n_estimators), data.shape[1], seed)
        new_model = partial(self._model_for(data.shape[1]), ensemble)
        self._first = len(targets), new_model
        # A copy, as a model draws seeds from its ensemble's.
        model = deepcopy(new_model)()
        model.learn(own_copy(data)[None], own_copy(targets), self.n_jobs)
        self.model_ = model

    @learns
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn more samples, one after the other (Lakshminarayanan2016, Algorithms 3 and 4).

        The first call learns a batch as `fit` does. A call that is interrupted, as by Ctrl-C, is
        undone at the next one.

        Parameters
        ----------
        X, y : array-likes
            Samples, as in `fit`. A fitted estimator ignores a batch without rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As `fit`. The estimator then stays unchanged.
        """
        model: ForestModel | None = getattr(self, "model_", None)
        if model is None:
            return self.fit(X, y)
        if is_empty_batch(self, X, y):
            return self
        data, targets = check_further_samples(self, X, y)
        self._learn_completely(model.n_points, model.learn, data[None], targets, self.n_jobs)
        return self

    def _former(self, learnt: ForestModel, n_samples: int) -> dict[str, Any]:
        points, targets = learnt.samples
        n_first, new_model = self._first
        model = deepcopy(new_model)()
        for part in (slice(n_first), slice(n_first, n_samples)):
            model.learn(points[:, part].copy(), targets[part].copy(), self.n_jobs)
        return {"model_": model}

    @reads
    def sample_y(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = 0,
    ) -> FloatArray:
        """Draw targets from the posterior, jointly over the rows of X.

        Each draw is a random function from the posterior of a random tree, plus noise.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            Number of functions.
        random_state : int, RandomState instance or None, default=0
            Seed of the draws.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples)
            Targets.

        Raises
        ------
        TypeError, ValueError
            If `n_samples` is not an integer from 1 on, or X is not as described.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        points = self._points(X)
        check_scalar(n_samples, "n_samples", Integral, min_val=1)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))
        draws = [self.model_.draw_targets(rng)(points) for _ in range(n_samples)]
        return np.stack(draws, axis=1)

    @reads
    def log_marginal_likelihood(self) -> float:
        """Return the log of the marginal likelihood of the targets, averaged over the trees.

        The marginal likelihood under each tree is exact at the current hyper-parameters, a
        by-product of its messages (Lakshminarayanan2016, section 3.2).

        Returns
        -------
        float
            Natural logarithm of the mean likelihood.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        check_is_fitted(self, "model_")
        return log_mean_exp(self.model_.log_marginal_likelihood())

    def _leaves(self, X: ArrayLike) -> tuple[Tree, IntArray]:
        points = self._points(X)
        forest = self.model_.forest
        return forest.arrays, forest.leaves(points)

    def _points(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "model_")
        return check_samples(self, X)[None]
