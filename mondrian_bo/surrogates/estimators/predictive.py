"""Mixins of regressors that predict moments, quantiles and densities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.estimators.locks import reads
from mondrian_bo.surrogates.estimators.validation import check_new_targets
from mondrian_bo.surrogates.shared.mixture import GaussianMixture


class PredictiveMomentsMixin:
    """Predictive means and standard deviations, from what `_moments` returns."""

    def _moments(self, X: ArrayLike, with_variance: bool) -> tuple[FloatArray, FloatArray]:
        """Validate X and return the means and the variances of the targets, shape (n_samples,).

        The variances may be anything without `with_variance`.
        """
        raise NotImplementedError

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> FloatArray: ...

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...

    @overload
    def predict(
        self, X: ArrayLike, return_std: bool
    ) -> FloatArray | tuple[FloatArray, FloatArray]: ...

    @reads
    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict the mean and the standard deviation of the targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        return_std : bool, default=False
            Whether to return the standard deviations too.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predictive means.
        std : ndarray of shape (n_samples,)
            Predictive standard deviations of the targets, noise included; only with `return_std`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        mean, variance = self._moments(X, return_std)
        return (mean, np.sqrt(variance)) if return_std else mean


class PredictiveDistributionMixin(PredictiveMomentsMixin):
    """Predictive quantiles and densities, from the mixture of Gaussians of `_mixture`.

    The class has `model_`, a model of trees, `n_jobs`, and `_points`, which validates inputs and
    returns them as the model takes them; or it has `_moments` and `_mixture` of its own.
    """

    n_jobs: int | None
    model_: Any
    _points: Any

    def _moments(self, X: ArrayLike, with_variance: bool) -> tuple[FloatArray, FloatArray]:
        """Return the moments of the mixture over trees (Lakshminarayanan2016, eq. 4 and 5)."""
        points = self._points(X)
        means, variances = self.model_.predict(points, self.n_jobs)
        return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)

    def _mixture(self, X: ArrayLike) -> GaussianMixture:
        """Return the predictive mixture over trees and nodes."""
        points = self._points(X)
        mixture: GaussianMixture = self.model_.mixture(points)
        return mixture

    @reads
    def predict_quantiles(
        self, X: ArrayLike, quantiles: Sequence[float] = (0.05, 0.5, 0.95)
    ) -> FloatArray:
        """Return quantiles of the predictive mixture over trees and nodes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        quantiles : sequence of float, default=(0.05, 0.5, 0.95)
            Levels in (0, 1).

        Returns
        -------
        ndarray of shape (n_samples, len(quantiles))
            Quantiles of the targets.

        Raises
        ------
        ValueError
            If there are no levels, or one is not in (0, 1).
        """
        levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        is_wrong = levels.ndim != 1 or levels.size == 0
        if is_wrong or not np.all((levels > 0.0) & (levels < 1.0)):
            raise ValueError(f"quantiles must be numbers in (0, 1), got {quantiles!r}")
        mixture = self._mixture(X)
        return np.stack([mixture.quantile(float(level)) for level in levels], axis=1)

    @reads
    def logpdf(self, X: ArrayLike, y: ArrayLike) -> FloatArray:
        """Return the log predictive density of targets under the mixture over trees and nodes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            One target for each row of X.

        Returns
        -------
        ndarray of shape (n_samples,)
            Natural logarithms of densities. The NLPD of Lakshminarayanan2016 is minus their mean.

        Raises
        ------
        ValueError
            If the numbers of inputs and targets differ, or a target is not finite.
        """
        mixture = self._mixture(X)
        return mixture.logpdf(check_new_targets(y, len(mixture)))
