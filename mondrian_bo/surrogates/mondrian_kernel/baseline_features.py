"""Random features for the Laplace kernel that Mondrian features are compared with.

Random Fourier features and random binning features of Rahimi and Recht (2007), as in Balog2016,
section 8.1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted, validate_data

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.estimators.locks import reads
from mondrian_bo.surrogates.estimators.validation import all_finite
from mondrian_bo.surrogates.mondrian_kernel.cell_matrices import indicator_features
from mondrian_bo.surrogates.mondrian_kernel.features import LaplaceFeatureMap

_LARGEST_BIN = 2.0**62
"""Bin numbers are clipped at this size: within int64, however far an input is."""


class LaplaceFourierFeatures(LaplaceFeatureMap):
    """Cosines of random projections, whose inner products approximate the Laplace kernel.

    Frequencies have a Cauchy distribution in each dimension, the Fourier transform of
    ``exp(-lifetime * sum_d feature_weights[d] * |x_d - x'_d|)``. (The normal frequencies of
    scikit-learn's ``RBFSampler`` give the Gaussian kernel.) Another lifetime needs other features,
    unlike with :class:`MondrianFeatures`.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of features, M.
    lifetime, feature_weights, random_state
        See :class:`MondrianFeatures`.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features, n_estimators)
        Frequencies of the cosines.
    offsets_ : ndarray of shape (n_estimators,)
        Phases of the cosines.

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

    def _sample(self, data: FloatArray) -> None:
        rng = np.random.default_rng(self._seed())
        scale = float(self.lifetime) * self._rates()
        draws = rng.standard_cauchy((self.n_features_in_, self.n_estimators))
        self.frequencies_ = scale[:, None] * draws
        self.offsets_ = rng.uniform(0.0, 2.0 * np.pi, self.n_estimators)
        self._n_features_out = self.n_estimators

    @reads
    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the features of inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_estimators)
            Dense features.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the features have not been fitted.
        ValueError
            If an input is so large that its product with a frequency overflows.
        """
        check_is_fitted(self)
        data = validate_data(self, X, dtype=np.float64, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            phases = data @ self.frequencies_ + self.offsets_
        if not all_finite(phases):
            raise ValueError("X has values whose products with the frequencies overflow")
        return np.asarray(np.sqrt(2.0 / len(self.offsets_)) * np.cos(phases))


class RandomBinningFeatures(LaplaceFeatureMap):
    """Features of random regular grids: the bins that hold each input (Rahimi and Recht, 2007).

    The pitch of a grid in a dimension has the density ``pitch * k''(pitch)``, which for the Laplace
    kernel k is a Gamma distribution of shape 2 and rate `lifetime`. The shift of the grid is
    uniform. Two inputs share a bin with the probability
    ``exp(-lifetime * sum_d feature_weights[d] * |x_d - x'_d|)``, the Laplace kernel. Another
    lifetime needs other grids, unlike with :class:`MondrianFeatures`.

    Parameters
    ----------
    n_estimators, lifetime, feature_weights, random_state
        See :class:`LaplaceFourierFeatures`; M is the number of grids.

    Attributes
    ----------
    pitch_, shift_ : ndarrays of shape (n_estimators, n_features)
        The grids.

    Notes
    -----
    Bins that hold a fitted input are columns. An input in any other bin has a zero instead.
    Fitting takes O(M n (d + log n)). :class:`LaplaceFourierFeatures` has the reference.

    Examples
    --------
    >>> from mondrian_bo.surrogates import RandomBinningFeatures
    >>> RandomBinningFeatures(10, random_state=0).fit_transform([[0.0], [0.1]]).shape[0]
    2
    """

    pitch_: FloatArray
    shift_: FloatArray

    def _sample(self, data: FloatArray) -> None:
        rng = np.random.default_rng(self._seed())
        shape = self.n_estimators, self.n_features_in_
        # Pitches are those of lifetime 1, and inputs are scaled; at lifetime 0 there is one bin.
        self.pitch_ = rng.gamma(2.0, size=shape)
        self.shift_ = self.pitch_ * rng.random(shape)
        self._scale = float(self.lifetime) * self._rates()
        # A random linear hash: two bins have the same key with probability 2^-64.
        self._hash = rng.integers(2**64, size=self.n_features_in_, dtype=np.uint64) | np.uint64(1)
        keys = self._keys(data)
        self._bins = [np.unique(keys[:, m]) for m in range(self.n_estimators)]
        self._ends = np.cumsum([len(bins) for bins in self._bins])
        self._n_features_out = int(self._ends[-1])

    @reads
    def transform(self, X: ArrayLike) -> csr_matrix:
        """Return the features of inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Returns
        -------
        csr_matrix of shape (n_samples, n_bins)
            A row has M entries: M^-1/2, or 0 for a bin that holds no fitted input.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the features have not been fitted.
        """
        check_is_fitted(self)
        keys = self._keys(validate_data(self, X, dtype=np.float64, reset=False))
        cells = np.empty(keys.shape, dtype=np.int32)
        known = np.empty(keys.shape)
        for m, bins in enumerate(self._bins):
            place = np.minimum(np.searchsorted(bins, keys[:, m]), len(bins) - 1)
            known[:, m] = bins[place] == keys[:, m]
            cells[:, m] = place + self._ends[m] - len(bins)
        return indicator_features(cells, self._n_features_out, known)

    def _keys(self, data: FloatArray) -> NDArray[np.uint64]:
        """Return the key of each input's bin in each grid, shape (n_samples, M)."""
        scaled = data * self._scale
        keys = np.empty((len(data), len(self.pitch_)), dtype=np.uint64)
        for m, (shift, pitch) in enumerate(zip(self.shift_, self.pitch_, strict=True)):
            bins = np.floor((scaled - shift) / pitch)
            bins = np.clip(bins, -_LARGEST_BIN, _LARGEST_BIN).astype(np.int64)
            keys[:, m] = (bins.view(np.uint64) * self._hash).sum(axis=1, dtype=np.uint64)
        return keys
