"""The models whose variance is decomposed: a Gaussian process, and a Mondrian forest.

A Gaussian process predicts ``c + sum_i w_i k(x, x_i)``. Its Matern kernel is a scale mixture of
Gaussian kernels, each of them a product over parameters:
``k(r) = E[exp(-nu r^2 / (2 t))]`` with t of a gamma distribution of shape nu (Rasmussen2006,
eq. 4.14, with the integral of the modified Bessel function over t). The expectation is a sum over
two dozen nodes. A Mondrian forest predicts a constant in the cell of each leaf.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, Protocol, TypeAlias

import numpy as np

from mondrian_bo.importance.axes import Axis, activity_patterns, new_axis
from mondrian_bo.importance.decomposition import Decomposition, Terms, functional_anova
from mondrian_bo.importance.partition import Boxes, partition_anova
from mondrian_bo.optimizer.maximization.sobol import sobol_points
from mondrian_bo.optimizer.search.search_factory import columns_of
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.gaussian_process_forest.kernel_sums import kernel_sums
from mondrian_bo.surrogates.gaussian_process_forest.surrogate import GaussianProcessForestSurrogate
from mondrian_bo.surrogates.mondrian_forest.model import HierarchicalGaussianModel
from mondrian_bo.surrogates.shared.encoding import TreeEncoding
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.leaf_cells import leaf_cells
from mondrian_bo.surrogates.shared.tree_surrogate import unit_cube

ModelName: TypeAlias = Literal["gaussian_process", "forest"]
"""Values of the parameter `surrogate`."""

_NODES = 48
"""Gauss-Legendre nodes of a continuous parameter, our choice: they resolve lengthscales of 0.05."""

_SCALE_STEP = 0.5
"""Step of the trapezoidal rule in the logarithm of t: errors of 1e-6 of the kernel. Weights of
kernels without noise are large and of both signs, so errors are multiplied."""

_NEGLIGIBLE = 1e-9
"""Probability of t below the first node."""

_LARGEST_SCALE = 40.0
"""Largest t: the probability of larger ones is below 1e-14."""

_POINTS = 2**13
"""Number of quasi-random points of a process's total variance, a power of two: our choice."""

_TREES = {"gaussian_process": 2, "forest": 10}
"""Default numbers of trees, those of the optimizer."""


class _Model(Protocol):
    """A model that knows how to decompose the variance of its prediction."""

    def breaks(self, j: int) -> FloatArray:
        """Return where integrals along a continuous column are divided, ascending."""
        ...

    def decompose(self, space: SearchSpace, axes: list[Axis]) -> Decomposition:
        """Decompose the variance."""
        ...


def decompose(
    space: SearchSpace,
    rows: FloatArray,
    targets: FloatArray,
    *,
    surrogate: ModelName = "gaussian_process",
    n_estimators: int | None = None,
    seed: int = 0,
) -> Decomposition:
    """Fit a model and decompose the variance of its prediction.

    Parameters
    ----------
    space : SearchSpace
        The space.
    rows : float64 array of shape (n, d)
        Points of the space, n >= 1; NaN where a parameter is absent. A parameter without a
        condition that some rows lack counts as absent with the share of these rows.
    targets : float64 array of shape (n,)
        Finite values, of about mean 0 and standard deviation 1.
    surrogate : {"gaussian_process", "forest"}, default="gaussian_process"
        The model.
    n_estimators : int or None, default=None
        Number of trees; None is 10 for the forest, and 2 for the Gaussian process beyond 200 rows.
    seed : int, default=0
        Seed of trees.

    Returns
    -------
    Decomposition
        All parts of the variance, in squared units of the targets.
    """
    n_trees = _TREES[surrogate] if n_estimators is None else n_estimators
    new_model = MondrianForestAnova if surrogate == "forest" else GaussianProcessAnova
    model: _Model = new_model(space, rows, targets, n_trees, seed)
    parents = {p.condition.parent for p in space.parameters if p.condition is not None}
    axes = []
    for j, (name, parameter) in enumerate(space.items()):
        absent = float(np.isnan(rows[:, j]).mean()) if parameter.condition is None else 0.0
        axes.append(new_axis(parameter, model.breaks(j), _NODES, name not in parents, absent))
    return model.decompose(space, axes)


def _quasi_random_rows(space: SearchSpace, axes: list[Axis]) -> FloatArray:
    """Return rows that cover the space evenly, with absent values."""
    points = (sobol_points(space.n_dimensions, 0, _POINTS) + 0.5 / _POINTS) % 1.0
    shares = np.array([axis.weights[-1] for axis in axes])
    left_out = points < shares
    rows = space.from_uniform(np.clip((points - shares) / np.maximum(1.0 - shares, 1e-9), 0.0, 1.0))
    return np.where(left_out, np.nan, rows)


class GaussianProcessAnova:
    """Functional ANOVA of the optimizer's Gaussian process; beyond 200 rows, of many in leaves."""

    def __init__(
        self, space: SearchSpace, rows: FloatArray, targets: FloatArray, n_trees: int, seed: int
    ) -> None:
        is_plain = np.array([p.condition is None for p in space.parameters])
        columns = columns_of(space, bool(np.isnan(rows[:, is_plain]).any()))
        # The integrals along an axis are those of kernels of the parameter itself.
        self._surrogate = GaussianProcessForestSurrogate(
            columns, np.random.SeedSequence(seed), n_estimators=n_trees, input_warping=False
        )
        self._is_categorical = space.is_categorical
        self._surrogate.learn(rows, targets)
        self._sums = kernel_sums(self._surrogate.forest)

    def breaks(self, j: int) -> FloatArray:
        """Return where the cells of leaves end along a column."""
        return _breaks([one.upper[j : j + 1] for one in self._sums])

    def decompose(self, space: SearchSpace, axes: list[Axis]) -> Decomposition:
        """Decompose the variance: main effects and pairs by quadrature, the whole by sampling."""
        patterns = activity_patterns(space, axes)
        found = functional_anova(axes, patterns, self._terms(axes))
        variance = float(np.var(self.predict(_quasi_random_rows(space, axes))))
        # The error of sampling must not make the parts more than the whole.
        return replace(found, variance=max(variance, found.variance))

    def predict(self, rows: FloatArray) -> FloatArray:
        """Return the mean of the trees' predictions at rows, shape (m,)."""
        means, _ = self._surrogate.predict(rows)
        return np.asarray(means.mean(axis=0))

    def _terms(self, axes: list[Axis]) -> Iterator[Terms]:
        """Return the kernels of the leaves, one leaf after the other."""
        forest = self._surrogate.forest
        covariance = forest.covariance
        scales, shares = scale_mixture(covariance.smoothness)
        columns = [axis.values for axis in axes]
        seen = [self._seen(columns, j) for j in range(len(columns))]
        for one in self._sums:
            factors = []
            for j, (of_trees, column) in enumerate(seen):
                differences = column[:, None] - one.points[:, j]
                if self._is_categorical[j]:
                    differences = (differences != 0.0).astype(np.float64)
                squares = covariance.precisions[j] * differences**2
                kernels = np.exp(-squares[:, :, None] * scales).reshape(len(column), -1)
                # The first term is the constant.
                factor = np.hstack([np.ones((len(column), 1)), kernels])
                entries = of_trees[one.tree, :, None]
                factors.append(factor * _inside(one.lower[j], one.upper[j], entries))
            weights = np.append(one.constant, np.outer(one.weights, shares).ravel())
            yield Terms(weights / forest.n_components, factors)

    def _seen(self, columns: list[FloatArray], j: int) -> tuple[FloatArray, FloatArray]:
        """Return the nodes of an axis as each tree sees them, (T, a), and as processes do, (a,)."""
        filler = self._surrogate.absent_entries[j]
        filled = np.where(np.isnan(columns[j]), filler, columns[j])
        encoding = self._surrogate.encoding
        if encoding is None:
            return np.tile(filled, (self._surrogate.n_components, 1)), filled
        return _entries(encoding, columns, j), filled


class MondrianForestAnova:
    """Functional ANOVA of the Mondrian forest with constant leaves.

    The posterior mean of a leaf holds in the leaf's cell. The forest's own prediction outside of
    the boxes of the data is a mixture of the means along the path (Lakshminarayanan2016,
    Algorithm 5), which is not constant in cells.

    The hyper-parameters are those of the paper, while the optimizer's forest learns them from
    leave-one-out errors. With learnt ones the shares of functions whose parts are known are not
    closer to the true ones.

    Attributes
    ----------
    cells : list of LeafCells
        The cells of each tree.
    means : float64 array of shape (n_trees, n_nodes)
        Posterior means of leaves by node; 0 at other nodes.
    """

    def __init__(
        self, space: SearchSpace, rows: FloatArray, targets: FloatArray, n_trees: int, seed: int
    ) -> None:
        d = space.n_dimensions
        forest_seed, encoding_seed = np.random.SeedSequence(seed).spawn(2)
        self._encoding = TreeEncoding(
            space.n_choices, n_trees, np.random.default_rng(encoding_seed)
        )
        ensemble = Ensemble(n_trees, d, forest_seed)
        model = HierarchicalGaussianModel(ensemble, hyperparameters="paper", bounds=unit_cube(d))
        points = self._encoding(rows)
        model.learn(points, targets.copy())
        # At a point of the data no branch is possible: its prediction is its leaf's mean.
        means, _ = model.predict(points)
        self._forest = model.forest
        self.means = np.zeros((n_trees, model.forest.arrays.parent.shape[1]))
        for t, leaves in enumerate(model.forest.leaves(points).T):
            self.means[t, leaves] = means[t]
        self.cells = [leaf_cells(model.forest.arrays, t) for t in range(n_trees)]

    def breaks(self, j: int) -> FloatArray:
        """Return nothing: variances are exact without nodes."""
        return np.empty(0)

    def decompose(self, space: SearchSpace, axes: list[Axis]) -> Decomposition:
        """Decompose the variance exactly."""
        columns = [axis.values for axis in axes]
        seen = [_entries(self._encoding, columns, j) for j in range(len(axes))]
        factors = [
            np.hstack(
                [
                    _inside(cells.lower[:, j], cells.upper[:, j], entries[t, :, None])
                    for t, cells in enumerate(self.cells)
                ]
            )
            for j, entries in enumerate(seen)
        ]
        boxes = Boxes(
            np.concatenate([self.means[t, c.leaves] for t, c in enumerate(self.cells)])
            / len(self.cells),
            np.concatenate([cells.lower for cells in self.cells]),
            np.concatenate([cells.upper for cells in self.cells]),
            factors,
        )
        return partition_anova(axes, activity_patterns(space, axes), boxes)

    def predict(self, rows: FloatArray) -> FloatArray:
        """Return the average of the leaf means of the cells that hold the rows, shape (m,)."""
        leaves = self._forest.leaves(self._encoding(rows))
        return np.asarray(self.means[np.arange(leaves.shape[1]), leaves].mean(axis=1))


def scale_mixture(smoothness: float) -> tuple[FloatArray, FloatArray]:
    """Return factors of squared distances and weights of a Matern kernel's Gaussian kernels."""
    smallest = _NEGLIGIBLE ** (1.0 / smoothness)
    n_nodes = math.ceil(math.log(_LARGEST_SCALE / smallest) / _SCALE_STEP) + 1
    t = np.exp(np.linspace(math.log(smallest), math.log(_LARGEST_SCALE), n_nodes))
    weights = t**smoothness * np.exp(-t)
    return 0.5 * smoothness / t, weights / weights.sum()


def _breaks(ends: list[FloatArray]) -> FloatArray:
    """Return the distinct ends of cells that are within the unit interval."""
    found = np.unique(np.concatenate(ends)).astype(np.float64)
    return found[(found > 0.0) & (found < 1.0)]


def _entries(encoding: TreeEncoding, columns: list[FloatArray], j: int) -> FloatArray:
    """Return the nodes of an axis as each tree sees them, shape (T, a)."""
    rows = np.zeros((len(columns[j]), len(columns)))
    rows[:, j] = columns[j]
    return encoding(rows)[:, :, j]


def _inside(lower: FloatArray, upper: FloatArray, entries: FloatArray) -> FloatArray:
    """Return 1 where entries are within a side of a cell, else 0."""
    return ((lower < entries) & (entries <= upper)).astype(np.float64)
