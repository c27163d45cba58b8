"""Random Fourier features for the Laplace kernel (Rahimi and Recht 2007)."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_kernel.feature_map import LaplaceFeatureMap


class LaplaceFourierFeatures(LaplaceFeatureMap):
    """Cosines of random projections, whose inner products approximate the Laplace kernel.

    scikit-learn's ``RBFSampler`` draws normal frequencies, for the Gaussian kernel. Here they are
    Cauchy distributed in each dimension, which is the Fourier transform of
    ``exp(-lifetime * sum_d feature_weights[d] * |x_d - x'_d|)``. For comparison with
    :class:`MondrianFeatures`: other lifetimes need other frequencies or other features.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of features, M.
    lifetime : float, default=1.0
        Inverse width of the kernel, in units of the inputs.
    feature_weights : array-like of shape (n_features,) or None, default=None
        Non-negative factors of the lifetime, for each input feature; None is all ones.
    random_state : int, RandomState instance or None, default=None
        Seed of the frequencies and offsets.

    Attributes
    ----------
    n_features_in_ : int
        Number of input features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the input features, if the first data had string column names.
    frequencies_ : ndarray of shape (n_features_in_, n_estimators)
        Frequencies of the cosines.
    offsets_ : ndarray of shape (n_estimators,)
        Their phases.

    References
    ----------
    A. Rahimi, B. Recht: Random Features for Large-Scale Kernel Machines, NIPS 2007.

    Examples
    --------
    >>> from mondrian_bo.surrogates import LaplaceFourierFeatures
    >>> LaplaceFourierFeatures(10, random_state=0).fit_transform([[0.0], [0.1]]).shape
    (2, 10)
    """

    frequencies_: FloatArray
    offsets_: FloatArray

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Draw frequencies and phases.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs; only their number of features matters.
        y : ignored
            For scikit-learn.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or X is not as described.
        """
        self._validate_params()
        validate_data(self, X, dtype=np.float64)
        rng = np.random.default_rng(self._seed())
        scale = float(self.lifetime) * self._weights()
        draws = rng.standard_cauchy((self.n_features_in_, self.n_estimators))
        self.frequencies_ = scale[:, None] * draws
        self.offsets_ = rng.uniform(0.0, 2.0 * np.pi, self.n_estimators)
        self._n_features_out = self.n_estimators
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the features of inputs, a dense array of shape (n_samples, M).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If nothing has been learnt.
        """
        check_is_fitted(self)
        data = validate_data(self, X, dtype=np.float64, reset=False)
        phases = data @ self.frequencies_ + self.offsets_
        return np.asarray(np.sqrt(2.0 / self.n_estimators) * np.cos(phases))
