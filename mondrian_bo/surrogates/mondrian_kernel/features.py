"""Random features for the Laplace kernel from Mondrian partitions.

See Balog2016 and Balog2016thesis.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted, validate_data

from mondrian_bo.surrogates.estimators.validation import (
    check_samples,
    own_copy,
    unchanged_by_failure,
)
from mondrian_bo.surrogates.mondrian_kernel.feature_map import (
    LaplaceFeatureMap,
    indicator_features,
)
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest


class MondrianFeatures(LaplaceFeatureMap):
    """Features of the Mondrian kernel: the cells of random partitions that hold each input.

    M partitions are sampled by Mondrian processes, and an input's features indicate its M cells,
    scaled by M^-1/2 (Balog2016, eq. 2). In expectation, the inner product of two rows is the
    Laplace kernel ``exp(-lifetime * sum_d feature_weights[d] * |x_d - x'_d|)`` (proposition 1); the
    error is O(M^-1/2).

    Parameters
    ----------
    n_estimators : int, default=50
        Number of partitions, M.
    lifetime : float, default=1.0
        Time at which the processes stop: the inverse width of the kernel, in units of the inputs.
    feature_weights : array-like of shape (n_features,) or None, default=None
        Non-negative factors of the lifetime, for each input feature; None is all ones.
    random_state : int, RandomState instance or None, default=None
        Seed of the partitions. Results do not depend on `n_jobs`.
    n_jobs : int or None, default=None
        Number of partitions to sample at a time, as joblib counts.

    Attributes
    ----------
    n_features_in_ : int
        Number of input features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the input features, if the first data had string column names.
    partitions_ : PartitionForest
        The partitions.

    Notes
    -----
    Partitions are instantiated where the learnt inputs are. An input elsewhere may be cut off from
    them by a cut that is not there yet, and a cell of its own is no column. Its features are
    expected ones, over all the ways the conditional Mondrian may extend the partitions (as
    Balog2016thesis, chapter 2, predicts): M^-1/2 times the probability of not being cut off. So the
    inner product with a learnt input stays an unbiased estimate of the kernel, and rows far from
    all inputs are close to zero. To have such inputs in cells of their own, learn them.

    Fitting takes O(M d n log n) or less, a row O(M d depth).

    References
    ----------
    M. Balog, B. Lakshminarayanan, Z. Ghahramani, D. M. Roy, Y. W. Teh: The Mondrian Kernel, UAI
    2016 (Balog2016).

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import MondrianFeatures
    >>> features = MondrianFeatures(n_estimators=2000, lifetime=2.0, random_state=0)
    >>> Z = features.fit_transform([[0.0, 0.0], [0.3, 0.1]])
    >>> bool(abs((Z @ Z.T)[0, 1] - np.exp(-2.0 * 0.4)) < 0.05)
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **LaplaceFeatureMap._parameter_constraints,
        "n_jobs": [Integral, None],
    }

    partitions_: PartitionForest

    def __init__(
        self,
        n_estimators: int = 50,
        lifetime: float = 1.0,
        *,
        feature_weights: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_estimators, lifetime, feature_weights=feature_weights, random_state=random_state
        )
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Sample partitions of the inputs.

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
        with unchanged_by_failure(self):
            data = own_copy(validate_data(self, X, dtype=np.float64))
            partitions = PartitionForest(
                self.n_estimators,
                data.shape[1],
                self._seed(),
                self._weights(),
                float(self.lifetime),
            )
        partitions.build(data[None], np.zeros(len(data)), self.n_jobs)
        self.partitions_ = partitions
        return self

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Extend the partitions to more inputs, by the conditional Mondrian (section 5).

        New cells become new columns at the end. Rows of inputs learnt before stay as they are, but
        for zeros in the new columns.

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
        if not hasattr(self, "partitions_"):
            return self.fit(X)
        data = check_samples(self, X)
        self.partitions_.extend(data[None], np.zeros(len(data)))
        return self

    def transform(self, X: ArrayLike) -> csr_matrix:
        """Return the features of inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Returns
        -------
        csr_matrix of shape (n_samples, n_cells)
            M entries in every row. They are M^-1/2 for inputs that were learnt.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If nothing has been learnt.
        """
        check_is_fitted(self, "partitions_")
        labels, stays = self.partitions_.locate(check_samples(self, X)[None])
        return indicator_features(labels, self.partitions_.n_labels, stays)

    def fit_transform(self, X: ArrayLike, y: object = None) -> csr_matrix:
        """Sample partitions of the inputs and return their features; see `fit`, `transform`."""
        partitions = self.fit(X).partitions_
        return indicator_features(partitions.labels, partitions.n_labels)

    @property
    def _n_features_out(self) -> int:
        return self.partitions_.n_labels
