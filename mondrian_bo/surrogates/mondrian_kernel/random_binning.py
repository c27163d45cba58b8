"""Random binning features for the Laplace kernel (Rahimi and Recht 2007)."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted, validate_data

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_kernel.feature_map import (
    LaplaceFeatureMap,
    indicator_features,
)

_LARGEST_BIN = 2.0**62


class RandomBinningFeatures(LaplaceFeatureMap):
    """Features of random regular grids: the bins that hold each input.

    The pitch of each grid in each dimension has the density ``pitch * k''(pitch)``, a Gamma
    distribution with shape 2 and rate `lifetime` for the Laplace kernel, and a uniform shift. The
    probability that two inputs share a bin is the Laplace kernel
    ``exp(-lifetime * sum_d feature_weights[d] * |x_d - x'_d|)``. For comparison with
    :class:`MondrianFeatures`: other lifetimes need other grids.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of grids, M.
    lifetime : float, default=1.0
        Inverse width of the kernel, in units of the inputs.
    feature_weights : array-like of shape (n_features,) or None, default=None
        Non-negative factors of the lifetime, for each input feature; None is all ones.
    random_state : int, RandomState instance or None, default=None
        Seed of the grids.

    Attributes
    ----------
    n_features_in_ : int
        Number of input features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the input features, if the first data had string column names.
    pitch_, shift_ : ndarrays of shape (n_estimators, n_features_in_)
        The grids.

    Notes
    -----
    Only bins that hold a learnt input are columns; an input in another bin has a zero instead.
    Fitting takes O(M n (d + log n)).

    References
    ----------
    A. Rahimi, B. Recht: Random Features for Large-Scale Kernel Machines, NIPS 2007.

    Examples
    --------
    >>> from mondrian_bo.surrogates import RandomBinningFeatures
    >>> RandomBinningFeatures(10, random_state=0).fit_transform([[0.0], [0.1]]).shape[0]
    2
    """

    pitch_: FloatArray
    shift_: FloatArray

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Draw grids, and find the bins of the inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.
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
        data = validate_data(self, X, dtype=np.float64)
        rng = np.random.default_rng(self._seed())
        shape = self.n_estimators, self.n_features_in_
        # Pitches of unit lifetime; inputs are scaled instead, so that lifetime 0 is one bin.
        self.pitch_ = rng.gamma(2.0, size=shape)
        self.shift_ = self.pitch_ * rng.random(shape)
        self._scale = float(self.lifetime) * self._weights()
        # A random linear hash: two bins have the same key with probability 2^-64.
        self._hash = rng.integers(2**64, size=self.n_features_in_, dtype=np.uint64) | np.uint64(1)
        keys = self._keys(data)
        self._bins = [np.unique(keys[:, m]) for m in range(self.n_estimators)]
        self._ends = np.cumsum([len(bins) for bins in self._bins])
        self._n_features_out = int(self._ends[-1])
        return self

    def transform(self, X: ArrayLike) -> csr_matrix:
        """Return the features of inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Returns
        -------
        csr_matrix of shape (n_samples, n_bins)
            M entries in every row: M^-1/2, or 0 for a bin that held no learnt input.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If nothing has been learnt.
        """
        check_is_fitted(self)
        keys = self._keys(validate_data(self, X, dtype=np.float64, reset=False))
        labels = np.empty(keys.shape, dtype=np.int32)
        known = np.empty(keys.shape)
        for m, bins in enumerate(self._bins):
            place = np.minimum(np.searchsorted(bins, keys[:, m]), len(bins) - 1)
            known[:, m] = bins[place] == keys[:, m]
            labels[:, m] = place + self._ends[m] - len(bins)
        return indicator_features(labels, self._n_features_out, known)

    def _keys(self, data: FloatArray) -> NDArray[np.uint64]:
        """Return a number for each input's bin in each grid, shape (n_samples, M)."""
        scaled = data * self._scale
        keys = np.empty((len(data), self.n_estimators), dtype=np.uint64)
        for m in range(self.n_estimators):
            bins = np.floor((scaled - self.shift_[m]) / self.pitch_[m])
            bins = np.clip(bins, -_LARGEST_BIN, _LARGEST_BIN).astype(np.int64)
            keys[:, m] = (bins.view(np.uint64) * self._hash).sum(axis=1, dtype=np.uint64)
        return keys
