"""Random features for the Laplace kernel from Mondrian partitions.

See Balog2016, section 3, and Balog2016thesis, chapter 3. :class:`LaplaceFeatureMap` is the base of
these features and of those they are compared with.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.estimators.base import UndoesInterruptions, UnsupervisedEstimator
from mondrian_bo.surrogates.estimators.locks import learns, reads
from mondrian_bo.surrogates.estimators.validation import (
    N_JOBS,
    check_feature_weights,
    check_samples,
    is_empty_batch,
    own_copy,
    seed_sequence,
)
from mondrian_bo.surrogates.mondrian_kernel.cell_matrices import indicator_features
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.surrogates.shared.ensemble import Ensemble


class LaplaceFeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, UnsupervisedEstimator):
    """A random map to features whose inner products approximate a Laplace kernel.

    The kernel is ``exp(-lifetime * sum_d feature_weights[d] * |x_d - x'_d|)``.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of non-zero features in a row, M.
    lifetime : float, default=1.0
        Inverse width of the kernel, in inverse units of the inputs.
    feature_weights : array-like of shape (n_features,) or None, default=None
        Non-negative factors of the lifetime, one for each input feature; None is all ones.
    random_state : int, RandomState instance or None, default=None
        Seed of the features.
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "lifetime": [Interval(Real, 0, None, closed="left")],
        "feature_weights": ["array-like", None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_estimators: int = 50,
        lifetime: float = 1.0,
        *,
        feature_weights: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.feature_weights = feature_weights
        self.random_state = random_state

    def _fit(self, X: ArrayLike, y: ArrayLike | None) -> None:
        self._sample(validate_data(self, X, dtype=np.float64))

    @abstractmethod
    def _sample(self, data: FloatArray) -> None:
        """Sample the features for checked inputs."""

    def _rates(self) -> FloatArray:
        """Return the factors of the lifetime, shape (n_features,)."""
        rates = check_feature_weights(self.feature_weights, self.n_features_in_)
        return np.ones(self.n_features_in_) if rates is None else rates

    def _seed(self) -> np.random.SeedSequence:
        return seed_sequence(self.random_state)


class MondrianFeatures(UndoesInterruptions, LaplaceFeatureMap):
    """Features of the Mondrian kernel: the cells of random partitions that hold each input.

    M partitions are sampled by Mondrian processes, and the features of an input indicate its M
    cells, scaled by M^-1/2 (Balog2016, eq. 2). In expectation, the inner product of two rows is the
    Laplace kernel ``exp(-lifetime * sum_d feature_weights[d] * |x_d - x'_d|)`` (proposition 1); the
    error is O(M^-1/2).

    Parameters
    ----------
    n_estimators : int, default=50
        Number of partitions, M.
    lifetime : float, default=1.0
        Time at which the Mondrian processes stop: the inverse width of the kernel, in inverse units
        of the inputs.
    feature_weights : array-like of shape (n_features,) or None, default=None
        Non-negative factors of the lifetime, one for each input feature; None is all ones.
    lifetime_shape : float or None, default=None
        None gives all partitions the same lifetime. A positive number a gives each partition its
        own, drawn from the Gamma distribution of shape a and mean `lifetime`. With s the distance
        ``sum_d feature_weights[d] * |x_d - x'_d|`` the kernel is then the rational function
        ``(1 + lifetime * s / a) ** -a``, which has heavier tails than the Laplace kernel, its limit
        for large a.
    random_state : int, RandomState instance or None, default=None
        Seed of the partitions. Results do not depend on `n_jobs`.
    n_jobs : int or None, default=None
        Number of partitions to sample at a time, as joblib counts.

    Attributes
    ----------
    partitions_ : PartitionForest
        The partitions.
    factors_ : ndarray of shape (n_estimators,)
        Lifetimes of the partitions over `lifetime`; all ones without a shape.

    Notes
    -----
    Partitions exist where the fitted inputs are. An extension of the partitions may separate
    another input from them, in a cell that is no column. The features of such an input are
    expectations over all extensions by the conditional Mondrian, as the predictions of
    Balog2016thesis, chapter 2: M^-1/2 times the probability that the input stays in the cell. So
    the inner product with a fitted input is an unbiased estimate of the kernel, and rows far from
    all fitted inputs are close to zero. The inner product of two inputs that were not fitted, or of
    one with itself, is too small: `kernel` gives unbiased estimates for all inputs, and
    `partial_fit` gives them cells of their own.

    Fitting takes O(M d n log n) at most, and a row O(M d depth). With `lifetime_shape` each
    partition keeps its own scaled inputs, O(M n d) of memory.

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
        "lifetime_shape": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": N_JOBS,
    }

    _learnt = "partitions_"

    partitions_: PartitionForest
    factors_: FloatArray

    def __init__(
        self,
        n_estimators: int = 50,
        lifetime: float = 1.0,
        *,
        feature_weights: ArrayLike | None = None,
        lifetime_shape: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_estimators, lifetime, feature_weights=feature_weights, random_state=random_state
        )
        self.lifetime_shape = lifetime_shape
        self.n_jobs = n_jobs

    def _sample(self, data: FloatArray) -> None:
        seed = self._seed()
        partitions = PartitionForest(
            Ensemble(int(self.n_estimators), data.shape[1], seed),
            self._rates(),
            float(self.lifetime),
        )
        self.factors_ = np.ones(self.n_estimators)
        points = own_copy(data)[None]
        if self.lifetime_shape is not None:
            # E[exp(-lifetime s G)] = (1 + lifetime s / a)^-a for G of shape a and mean 1.
            shape = float(self.lifetime_shape)
            rng = np.random.default_rng(seed.spawn(1)[0])
            self.factors_ = rng.gamma(shape, 1.0 / shape, size=self.n_estimators)
            points = self._scaled(data)
        partitions.build(points, np.zeros(len(data)), self.n_jobs)
        self.partitions_ = partitions

    def _seen(self, data: FloatArray) -> FloatArray:
        """Return inputs as the partitions see them, shape (1 or M, n, d)."""
        are_shared = len(self.partitions_.points) < len(self.factors_)
        return data[None] if are_shared else self._scaled(data)

    def _scaled(self, data: FloatArray) -> FloatArray:
        """Return inputs for each partition: a longer lifetime is the same as a larger scale."""
        return np.ascontiguousarray(self.factors_[:, None, None] * data)

    @learns
    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Extend the partitions to more inputs by the conditional Mondrian (Balog2016, section 5).

        New cells become new columns at the end. Rows of earlier inputs get zeros in the new columns
        and do not change otherwise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs. A fitted estimator ignores a batch without rows.
        y : object, default=None
            Not used.

        Returns
        -------
        MondrianFeatures
            The transformer.

        Raises
        ------
        ValueError
            As `fit`.
        """
        if not hasattr(self, "partitions_"):
            return self.fit(X)
        if is_empty_batch(self, X, []):
            return self
        data, partitions = check_samples(self, X), self.partitions_
        points, targets = self._seen(data), np.zeros(len(data))
        self._learn_completely(partitions.n_points, partitions.extend, points, targets)
        return self

    def _former(self, learnt: PartitionForest, n_samples: int) -> dict[str, Any]:
        return {"partitions_": learnt.former(n_samples, self.n_jobs)}

    @reads
    def transform(self, X: ArrayLike) -> csr_matrix:
        """Return the features of inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Returns
        -------
        csr_matrix of shape (n_samples, n_cells)
            M entries in every row, which are M^-1/2 for fitted inputs.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the features have not been fitted.
        """
        check_is_fitted(self, "partitions_")
        return rows_of(self, check_samples(self, X))

    @reads
    def kernel(self, X: ArrayLike, Y: ArrayLike | None = None) -> FloatArray:
        """Return unbiased estimates of the kernel between any inputs, fitted or not.

        The partitions are extended to all inputs by the conditional Mondrian (Balog2016, section
        5) for the time of the call, and the estimate for two inputs is the share of the partitions
        in which they have the same cell (eq. 2). The same call gives the same estimates; inputs
        that were not fitted fall into other cells in another call.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Finite inputs.
        Y : array-like of shape (m, n_features) or None, default=None
            More finite inputs; None is X.

        Returns
        -------
        float64 array of shape (n, m)
            Estimates in [0, 1]: 1 for equal inputs. With Y=None the matrix is positive
            semi-definite. O(M d (n + m) depth + M n m), and a copy of the partitions.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the features have not been fitted.
        """
        check_is_fitted(self, "partitions_")
        left = check_samples(self, X)
        right = left if Y is None else check_samples(self, Y)
        points = left if Y is None else np.concatenate([left, right])
        partitions = copy.deepcopy(self.partitions_)
        first = partitions.n_points
        partitions.extend(self._seen(points), np.zeros(len(points)))
        rows = indicator_features(partitions.cells[first:], partitions.n_cells)
        others = rows if Y is None else rows[len(left) :]
        return np.asarray((rows[: len(left)] @ others.T).toarray())

    @learns
    def fit_transform(self, X: ArrayLike, y: object = None) -> csr_matrix:
        """Sample partitions of the inputs and return their features.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        csr_matrix of shape (n_samples, n_cells)
            As `transform` returns it.
        """
        return training_rows_of(self.fit(X))

    @property
    def _n_features_out(self) -> int:
        return self.partitions_.n_cells


def rows_of(features: MondrianFeatures, data: FloatArray) -> csr_matrix:
    """Return the features of checked inputs, whatever output scikit-learn is set to."""
    partitions = features.partitions_
    cells, stays = partitions.locate(features._seen(data))
    return indicator_features(cells, partitions.n_cells, stays)


def training_rows_of(features: MondrianFeatures) -> csr_matrix:
    """Return the features of the fitted inputs, whatever output scikit-learn is set to."""
    partitions = features.partitions_
    return indicator_features(partitions.cells, partitions.n_cells)
