"""The method `weights` of regressors whose mean is linear in the targets."""

from __future__ import annotations

from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from mondrian_bo.surrogates.estimators.locks import reads


class EquivalentWeightsMixin:
    """How much each training target counts in a prediction."""

    @reads
    def weights(self, X: ArrayLike, *, tolerance: float = 1e-12) -> csr_matrix:
        """Return the weights of the training targets in predictions (the equivalent kernel).

        Given the partitions and the hyper-parameters a predicted mean is linear in the targets y of
        all learnt samples: ``predict(X) == offset + weights(X) @ (y - offset)``, where the offset
        is ``y.mean()``, the prior mean. It is 0 with ``normalize_y=False`` (Mondrian kernel), and
        ``prior_mean_`` of a `GaussianProcessForestRegressor`, which is ``y.mean()`` after `fit` and
        follows a stream in steps. It has no effect where rows add up to 1 (`AMFRegressor`).
        The row sum is the share of the data in the prediction, and the rest that of the prior mean.
        The identity has an exception: an `AMFRegressor` with ``online_to_batch=True`` predicts with
        the forest before the first sample with probability 1/n. Then all weights and predictions
        are 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Where to predict.
        tolerance : float, default=1e-12
            Weights of at most this size are left out. With 0 the identity is exact to rounding.

        Returns
        -------
        csr_matrix of shape (n_samples, n_learnt)
            A column for each learnt sample in the order of learning, without those of weight 0.

        Raises
        ------
        ValueError
            If the tolerance is not a number from 0 on, or X is not as described.
        sklearn.exceptions.NotFittedError
            If the estimator has not been fitted.

        Notes
        -----
        O(n) for a row and tree, O(n d^2) with linear leaves: far samples count little, but few
        count nothing. In AMF and in a Mondrian forest with constant leaves weights are not
        negative. With linear leaves and with Gaussian processes they may be, and rows may add up to
        more than 1. With ``stacking=True`` they may be negative, too.
        """
        if not tolerance >= 0.0:
            raise ValueError(f"tolerance must be a number from 0 on, got {tolerance}")
        check_is_fitted(self)
        return self._weights(X, float(tolerance))

    def _weights(self, X: ArrayLike, tolerance: float) -> csr_matrix:
        """Validate X and return the weights, of a fitted estimator."""
        raise NotImplementedError
