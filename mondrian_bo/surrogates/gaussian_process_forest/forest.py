"""A Mondrian forest with Gaussian processes in its leaves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from mondrian_bo.shared.array_types import BoolArray, FloatArray, IntArray
from mondrian_bo.shared.blas_threads import single_threaded_blas
from mondrian_bo.shared.growing_array import GrowingArray
from mondrian_bo.surrogates.gaussian_process.covariance import Covariance
from mondrian_bo.surrogates.gaussian_process.fit import LeafData, Prior
from mondrian_bo.surrogates.gaussian_process.repeated_fit import RepeatedFit
from mondrian_bo.surrogates.gaussian_process_forest.leaf import (
    GaussianProcessLeaf,
    LeafTable,
    TreeLeaf,
)
from mondrian_bo.surrogates.gaussian_process_forest.leaf_prediction import (
    Moments,
    lacks_means,
    predict_leaves,
)
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.parallel import run_parallel, split_trees

if TYPE_CHECKING:
    from mondrian_bo.surrogates.gaussian_process_forest.leaf_trees import LeafTrees

_ITERATIONS_BEFORE_TREES = 50
"""Largest number of iterations of the fit for split rates, which need no precise maximum."""

_IMPUTED_SIZE = 2
"""Largest size of the only leaf with imputed points, in blocks, our choice: trees take longer."""

_ONLY_LEAF = 0
"""Node of the only leaf of each tree, which is its root."""


class GaussianProcessForest:
    """Mondrian trees with a Gaussian process in each leaf.

    Targets are ``leaf mean + process + noise``. The processes of different leaves are independent
    and share their hyper-parameters; the leaf means follow the hierarchical Gaussian of
    Lakshminarayanan2016. The split rates are the inverse lengthscales.

    While all points fit into one leaf, the forest is one Gaussian process. The trees are grown when
    a second leaf is needed, or when something asks for them: then the points are inserted as if the
    trees had been there from the start. Until then, imputed points may double the size of the leaf.

    Parameters
    ----------
    ensemble : Ensemble
        Number of trees, dimension of the points, and seed.
    categorical : bool array of shape (d,)
        Which dimensions of the rows hold categories.
    prior : Prior
        Prior of the hyper-parameters, for targets of mean 0 and variance 1.
    block_size : int, default=200
        Largest number of points of a leaf, m.
    scale_strength : float, default=inf
        The variance of each leaf's process is its maximum-likelihood estimate, shrunk towards the
        common variance by so many further points; infinity keeps the common variance.
    fit_growth, first_iterations, restart_growth : float, int and float, default=1.05, 100 and inf
        When and how hyper-parameters are fitted again, see :class:`RepeatedFit`.
    fit_points : int, default=320
        They are fitted to random leaves with at most so many points in all, or to one larger leaf.

    Notes
    -----
    A point takes O(T m^2 + T d log n), at the first prediction after it was learnt; a prediction
    takes O(T (m^2 + log n)). A fit of the hyper-parameters updates all leaves in O(T n m^2), which
    is amortised O(T m^2).

    The trees and the processes may see the same points differently: the trees see `points`, shape
    (S, k, d) with S = 1 or one for each tree, and the processes `rows`, shape (k, d).
    """

    _known_noise: GrowingArray | None = None

    def __init__(
        self,
        ensemble: Ensemble,
        categorical: BoolArray,
        *,
        prior: Prior,
        block_size: int = 200,
        scale_strength: float = math.inf,
        fit_growth: float = 1.05,
        fit_points: int = 320,
        first_iterations: int = 100,
        restart_growth: float = math.inf,
    ) -> None:
        self._prior = prior
        self._scale_strength = scale_strength
        self._fit_points = fit_points
        self._block_size = block_size
        n_trees, n_dimensions, seed = ensemble
        tree_seed, self._fit_seed = seed.spawn(2)
        self._ensemble = ensemble._replace(seed=tree_seed)
        self._trees: LeafTrees | None = None
        # While there are no trees: the points that they will see, and the first scale of times.
        self._batches: list[FloatArray] = []
        self._gamma_2 = 1.0
        self._gamma_1 = 2.0 * self._prior.mean_variance  # twice the prior variance of all times
        self._fits = RepeatedFit(
            categorical,
            self._prior,
            growth=fit_growth,
            first_iterations=first_iterations,
            restart_growth=restart_growth,
        )
        self._rows, self._targets = GrowingArray(n_dimensions), GrowingArray()
        self._units = np.ones(n_dimensions)
        # Of each tree, by node: processes, what predictions need of them, and those to be updated.
        self._leaves: list[dict[int, GaussianProcessLeaf]] = [{} for _ in range(n_trees)]
        self._tables = [LeafTable() for _ in range(n_trees)]
        self._stale: list[set[int]] = [set() for _ in range(n_trees)]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the addresses, which hold for this object alone."""
        return {name: value for name, value in self.__dict__.items() if name != "_tables"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore, with the addresses of its own leaves."""
        self.__dict__.update(state)
        self._tables = [LeafTable(leaves) for leaves in self._leaves]

    @property
    def n_points(self) -> int:
        """Number of points learnt."""
        return len(self._rows)

    @property
    def points(self) -> FloatArray:
        """The points as the trees see them, shape (S, n, d), n >= 1."""
        trees = self._trees
        return np.concatenate(self._batches, axis=1) if trees is None else trees.points

    @property
    def samples(self) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """The points as the processes see them, (n, d), their targets and known noise, (n,)."""
        noise = None if self._known_noise is None else self._known_noise.rows
        return self._rows.rows, self._targets.rows, noise

    @property
    def covariance(self) -> Covariance:
        """Hyper-parameters of the processes, of the smoothness with the largest posterior."""
        return self._fits.estimates[0].covariance

    @property
    def trees(self) -> LeafTrees:
        """The trees, of at least one point; `update` completes the messages of their leaves."""
        return self._grow_trees() if self._trees is None else self._trees

    @property
    def has_single_leaf(self) -> bool:
        """Whether all points are in one leaf, the same in each tree."""
        return self._trees is None or len(self._rows) <= self._block_size

    @property
    def n_components(self) -> int:
        """Number of different predictions: 1 with a single leaf, else one per tree."""
        return 1 if self.has_single_leaf else self._ensemble.n_trees

    @property
    def gamma_1(self) -> float:
        """Scale of the variances of leaf means. That of an only leaf has half of it a priori."""
        return self._gamma_1

    def leaves(self, points: FloatArray | None, n_rows: int) -> IntArray:
        """Return the leaf of each row in each tree, shape (n_rows, C); `points` as in `predict`."""
        if self.has_single_leaf:
            return np.full((n_rows, 1), _ONLY_LEAF)
        assert points is not None
        return self.trees.leaves(points)

    def iterate_leaves(self, tree: int, nodes: list[int] | None = None) -> Iterator[TreeLeaf]:
        """Yield the leaves at some nodes of a tree, or all of them; `update` must come first."""
        nodes = self._nodes_of_leaves(tree) if nodes is None else nodes
        self._require_means(tree, np.array(nodes))
        moments = self._tables[tree].numbers[nodes, 2:].tolist()
        for node, (mean, variance) in zip(nodes, moments, strict=True):
            process, members = self._leaves[tree][node], self._members(tree, node)
            yield TreeLeaf(node, process, members, mean, variance)

    def learn_covariance(self, rows: FloatArray, targets: FloatArray) -> None:
        """Fit the hyper-parameters to some points, for the split rates of trees yet to be grown.

        Rows, shape (k, d), are points as the processes see them; targets have the shape (k,).
        """
        self._fits.prepare((rows, targets), _ITERATIONS_BEFORE_TREES)

    def fix_covariance(self, covariance: Covariance) -> None:
        """Set the hyper-parameters of an empty forest; no fit changes them."""
        self._fits.fix(covariance)

    def learn(
        self,
        points: FloatArray,
        rows: FloatArray,
        targets: FloatArray,
        known_noise: FloatArray | None = None,
    ) -> None:
        """Learn more points.

        Parameters
        ----------
        points : float64 array of shape (S, k, d)
            The points as the trees see them.
        rows, targets, known_noise : float64 arrays of shape (k, d), (k,) and (k,) or None
            The points as the processes see them, their targets, and the known variances of the
            noise of these beside the common noise that is fitted; None if no point has any.
        """
        if known_noise is not None:
            if self._known_noise is None:
                self._known_noise = GrowingArray()
            self._known_noise.extend(known_noise)
        self._rows.extend(rows)
        self._targets.extend(targets)
        if self._trees is None:
            if not self._batches:
                self._gamma_2 = self._scale_of_times(len(targets))
            # The points are stored for the trees that may be grown later.
            self._batches.append(points)
            self._stale[0].add(_ONLY_LEAF)
            if len(self._rows) > self._block_size:
                self._grow_trees()
        else:
            n_nodes = self._trees.n_nodes()
            self._trees.extend(points, targets, self._rates()[None])
            self._mark_stale(self._trees, points, n_nodes)

    def set_targets(self, targets: FloatArray, known_noise: FloatArray | None = None) -> None:
        """Replace all targets, and their known noise if it is given; the trees stay."""
        if known_noise is not None and self._known_noise is not None:
            self._known_noise.replace(known_noise.copy())
        self._targets.replace(targets.copy())
        if self._trees is not None:
            self._trees.set_targets(targets)
        self._mark_all_stale()

    def rescale(
        self,
        rows: FloatArray,
        units: FloatArray,
        targets: FloatArray,
        covariance: Covariance | None = None,
    ) -> None:
        """Replace all rows and all targets.

        Parameters
        ----------
        rows : float64 array of shape (n, d)
            All points as the processes see them.
        units : float64 array of shape (d,)
            Ratio of the rows to the trees' points, for the rates of new splits. Initially 1.
        targets : float64 array of shape (n,)
            All targets.
        covariance : Covariance or None, default=None
            The hyper-parameters from which the next fit starts; None keeps the present ones.
        """
        if covariance is not None:
            self._fits.start_from(covariance)
        self._rows.replace(rows)
        self._units = units
        if self.n_points > 0:
            self.set_targets(targets)

    def predict(
        self,
        points: FloatArray | None,
        rows: FloatArray,
        with_gradients: bool = False,
        with_noise: bool = False,
        n_jobs: int | None = 1,
    ) -> Moments:
        """Predict the function or, with noise, targets.

        Parameters
        ----------
        points : float64 array of shape (S, m, d) or None
            The points as the trees see them; not needed while `has_single_leaf`.
        rows : float64 array of shape (m, d)
            The points as the processes see them.
        with_gradients : bool, default=False
            Whether to return gradients.
        with_noise : bool, default=False
            Whether variances include the noise.
        n_jobs : int or None, default=1
            Number of threads, as in :func:`split_trees`.

        Returns
        -------
        Moments
            Arrays with a leading axis of length C, `n_components`.
        """
        rows, n_components = np.ascontiguousarray(rows), self.n_components
        m, d = rows.shape
        moments = np.empty((2, n_components, m))
        gradients = np.empty((2, n_components, m if with_gradients else 0, d))
        with single_threaded_blas():
            self.update()
            if self.has_single_leaf:
                nodes = np.zeros((m, 1), dtype=np.int64)  # _ONLY_LEAF
            else:
                assert points is not None
                nodes = self.trees.leaves(points)
                for t in range(n_components):
                    self._require_means(t, nodes[:, t])
            covariance = self._fits.estimates[0].covariance

            def predict_some(part: slice) -> None:
                for t in range(part.start, part.stop):
                    table = self._tables[t].addresses, self._tables[t].numbers
                    settings = rows, covariance, with_noise
                    predict_leaves(table, nodes, t, *settings, moments, gradients)

            if n_jobs == 1:
                predict_some(slice(0, n_components))
            else:
                # Threads only: tables have addresses of this process, and results are shared.
                parts = [(part,) for part in split_trees(n_components, n_jobs)]
                run_parallel(single_threaded_blas()(predict_some), parts, shares_memory=True)
        return Moments(moments[0], moments[1], gradients[0], gradients[1])

    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Predict each target from all others, with the present hyper-parameters.

        Returns targets minus predictive means, and predictive variances, both of shape (C, n).
        """
        self.update()
        residuals = np.empty((self.n_components, self.n_points))
        variances = np.empty_like(residuals)
        for t in range(self.n_components):
            for _, process, members, *moments in self.iterate_leaves(t):
                residuals[t, members], variances[t, members] = process.leave_one_out(*moments)
        return residuals, variances

    @contextmanager
    def extended(self, points: FloatArray, rows: FloatArray, targets: FloatArray) -> Iterator[None]:
        """Learn further points inside a ``with`` block, without a fit of the hyper-parameters."""
        self.update()
        n_points, trees = self.n_points, self._trees
        saved = (trees, self._batches, self._leaves, self._tables, self._fits.n_due)
        self._rows.extend(rows)
        self._targets.extend(targets)
        if self._known_noise is not None:
            self._known_noise.extend(np.zeros(len(rows)))
        self._leaves = [leaves.copy() for leaves in self._leaves]
        self._tables = [table.duplicate() for table in self._tables]
        self._fits.n_due = math.inf
        try:
            if trees is None:
                # Trees that are grown in here are given up at the end.
                self._batches = [*self._batches, points]
                self._stale[0].add(_ONLY_LEAF)
                if len(self._rows) > _IMPUTED_SIZE * self._block_size:
                    self._grow_trees()
                yield
            else:
                n_nodes = trees.n_nodes()
                with trees.extended(points, targets, self._rates()[None]):
                    self._mark_stale(trees, points, n_nodes)
                    yield
        finally:
            self._rows.shorten(n_points)
            self._targets.shorten(n_points)
            if self._known_noise is not None:
                self._known_noise.shorten(n_points)
            self._trees, self._batches, self._leaves, self._tables, self._fits.n_due = saved
            for stale in self._stale:
                stale.clear()

    def update(self) -> None:
        """Fit the hyper-parameters if that is due, and update stale leaves and their messages."""
        if len(self._rows) >= self._fits.n_due:
            self._fit()
        for t, stale in enumerate(self._stale[: self.n_components]):
            if stale:
                self._update_tree(t)
        if self.has_single_leaf and math.isnan(self._tables[0].numbers[_ONLY_LEAF, 2]):
            # The posterior of its mean, which has the prior mean 0 and variance gamma_1 / 2.
            only, prior_variance = self._leaves[0][_ONLY_LEAF], 0.5 * self._gamma_1
            variance = prior_variance / (1.0 + prior_variance * only.precision)
            mean = variance * only.precision * only.location
            self._tables[0].numbers[_ONLY_LEAF, 2:] = mean, variance

    def _fit(self) -> None:
        """Fit the hyper-parameters to random leaves; all leaves are stale then."""
        parts: list[LeafData] = []
        n_points = 0
        rng = np.random.default_rng(self._fit_seed)
        leaves = [(t, leaf) for t in range(self.n_components) for leaf in self._nodes_of_leaves(t)]
        for t, leaf in (leaves[k] for k in rng.permutation(len(leaves))):
            members = self._members(t, leaf)
            rows, targets = self._rows.rows[members], self._targets.rows[members]
            noise = None if self._known_noise is None else self._known_noise.rows[members]
            if n_points and n_points + len(targets) > self._fit_points:
                continue
            n_points += len(targets)
            parts.append((rows, targets, noise))
        # Before: leaves may not stay as they are if the fit is interrupted.
        self._mark_all_stale()
        self._fits.fit(parts, self.n_points)

    def _update_tree(self, t: int) -> None:
        """Compute the posteriors of stale leaves and pass their messages up the tree."""
        stale = sorted(self._stale[t])
        settings = self._fits.estimates[0].covariance, self._scale_strength
        with single_threaded_blas():
            messages = np.empty((len(stale), 4))
            for k, node in enumerate(stale):
                members = self._members(t, node)
                rows, targets = self._rows.rows[members], self._targets.rows[members]
                noise = None if self._known_noise is None else self._known_noise.rows[members]
                former = self._leaves[t].get(node)
                leaf = GaussianProcessLeaf(rows, targets, *settings, former, noise)
                self._leaves[t][node] = leaf
                self._tables[t].enter(node, leaf)
                if self._trees is not None:
                    messages[k] = leaf.message(self._gamma_1)
        self._tables[t].numbers[:, 2:] = math.nan
        if self._trees is not None:
            self._trees.set_messages(t, stale, messages)
        self._stale[t].clear()

    def _grow_trees(self) -> LeafTrees:
        """Grow the trees as if they had seen the points at the time: all leaves are stale then.

        A leaf that holds all points neither draws random numbers nor depends on rates. So the
        points after the first batch are inserted in one call.
        """
        # Loaded here: a search of up to `block_size` trials needs no trees.
        from mondrian_bo.surrogates.gaussian_process_forest.leaf_trees import LeafTrees
        from mondrian_bo.trees.hierarchical_gaussian import Hyperparameters

        trees = LeafTrees(deepcopy(self._ensemble), min_samples_split=self._block_size + 1)
        first, *later = self._batches
        n_first, rates = first.shape[1], self._rates()
        # The trees keep the arrays that they are given.
        targets = self._targets.rows.copy()
        trees.build(first, targets[:n_first], rates, Hyperparameters(self._gamma_2, 1.0))
        if later:
            trees.extend(np.concatenate(later, axis=1), targets[n_first:], rates[None])
        # Only now: an interruption must not lose the points.
        self._trees = trees
        self._batches = []
        self._mark_all_stale()
        return trees

    def _mark_stale(self, trees: LeafTrees, points: FloatArray, n_nodes_before: IntArray) -> None:
        """Mark the leaves of points that have been inserted, and new leaves, as stale."""
        n_nodes = trees.n_nodes()
        for t, leaves in enumerate(trees.leaves(points).T):
            self._stale[t].update(leaves.tolist())
            if n_nodes[t] > n_nodes_before[t]:
                # A split node is no longer a leaf, and new leaves have no process yet.
                nodes = set(self._nodes_of_leaves(t))
                for node in self._leaves[t].keys() - nodes:
                    del self._leaves[t][node]
                    self._tables[t].remove(node)
                self._stale[t] = (self._stale[t] & nodes) | (nodes - self._leaves[t].keys())

    def _mark_all_stale(self) -> None:
        for t in range(self._ensemble.n_trees):
            self._leaves[t], self._tables[t] = {}, LeafTable()
            self._stale[t] = set(self._nodes_of_leaves(t))

    def _nodes_of_leaves(self, tree: int) -> list[int]:
        return [_ONLY_LEAF] if self._trees is None else self._trees.nodes_of_leaves(tree)

    def _members(self, tree: int, leaf: int) -> IntArray | slice:
        """Return what selects the points of a leaf."""
        return slice(None) if self._trees is None else self._trees.members(tree, leaf)

    def _require_means(self, tree: int, nodes: IntArray) -> None:
        """Compute the means of leaves, shape (k,), that no prediction has asked for so far."""
        numbers = self._tables[tree].numbers
        if lacks_means(numbers, nodes):
            unknown = np.unique(nodes[np.isnan(numbers[nodes, 2])])
            found = self.trees.leaf_means(tree, unknown)
            found[:, 1] *= self._gamma_1
            numbers[unknown, 2:] = found

    def _rates(self) -> FloatArray:
        """Return the split rates of the trees' points, one per lengthscale."""
        return np.sqrt(self.covariance.precisions) * self._units

    def _scale_of_times(self, n_points: int) -> float:
        """Return gamma_2 for a first batch of points."""
        # Lakshminarayanan2016, appendix B, with leaves for points and sums of rates for dimensions.
        n_leaves = max(n_points / self._block_size, 2.0)
        return float(np.sqrt(self.covariance.precisions).sum()) / (20.0 * math.log2(n_leaves))
