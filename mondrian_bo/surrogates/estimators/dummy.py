"""Online baselines that ignore the features (Mourtada2021, section 5.2.1)."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils._tags import Tags
from sklearn.utils.validation import check_is_fitted

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.estimators.online_classifier import LARGEST_DIRICHLET, OnlineClassifier
from mondrian_bo.surrogates.estimators.online_regressor import OnlineRegressor
from mondrian_bo.surrogates.estimators.predictive import PredictiveMomentsMixin
from mondrian_bo.surrogates.estimators.validation import (
    check_sample_weight,
    check_samples,
    check_weighted_squares,
)


class OnlineDummyRegressor(PredictiveMomentsMixin, OnlineRegressor):
    """Predict the mean and the standard deviation of all targets seen so far.

    After one sample the standard deviation is 0, that of one number.

    Attributes
    ----------
    mean_, variance_ : float
        Weighted mean and variance of the targets.
    weight_ : float
        Sum of the weights.
    n_features_in_ : int
        Number of features. They are validated and not used.
    """

    def _moments(self, X: ArrayLike, with_variance: bool) -> tuple[FloatArray, FloatArray]:
        check_is_fitted(self, "mean_")
        n_samples = len(check_samples(self, X))
        return np.full(n_samples, self.mean_), np.full(n_samples, self.variance_)

    def _reset(self, n_features: int) -> None:
        self.weight_, self.mean_, self.variance_ = 0.0, 0.0, 0.0

    def _learn(self, data: AnyArray, targets: FloatArray, sample_weight: ArrayLike | None) -> Self:
        given = check_sample_weight(sample_weight, len(targets))
        check_weighted_squares(given, targets)
        weights = np.ones(len(targets)) if given is None else given
        added = float(weights.sum())
        if added > 0.0:
            mean = float(weights @ targets) / added
            variance = float(weights @ (targets - mean) ** 2) / added
            total = self.weight_ + added
            share, gap = added / total, mean - self.mean_
            between = share * (1.0 - share) * gap * gap
            variance = self.variance_ + share * (variance - self.variance_) + between
            # In one step, as an exception may come between any two.
            self.__dict__.update(weight_=total, mean_=self.mean_ + share * gap, variance_=variance)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class OnlineDummyClassifier(OnlineClassifier):
    """Predict the smoothed frequencies of the classes seen so far.

    Parameters
    ----------
    dirichlet : float, default=0.5
        Smoothing: the probabilities are (count + dirichlet) / (n + n_classes dirichlet)
        (Mourtada2021, equation 5).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    counts_ : ndarray of shape (n_classes,)
        Sum of the weights of each class.
    n_features_in_ : int
        Number of features. They are validated and not used.

    Notes
    -----
    `fit` and `partial_fit` give the same result for the same samples.
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "dirichlet": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, *, dirichlet: float = 0.5) -> None:
        self.dirichlet = dirichlet

    def _probabilities(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "counts_")
        smoothed = self.counts_ + min(self.dirichlet, LARGEST_DIRICHLET)  # Mourtada2021, eq. 5
        return np.tile(smoothed / smoothed.sum(), (len(check_samples(self, X)), 1))

    def _reset(self, n_features: int, n_classes: int) -> None:
        self.counts_ = np.zeros(n_classes)

    def _learn(
        self, data: AnyArray, numbers: NDArray[np.int32], sample_weight: ArrayLike | None
    ) -> Self:
        weights = check_sample_weight(sample_weight, len(numbers))
        self.counts_ = self.counts_ + np.bincount(numbers, weights, len(self.classes_))
        return self

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags
