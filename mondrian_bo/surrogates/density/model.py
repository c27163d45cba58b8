"""Mondrian trees on a box with the posterior masses of their cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from mondrian_bo.shared.array_types import BoolArray, FloatArray, IntArray
from mondrian_bo.surrogates.density.cells import fill_cells, fill_log_volumes, grow_partitions
from mondrian_bo.surrogates.density.lifetime_path import DensityLifetimePath
from mondrian_bo.surrogates.density.masses import (
    WITH,
    WITHOUT,
    fill_log_densities,
    follow_splits,
    splits_in_order,
)
from mondrian_bo.trees.layout import LEFT, LOWER, N_NODES, NONE, UPPER
from mondrian_bo.trees.tree import leaves_of, view_of

_CHUNK = 4096
"""Number of points whose leaves are looked up at a time: 3 MB for 100 trees."""


class DensityModel:
    """A forest of Mondrian trees with the expected density of every cell.

    Parameters
    ----------
    streams : uint64 array of shape (T, 1)
        Random streams of the trees.
    points : float64 array of shape (n, d)
        Training points in the box.
    box : float64 array of shape (2, d)
        Lower and upper corner, outside of which the density is 0.
    lifetime : float
        Lifetime of the trees, finite.
    concentration : float
        The gamma of the Beta priors.
    min_size : int, default=1
        Cells with fewer points are not split. The expected masses of cells without points are in
        proportion to volumes, so that no density differs between 0 and 1. With 2 the leave-one-out
        densities are still those of all splits, and the trees are much smaller.

    Attributes
    ----------
    trees : Tree
        The trees, without boxes.
    next_split : float
        Time of the first split that the lifetime excludes; infinity if there is none. Until then
        all densities stay as they are.
    """

    def __init__(
        self,
        streams: NDArray[np.uint64],
        points: FloatArray,
        box: FloatArray,
        lifetime: float,
        concentration: float,
        *,
        min_size: int = 1,
    ) -> None:
        self.points = points
        self.box = box
        self.lifetime = lifetime
        self.concentration = concentration
        self.trees, self._fractions, self.next_split = grow_partitions(
            streams, points, box, lifetime, min_size=min_size
        )
        self.log_densities: FloatArray = np.zeros((2, *self.trees.parent.shape))
        fill_log_densities(self.trees, self._fractions, concentration, self.log_densities)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.trees.counters)

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume of the box."""
        return float(np.sum(np.log(self.box[1] - self.box[0])))

    def is_inside(self, points: FloatArray) -> BoolArray:
        """Return which points are in the box, shape (m,)."""
        return np.asarray(np.all((points >= self.box[0]) & (points <= self.box[1]), axis=1))

    def leaves(self, points: FloatArray) -> IntArray:
        """Return the leaf that holds each point in each tree, shape (m, T)."""
        leaves = np.empty((len(points), self.n_trees), dtype=np.int64)
        leaves_of(self.trees, points[None], leaves)
        return leaves

    def log_density(self, points: FloatArray, which: int = WITH) -> FloatArray:
        """Return the log of the mean over trees of the expected density, shape (m,)."""
        trees = np.arange(self.n_trees)
        parts = [
            logsumexp(
                self.log_densities[which][trees, self.leaves(points[start : start + _CHUNK])],
                axis=1,
            )
            for start in range(0, len(points), _CHUNK)
        ]
        result = np.concatenate(parts) - np.log(self.n_trees) - self.log_volume
        return np.where(self.is_inside(points), result, -np.inf)

    def draw(self, n: int, rng: np.random.RandomState) -> FloatArray:
        """Draw points from the density, shape (n, d): a tree, a leaf by its mass, a point in it."""
        result = np.empty((n, self.points.shape[1]))
        chosen = rng.randint(self.n_trees, size=n)
        for t in np.unique(chosen):
            rows = np.flatnonzero(chosen == t)
            leaves, masses = self.masses(int(t))
            drawn = leaves[rng.choice(len(leaves), len(rows), p=masses / masses.sum())]
            cells = np.tile(self.box, (len(rows), 1, 1))
            fill_cells(view_of(self.trees, int(t)), drawn, cells)
            low, high = cells[:, LOWER], cells[:, UPPER]
            result[rows] = low + rng.random_sample(low.shape) * (high - low)
        return result

    def masses(self, tree: int) -> tuple[NDArray[np.intp], FloatArray]:
        """Return the leaves of a tree and their expected masses, which add up to 1."""
        n_nodes = int(self.trees.counters[tree, N_NODES])
        leaves = np.flatnonzero(self.trees.children[tree, :n_nodes, LEFT] == NONE)
        log_volumes = np.zeros(n_nodes)
        fill_log_volumes(view_of(self.trees, tree), self._fractions[tree], log_volumes)
        return leaves, np.exp(self.log_densities[WITH, tree, leaves] + log_volumes[leaves])

    def path(self, validation: FloatArray | None) -> DensityLifetimePath:
        """Return the likelihoods at all lifetimes.

        Parameters
        ----------
        validation : float64 array of shape (m, d) or None
            Validation points.

        Returns
        -------
        DensityLifetimePath
            The likelihoods.
        """
        splits = splits_in_order(self.trees)
        return DensityLifetimePath(
            np.concatenate([[0.0], splits[0]]),
            self.lifetime,
            self._follow(self.points, WITH, splits),
            self._follow(self.points, WITHOUT, splits),
            np.full(len(splits[0]) + 1, np.nan)
            if validation is None
            else self._follow(validation, WITH, splits),
        )

    def best_leave_one_out(self) -> float:
        """Return the first lifetime that has the largest leave-one-out likelihood: 0 or a split."""
        splits = splits_in_order(self.trees)
        best = int(np.argmax(self._follow(self.points, WITHOUT, splits)))
        return float(splits[0][best - 1]) if best > 0 else 0.0

    def _follow(
        self, points: FloatArray, which: int, splits: tuple[FloatArray, IntArray, IntArray]
    ) -> FloatArray:
        """Return the mean log densities of points before the first split and after each."""
        times, trees, nodes = splits
        path = np.empty(len(times) + 1)
        if not self.is_inside(points).all():
            return np.full(len(path), -np.inf)
        leaves = self.leaves(points)
        follow_splits(self.trees, self.log_densities[which], leaves, trees, nodes, path)
        return path - self.log_volume
