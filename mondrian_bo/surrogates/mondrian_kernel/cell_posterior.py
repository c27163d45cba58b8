"""Bayesian ridge regression on the cells of random partitions."""

from __future__ import annotations

import math
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_kernel.feature_map import indicator_features
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cholesky_system import CholeskySystem

Form = Literal["primal", "dual"]

_CHUNK = 4096
"""Rows to predict at a time: bounds the dense arrays."""


class CellPartitions(Protocol):
    """Partitions whose cells have labels from 0 to ``n_labels - 1``."""

    n_labels: int

    @property
    def n_points(self) -> int:
        """Number of points, n."""
        ...

    @property
    def n_trees(self) -> int:
        """Number of partitions, M."""
        ...

    @property
    def labels(self) -> NDArray[np.int32]:
        """Label of each point's cell in each partition, shape (n, M)."""
        ...

    @property
    def targets(self) -> FloatArray:
        """What is to be predicted, shape (n,)."""
        ...

    def locate(self, points: FloatArray) -> tuple[NDArray[np.int32], FloatArray]:
        """Return labels of other points, and the probabilities that they are in these cells."""
        ...


class CellPosterior:
    """The joint fit of the weights of all cells, with its posterior (Balog2016, section 4.2.1).

    Weights are independent and normal under the prior, labels are sums of weights with normal
    noise: a Gaussian process whose kernel is `prior_variance` times the Mondrian kernel. It is
    solved with an equation for each cell (primal) or for each point (dual), whichever are fewer.

    Parameters
    ----------
    partitions : CellPartitions
        Partitions of the points, which are not empty.
    ridge : float
        The regularisation delta^2: the variance of the noise over that of the prior.
    prior_variance : float, default=1.0
        Variance of the weights, which is that of the function. Means do not depend on it.
    centred : bool, default=True
        Whether the prior mean of the function is the mean of the labels, rather than 0.
    form : {"primal", "dual"} or None, default=None
        Which equations to solve; None is whichever are fewer.

    Notes
    -----
    Labels are `partitions.targets`. Points outside of the data of the cells are predicted with
    expected features, see :class:`mondrian_bo.surrogates.MondrianFeatures`: with the mean of the
    kernel over all extensions of the partitions.
    """

    def __init__(
        self,
        partitions: CellPartitions,
        ridge: float,
        prior_variance: float = 1.0,
        *,
        centred: bool = True,
        form: Form | None = None,
    ) -> None:
        self.partitions = partitions
        self.ridge = ridge
        self.prior_variance = prior_variance
        self._centred = centred
        self._form = form
        self._weights: FloatArray | None = None
        self.refit()

    @property
    def is_dual(self) -> bool:
        """Whether there is an equation for each point, rather than for each cell."""
        return self._is_dual

    @property
    def mean(self) -> float:
        """The prior mean of the function."""
        return self._mean

    @property
    def weights(self) -> FloatArray:
        """Posterior means of the weights, shape (C,)."""
        if self._weights is None:
            solution = self._system.solution()
            if self._is_dual:
                solution = np.asarray(self._features().T @ solution, dtype=np.float64)
            self._weights = solution
        return self._weights

    @property
    def forest_weights(self) -> FloatArray:
        """Weights of the cells if those of each partition are fitted on their own, shape (C,).

        They minimise equation (4) of Balog2016, with the same regularisation.
        """
        sums = self._sums - self._mean * self._counts
        scale = self.partitions.n_trees**-0.5
        return np.asarray(scale * sums / (self._counts + self.ridge))

    def refit(self) -> None:
        """Solve the equations from scratch, O(min(C, n)^3)."""
        fewer = self.partitions.n_points < self.partitions.n_labels
        self._is_dual = fewer if self._form is None else self._form == "dual"
        self._phi: csr_matrix | None = None
        features = self._features()
        product = features @ features.T if self._is_dual else features.T @ features
        matrix = product.toarray()
        matrix.flat[:: len(matrix) + 1] += self.ridge
        self._system = CholeskySystem(matrix, np.zeros(len(matrix)))
        self._counts, self._sums = self._totals(0)
        self._refresh()

    def predict(
        self, points: FloatArray, return_variance: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Predict the function, O(M d depth) for a mean and O(min(C, n)^2) for a variance.

        Parameters
        ----------
        points : float64 array of shape (S, m, d)
            Where to predict.
        return_variance : bool, default=True
            Whether variances are wanted.

        Returns
        -------
        mean, variance : float64 arrays of shape (m,)
            Posterior moments, without noise; variances are NaN if they are not wanted.
        """
        rows = self.features(points)
        mean = self.mean + rows @ self.weights
        if not return_variance:
            return mean, np.full(len(mean), np.nan)
        parts = [self._variance(rows[i : i + _CHUNK]) for i in range(0, rows.shape[0], _CHUNK)]
        return mean, np.concatenate(parts) if parts else np.empty(0)

    def predict_labels(
        self, points: FloatArray, with_variance: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of labels: those of `predict`, with the noise."""
        mean, variance = self.predict(points, with_variance)
        return mean, variance + self.ridge * self.prior_variance

    def features(self, points: FloatArray) -> csr_matrix:
        """Return the (expected) features of points, shape (m, C)."""
        labels, stays = self.partitions.locate(points)
        return indicator_features(labels, self.partitions.n_labels, stays)

    def draw_weights(self, rng: np.random.Generator) -> FloatArray:
        """Draw the weights of all cells from their posterior, shape (C,); O(min(C, n)^2 + n M).

        A draw from the prior is corrected by what the labels say of the data it would give.
        """
        deviation = np.sqrt(self.prior_variance)
        prior = deviation * rng.normal(size=self.partitions.n_labels)
        features = self._features()
        noise = np.sqrt(self.ridge) * deviation * rng.normal(size=features.shape[0])
        residual = self.partitions.targets - self.mean - features @ prior - noise
        if self._is_dual:
            return np.asarray(prior + features.T @ self._system.solve(residual))
        return np.asarray(prior + self._system.solve(features.T @ residual))

    def quadratic(self) -> float:
        """Return ``targets^T (Phi Phi^T + ridge I)^-1 targets``, of centred targets."""
        residual = self.partitions.targets - self.mean - self._features() @ self.weights
        # Two sums of squares, with nothing to cancel (Balog2016, section 4.2.1).
        return float(residual @ residual) / self.ridge + float(self.weights @ self.weights)

    def log_marginal_likelihood(self) -> float:
        """Return the log evidence of the labels."""
        n_points, n_equations = self.partitions.n_points, self._system.size
        determinant = self._system.log_determinant()
        determinant += (n_points - n_equations) * math.log(self.ridge)
        constant = n_points * math.log(2.0 * math.pi * self.prior_variance)
        return -0.5 * (constant + determinant + self.quadratic() / self.prior_variance)

    def _refresh(self) -> None:
        """Follow the labels: their mean and the right-hand side."""
        targets = self.partitions.targets
        self._mean = float(targets.mean()) if self._centred else 0.0
        if self._is_dual:
            self._system.set_moments(targets - self._mean)
        else:
            scale = self.partitions.n_trees**-0.5
            self._system.set_moments(scale * (self._sums - self._mean * self._counts))
        self._weights = None

    def _features(self) -> csr_matrix:
        """Return the features of all points, shape (n, C)."""
        if self._phi is None:
            self._phi = indicator_features(self.partitions.labels, self.partitions.n_labels)
        return self._phi

    def _totals(self, start: int) -> tuple[FloatArray, FloatArray]:
        """Return number and sum of the labels of points from `start` on in each cell."""
        labels = self.partitions.labels[start:].ravel()
        targets = np.repeat(self.partitions.targets[start:], self.partitions.n_trees)
        size = self.partitions.n_labels
        counts = np.bincount(labels, minlength=size).astype(np.float64)
        return counts, np.bincount(labels, targets, size).astype(np.float64)

    def _variance(self, rows: csr_matrix) -> FloatArray:
        """Return the posterior variances of the function at rows of features."""
        if self._is_dual:
            cross = (self._features() @ rows.T).toarray()
            known = np.square(self._system.half_solve(cross)).sum(axis=0)
            return np.asarray(self.prior_variance * np.maximum(1.0 - known, 0.0))
        spread = np.square(self._system.half_solve(rows.T.toarray())).sum(axis=0)
        outside = 1.0 - np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        return np.asarray(self.prior_variance * (np.maximum(outside, 0.0) + self.ridge * spread))
