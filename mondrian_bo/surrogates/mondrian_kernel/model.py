"""Bayesian ridge regression on the cells of random partitions, in a batch and online."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_kernel.cell_matrices import indicator_features
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cholesky_system import CholeskySystem
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.solvers import ridge_log_evidence
from mondrian_bo.surrogates.shared.sparse_rows import sparse_rows

Form = Literal["primal", "dual"]
"""An equation for each cell, or one for each point."""

_CHUNK = 4096
"""Number of rows that are predicted at a time; it bounds the memory of the dense arrays."""


class CellPartitions(Protocol):
    """Partitions of points, with cells numbered from 0 to ``n_cells - 1``."""

    n_cells: int

    @property
    def n_points(self) -> int:
        """Number of points, n."""
        ...

    @property
    def n_trees(self) -> int:
        """Number of partitions, M."""
        ...

    @property
    def cells(self) -> NDArray[np.int32]:
        """The cell of each point in each partition, shape (n, M)."""
        ...

    @property
    def targets(self) -> FloatArray:
        """Targets of the points, shape (n,)."""
        ...

    def locate(self, points: FloatArray) -> tuple[NDArray[np.int32], FloatArray]:
        """Return cells of other points, and the probabilities that the points are in them."""
        ...


class CellPosterior:
    """The posterior of the weights of all cells, fitted jointly (Balog2016, 4.2.1 and eq. 3).

    The weights have independent normal priors, and a target is the sum of the weights of its cells
    plus normal noise. This is a Gaussian process whose kernel is `prior_variance` times the
    Mondrian kernel. Its equations are those of the cells (primal) or those of the points (dual),
    whichever are fewer.

    Parameters
    ----------
    partitions : CellPartitions
        Partitions of the points, at least one.
    ridge : float
        The regularisation delta^2: the variance of the noise over that of the prior.
    prior_variance : float, default=1.0
        Variance of the weights, and of the function. Predicted means do not depend on it.
    centred : bool, default=True
        Whether the prior mean of the function is the mean of the targets, rather than 0.
    form : {"primal", "dual"} or None, default=None
        Which equations to solve; None takes the fewer ones.

    Attributes
    ----------
    is_dual, mean : bool, float
        Whether the equations are those of the points, and the prior mean of the function.

    Notes
    -----
    A point outside of the data of its cells is predicted with expected features, that is with the
    mean of the kernel over all extensions of the partitions; see
    :class:`mondrian_bo.surrogates.MondrianFeatures`.
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
    def weights(self) -> FloatArray:
        """Posterior means of the weights, shape (C,); they minimise (3) of Balog2016."""
        if self._weights is None:
            solution = self._system.solution()
            if self.is_dual:
                solution = np.asarray(self._features().T @ solution, dtype=np.float64)
            self._weights = solution
        return self._weights

    @property
    def forest_weights(self) -> FloatArray:
        """Weights of the cells if each partition is fitted on its own, shape (C,).

        They minimise the objective (4) of Balog2016, with the same regularisation.
        """
        sums = self._sums - self.mean * self._counts
        scale = self.partitions.n_trees**-0.5
        return np.asarray(scale * sums / (self._counts + self.ridge))  # (4)

    def refit(self) -> None:
        """Solve the equations from scratch, O(min(C, n)^3)."""
        fewer = self.partitions.n_points < self.partitions.n_cells
        self.is_dual = fewer if self._form is None else self._form == "dual"
        self._phi: csr_matrix | None = None
        features = self._features()
        product = features @ features.T if self.is_dual else features.T @ features
        matrix = product.toarray()
        matrix.flat[:: len(matrix) + 1] += self.ridge  # A of Balog2016, 4.2.1, if primal
        self._system = CholeskySystem(matrix, np.zeros(len(matrix)))
        self._counts, self._sums = self._totals(0)
        self._refresh()

    def predict(
        self, points: FloatArray, return_variance: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Predict the function: O(M d depth) for a mean, O(min(C, n)^2) for a variance.

        Parameters
        ----------
        points : float64 array of shape (S, m, d)
            Where to predict.
        return_variance : bool, default=True
            Whether to compute variances.

        Returns
        -------
        mean, variance : float64 arrays of shape (m,)
            Posterior moments, without noise; variances are NaN unless `return_variance`.
        """
        rows = self.features(points)
        mean = self.mean + rows @ self.weights
        if not return_variance:
            return mean, np.full(len(mean), np.nan)
        parts = [self._variance(rows[i : i + _CHUNK]) for i in range(0, rows.shape[0], _CHUNK)]
        return mean, np.concatenate(parts) if parts else np.empty(0)

    def predict_targets(
        self, points: FloatArray, with_variance: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Predict targets: the mean of `predict`, and its variance plus that of the noise."""
        mean, variance = self.predict(points, with_variance)
        return mean, variance + self.ridge * self.prior_variance

    def equivalent_weights(self, points: FloatArray, tolerance: float) -> csr_matrix:
        """Return the weights of the centred targets in predicted means, shape (m, n).

        Balog2016thesis, Appendix B.1: a prediction is a product of the point's features, the
        inverse of the equations and the features of the training points. O(min(C, n)^2 + n M) a
        row.
        """
        features = self._features()
        rows = self.features(points)

        def rows_of(start: int, end: int) -> FloatArray:
            part = rows[start:end].T
            if self.is_dual:
                return np.asarray(self._system.solve((features @ part).toarray()).T)
            return np.asarray((features @ self._system.solve(part.toarray())).T)

        return sparse_rows(rows_of, rows.shape[0], features.shape[0], tolerance)

    def features(self, points: FloatArray) -> csr_matrix:
        """Return the (expected) features of points, shape (m, C)."""
        cells, stays = self.partitions.locate(points)
        return indicator_features(cells, self.partitions.n_cells, stays)

    def draw_weights(self, rng: np.random.Generator) -> FloatArray:
        """Draw the weights of all cells from their posterior, shape (C,); O(min(C, n)^2 + n M).

        A draw from the prior predicts other targets than the observed ones. The posterior mean of
        the difference is added to the draw.
        """
        deviation = np.sqrt(self.prior_variance)
        prior = deviation * rng.normal(size=self.partitions.n_cells)
        features = self._features()
        noise = np.sqrt(self.ridge) * deviation * rng.normal(size=features.shape[0])
        residual = self.partitions.targets - self.mean - features @ prior - noise
        if self.is_dual:
            return np.asarray(prior + features.T @ self._system.solve(residual))
        return np.asarray(prior + self._system.solve(features.T @ residual))

    def quadratic(self) -> float:
        """Return ``targets^T (Phi Phi^T + ridge I)^-1 targets``, of centred targets."""
        residual = self.partitions.targets - self.mean - self._features() @ self.weights
        # The terms of L(lambda) in Balog2016, section 4.2.1: a sum of squares does not cancel.
        return float(residual @ residual) / self.ridge + float(self.weights @ self.weights)

    def log_marginal_likelihood(self) -> float:
        """Return the log evidence of the targets (Balog2016, section 4.2.1, L(lambda))."""
        n_points, n_equations = self.partitions.n_points, self._system.size
        determinant = self._system.log_determinant()
        determinant += (n_points - n_equations) * math.log(self.ridge)
        return float(
            ridge_log_evidence(n_points, determinant, self.quadratic(), self.prior_variance)
        )

    def _refresh(self) -> None:
        """Compute the prior mean and the right-hand side from the targets."""
        targets = self.partitions.targets
        self.mean = float(targets.mean()) if self._centred else 0.0
        if self.is_dual:
            self._system.set_moments(targets - self.mean)
        else:
            scale = self.partitions.n_trees**-0.5
            self._system.set_moments(scale * (self._sums - self.mean * self._counts))
        self._weights = None

    def _features(self) -> csr_matrix:
        """Return the features of all points, shape (n, C)."""
        if self._phi is None:
            self._phi = indicator_features(self.partitions.cells, self.partitions.n_cells)
        return self._phi

    def _totals(self, start: int) -> tuple[FloatArray, FloatArray]:
        """Return, for each cell, the number and the target sum of its points from `start` on."""
        cells = self.partitions.cells[start:].ravel()
        targets = np.repeat(self.partitions.targets[start:], self.partitions.n_trees)
        size = self.partitions.n_cells
        counts = np.bincount(cells, minlength=size).astype(np.float64)
        return counts, np.bincount(cells, targets, size).astype(np.float64)

    def _variance(self, rows: csr_matrix) -> FloatArray:
        """Return the posterior variances of the function at rows of features."""
        if self.is_dual:
            cross = (self._features() @ rows.T).toarray()
            known = np.square(self._system.half_solve(cross)).sum(axis=0)
            return np.asarray(self.prior_variance * np.maximum(1.0 - known, 0.0))
        inside = np.square(self._system.half_solve(rows.T.toarray())).sum(axis=0)
        outside = 1.0 - np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        return np.asarray(self.prior_variance * (np.maximum(outside, 0.0) + self.ridge * inside))


class KernelModel(CellPosterior):
    """A :class:`CellPosterior` of Mondrian partitions that learns points one by one.

    A new point updates the equations at O(min(C, n)^2) (Balog2016, section 5 and Appendix C).

    Parameters
    ----------
    partitions : PartitionForest
        Partitions of the first points, at least one. The model extends them.
    ridge, prior_variance, centred, form
        See :class:`CellPosterior`.
    """

    partitions: PartitionForest

    def learn(self, points: FloatArray, targets: FloatArray) -> None:
        """Learn more points, one after the other, O(min(C, n)^2) each.

        Parameters
        ----------
        points : float64 array of shape (S, m, d)
            The points: the same for all trees (S = 1), or those of each tree (S = M).
        targets : float64 array of shape (m,)
            Their targets.
        """
        if len(targets) == 0:
            return
        start = self.partitions.n_points
        self.partitions.extend(points, targets)
        fewest = min(self.partitions.n_points, self.partitions.n_cells)
        if self._form is None and self._system.size > 2 * fewest:
            self.refit()
            return
        self._phi = None
        counts, sums = self._totals(start)
        new = len(counts) - len(self._counts)
        self._counts = counts + np.append(self._counts, np.zeros(new))
        self._sums = sums + np.append(self._sums, np.zeros(new))
        if self.is_dual:
            self._append_points(start)
        else:
            self._append_cells(new)
            self._add_points(start)
        self._refresh()

    def set_targets(self, targets: FloatArray) -> None:
        """Replace all targets, O(min(C, n)^2 + n M)."""
        self.partitions.set_targets(targets)
        self._counts, self._sums = self._totals(0)
        self._refresh()

    @contextmanager
    def extended(self, points: FloatArray, targets: FloatArray) -> Iterator[None]:
        """Learn points within a ``with`` block, and restore the model bit for bit at its end.

        The prior mean does not change. O(n^2) for each point; only for models in the dual form.

        Raises
        ------
        ValueError
            If the model is not in the dual form.
        """
        if not self.is_dual:
            raise ValueError("only a model in the dual form can forget points")
        start = self.partitions.n_points
        before = self._system, self._phi, self._weights
        with self.partitions.extended(points, targets, self.partitions.rates[None]):
            try:
                self._system = self._system.copy()
                self._phi = None
                self._append_points(start)
                self._system.set_moments(self.partitions.targets - self.mean)
                self._weights = None
                yield
            finally:
                self._system, self._phi, self._weights = before

    def _append_points(self, start: int) -> None:
        """Border the dual equations by those of points from `start` on."""
        features = self._features()
        columns = (features[start:] @ features.T).toarray()
        corner = columns[:, start:].copy()
        corner.flat[:: len(corner) + 1] += self.ridge
        self._system.append(columns[:, :start], corner, np.zeros(len(corner)))

    def _append_cells(self, n_new: int) -> None:
        """Border the primal equations by those of cells without points."""
        corner = self.ridge * np.eye(n_new)
        self._system.append(np.zeros((n_new, self._system.size)), corner, np.zeros(n_new))

    def _add_points(self, start: int) -> None:
        """Add points from `start` on to the primal equations."""
        vector = np.zeros(self._system.size)
        for cells in self.partitions.cells[start:]:
            vector[cells] = self.partitions.n_trees**-0.5
            self._system.add(vector, 0.0)
            vector[cells] = 0.0
