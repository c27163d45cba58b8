"""Bayesian ridge regression on the cells of Mondrian partitions, online."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_kernel.cell_posterior import CellPosterior, Form
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest


class KernelModel(CellPosterior):
    """A :class:`CellPosterior` of Mondrian partitions that learns more points.

    A new point updates the solution at O(min(C, n)^2) (Balog2016, section 5 and Appendix C).

    Parameters
    ----------
    partitions : PartitionForest
        Partitions of the points, which are not empty. The model extends them.
    ridge, prior_variance, centred, form
        See :class:`CellPosterior`.
    """

    partitions: PartitionForest

    def __init__(
        self,
        partitions: PartitionForest,
        ridge: float,
        prior_variance: float = 1.0,
        *,
        centred: bool = True,
        form: Form | None = None,
    ) -> None:
        super().__init__(partitions, ridge, prior_variance, centred=centred, form=form)

    def learn(self, points: FloatArray, targets: FloatArray) -> None:
        """Learn more points, one after the other, O(min(C, n)^2) each.

        Parameters
        ----------
        points : float64 array of shape (S, m, d)
            The points, once (S = 1) or as each tree sees them.
        targets : float64 array of shape (m,)
            Their labels.
        """
        if len(targets) == 0:
            return
        start = self.partitions.n_points
        self.partitions.extend(points, targets)
        fewest = min(self.partitions.n_points, self.partitions.n_labels)
        if self._form is None and self._system.size > 2 * fewest:
            self.refit()
            return
        self._phi = None
        counts, sums = self._totals(start)
        new = len(counts) - len(self._counts)
        self._counts = counts + np.append(self._counts, np.zeros(new))
        self._sums = sums + np.append(self._sums, np.zeros(new))
        if self._is_dual:
            self._append_points(start)
        else:
            self._append_cells(new)
            self._add_points(start)
        self._refresh()

    def set_targets(self, targets: FloatArray) -> None:
        """Replace all labels, O(min(C, n)^2 + n M)."""
        self.partitions.set_targets(targets)
        self._counts, self._sums = self._totals(0)
        self._refresh()

    @contextmanager
    def extended(self, points: FloatArray, targets: FloatArray) -> Iterator[None]:
        """Know further points for the time of a ``with`` block; exactly undone at its end.

        The prior mean stays as it is. O(n^2) a point; only for models in the dual form.

        Raises
        ------
        ValueError
            If the model is not in the dual form.
        """
        if not self._is_dual:
            raise ValueError("only a model in the dual form can forget points")
        start = self.partitions.n_points
        before = self._system, self._phi, self._weights
        with self.partitions.extended(points, targets, self.partitions.weights[None]):
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
        for labels in self.partitions.labels[start:]:
            vector[labels] = self.partitions.n_trees**-0.5
            self._system.add(vector, 0.0)
            vector[labels] = 0.0
