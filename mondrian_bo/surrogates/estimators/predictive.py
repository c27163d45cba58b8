"""What regressors with a predictive distribution share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.shared.mixture import GaussianMixture


class PredictiveMomentsMixin:
    """Means and standard deviations of labels, from the moments that `_moments` returns."""

    def _moments(self, X: ArrayLike, with_variance: bool) -> tuple[FloatArray, FloatArray]:
        """Return means and variances of the labels of each row of X, which is checked here.

        Without `with_variance` the variances are not looked at.
        """
        raise NotImplementedError

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict the mean and the standard deviation of labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Where to predict.
        return_std : bool, default=False
            Whether to return the standard deviation too.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predictive means.
        std : ndarray of shape (n_samples,)
            Predictive standard deviations of labels, noise included; with `return_std` only.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If nothing has been learnt.
        """
        mean, variance = self._moments(X, return_std)
        return (mean, np.sqrt(variance)) if return_std else mean


class PredictiveDistributionMixin(PredictiveMomentsMixin):
    """Quantiles and densities of labels, from the mixture of Gaussians that `_mixture` returns."""

    def _mixture(self, X: ArrayLike) -> GaussianMixture:
        """Return the predictive mixture of each row of X, which is checked here."""
        raise NotImplementedError

    def predict_quantiles(
        self, X: ArrayLike, quantiles: Sequence[float] = (0.05, 0.5, 0.95)
    ) -> FloatArray:
        """Return quantiles of the full predictive mixture over trees and nodes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Where to predict.
        quantiles : sequence of float, default=(0.05, 0.5, 0.95)
            Levels in (0, 1).

        Returns
        -------
        ndarray of shape (n_samples, len(quantiles))
            Quantiles of the labels.

        Raises
        ------
        ValueError
            If a level is not in (0, 1).
        """
        levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        if levels.ndim != 1 or not np.all((levels > 0.0) & (levels < 1.0)):
            raise ValueError(f"quantiles must be numbers in (0, 1), got {quantiles!r}")
        mixture = self._mixture(X)
        return np.stack([mixture.quantile(float(level)) for level in levels], axis=1)

    def logpdf(self, X: ArrayLike, y: ArrayLike) -> FloatArray:
        """Return the log predictive density of labels under the full mixture.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            One label for each.

        Returns
        -------
        ndarray of shape (n_samples,)
            Natural logarithms of densities; minus their mean is the NLPD of Lakshminarayanan2016.

        Raises
        ------
        ValueError
            If the numbers of inputs and labels differ, or a label is not finite.
        """
        mixture = self._mixture(X)
        labels = np.asarray(y, dtype=np.float64)
        if labels.shape != (len(mixture),):
            raise ValueError(
                f"y must have shape ({len(mixture)},), one label per row of X; "
                f"got shape {labels.shape}"
            )
        if not np.all(np.isfinite(labels)):
            raise ValueError("y contains NaN or infinity")
        return mixture.logpdf(labels)
