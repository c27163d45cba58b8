"""A Mondrian forest whose leaves carry Gaussian processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from mondrian_bo.array_types import BoolArray, FloatArray, IntArray
from mondrian_bo.surrogates.gaussian_process.covariance import Covariance
from mondrian_bo.surrogates.gaussian_process.fit import Prior, fit, start
from mondrian_bo.surrogates.gaussian_process_forest.leaf import GaussianProcessLeaf
from mondrian_bo.surrogates.gaussian_process_forest.posterior_draw import (
    Function,
    draw_from_posterior,
)
from mondrian_bo.surrogates.gaussian_process_forest.predict import Moments
from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest
from mondrian_bo.surrogates.shared.growing_array import GrowingArray
from mondrian_bo.surrogates.shared.threads import single_threaded_blas
from mondrian_bo.trees.hierarchical_gaussian import Hyperparameters
from mondrian_bo.trees.leaf_models import (
    all_leaves,
    leaf_means,
    members_of,
    set_messages,
)
from mondrian_bo.trees.tree import N_NODES, ROOT

_BEFORE_ITERATIONS = 50
_FIRST_ITERATIONS = 100
_ITERATIONS = 8


class GaussianProcessForest:
    """Mondrian trees over blocks of at most so many points, each with a Gaussian process.

    The labels are ``mean of the block + process of the block + noise``. Processes of different
    blocks are independent and share their hyper-parameters; the means follow the hierarchical
    Gaussian of Lakshminarayanan2016. As long as all points fit into one block, the forest is one
    Gaussian process. New cuts are drawn at rates of one per lengthscale.

    Parameters
    ----------
    n_trees, n_dimensions : int
        Numbers of trees T and dimensions d.
    seed : numpy.random.SeedSequence
        Source of all randomness.
    categorical : bool array of shape (d,)
        Which dimensions of the rows hold categories.
    block_size : int
        Largest number of points of a block, m.
    prior : Prior
        Of the hyper-parameters, for labels of mean 0 and variance 1.
    scale_strength : float
        The variance of each block's process is matched to its labels, shrunk towards the common
        one as if so many points had confirmed that; infinity keeps the common one.
    fit_growth : float, default=1.05
        Hyper-parameters are refitted whenever the number of points has grown by this factor.
    fit_points : int, default=320
        They are fitted to blocks of so many points in all, or to one block that has more.

    Notes
    -----
    A point is learnt in O(T m^3 + T d log n), when it is next asked for a prediction; a prediction
    takes O(T (m^2 + log n)). To refit the hyper-parameters recomputes all blocks: O(T n m^2),
    O(T m^2) for each point in the long run.
    """

    def __init__(
        self,
        n_trees: int,
        n_dimensions: int,
        seed: np.random.SeedSequence,
        categorical: BoolArray,
        *,
        block_size: int = 200,
        prior: Prior | None = None,
        scale_strength: float = math.inf,
        fit_growth: float = 1.05,
        fit_points: int = 320,
    ) -> None:
        self._prior = Prior() if prior is None else prior
        self._scale_strength = scale_strength
        self._fit_growth = fit_growth
        self._fit_points = fit_points
        self._block_size = block_size
        tree_seed, fit_seed = seed.spawn(2)
        self._forest = GaussianForest(
            n_trees, n_dimensions, tree_seed, min_samples_split=block_size + 1
        )
        self._fit_seed = fit_seed
        self._candidates = start(categorical, self._prior)
        self._rows = GrowingArray(n_dimensions)
        self._units = np.ones(n_dimensions)
        self._n_fitted = 0
        self._blocks: list[dict[int, GaussianProcessLeaf]] = [{} for _ in range(n_trees)]
        self._stale: list[set[int]] = [set() for _ in range(n_trees)]
        self._laws: list[dict[int, list[float]]] = [{} for _ in range(n_trees)]

    @property
    def n_points(self) -> int:
        """Number of points learnt."""
        return self._forest.n_points

    @property
    def covariance(self) -> Covariance:
        """The processes: of the smoothness that explains the labels best."""
        return self._candidates[0]

    @property
    def forest(self) -> GaussianForest:
        """The trees over the blocks; all are alike as long as there is one block."""
        return self._forest

    @property
    def n_components(self) -> int:
        """Number of different predictions: one as long as there is one block."""
        return 1 if self.n_points <= self._block_size else self._forest.n_trees

    def learn_covariance(self, rows: FloatArray, targets: FloatArray) -> None:
        """Fit the hyper-parameters to some points, before any tree is grown by their lengthscales.

        Parameters
        ----------
        rows : float64 array of shape (k, d)
            The points as the processes see them.
        targets : float64 array of shape (k,)
            Their labels.
        """
        self._candidates = fit([(rows, targets)], self._candidates, self._prior, _BEFORE_ITERATIONS)

    def learn(self, points: FloatArray, rows: FloatArray, targets: FloatArray) -> None:
        """Learn more points.

        Parameters
        ----------
        points : float64 array of shape (S, k, d)
            The points, once (S = 1) or as each tree sees them.
        rows : float64 array of shape (k, d)
            The points as the processes see them.
        targets : float64 array of shape (k,)
            Their labels.
        """
        self._rows.extend(rows)
        if self.n_points == 0:
            self._forest.build(
                points, targets, self._rates(), Hyperparameters(self._gamma_2(len(targets)), 1.0)
            )
            self._forget_blocks()
        else:
            self._extend(points, targets)

    def set_targets(self, targets: FloatArray) -> None:
        """Replace all labels; the trees do not depend on them."""
        self._forest.set_targets(targets)
        self._forget_blocks()

    def rescale(self, rows: FloatArray, units: FloatArray, targets: FloatArray) -> None:
        """Replace all rows and all labels.

        Parameters
        ----------
        rows : float64 array of shape (n, d)
            All points as the processes see them.
        units : float64 array of shape (d,)
            What a unit of the trees' points is in the rows, for the rates of new cuts. First 1.
        targets : float64 array of shape (n,)
            All labels.
        """
        self._rows.replace(rows)
        self._units = units
        if self.n_points > 0:
            self.set_targets(targets)

    def predict(
        self,
        points: Callable[[], FloatArray],
        rows: FloatArray,
        gradients: bool = False,
        labels: bool = False,
    ) -> Moments:
        """Predict the function or, with noise, labels.

        Parameters
        ----------
        points : callable
            Returns the points as the trees see them, shape (S, m, d), if they are needed.
        rows : float64 array of shape (m, d)
            The points as the processes see them.
        gradients : bool, default=False
            Whether to return derivatives, too.
        labels : bool, default=False
            Whether variances include the noise.

        Returns
        -------
        Moments
            With an axis of length C, `n_components`, in front of the others.
        """
        rows = np.ascontiguousarray(rows)
        with single_threaded_blas():
            self.settle()
            m, d = rows.shape
            moments = np.empty((2, self.n_components, m))
            derivatives = np.empty((2, self.n_components, m if gradients else 0, d))
            prediction = Moments(*moments, *derivatives)
            if self.n_components == 1:
                parts = [([int(self._forest.arrays.counters[0, ROOT])], [np.arange(m)])]
            else:
                parts = [_parts(leaves) for leaves in self._forest.leaves(points()).T]
            for t, (leaves, places) in enumerate(parts):
                own = Moments(*(moment[t] for moment in prediction))
                laws = self._laws_of(t, leaves)
                for leaf, inside, (mean, variance) in zip(leaves, places, laws, strict=True):
                    self._blocks[t][leaf].predict(rows, inside, mean, variance, own, labels)
        return prediction

    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Compare each label with what all others say of it; the hyper-parameters stay as they are.

        Returns
        -------
        residuals, variances : float64 arrays of shape (C, n)
            Labels minus their means given all others in each tree, and their variances given these.
        """
        self.settle()
        residuals = np.empty((self.n_components, self.n_points))
        variances = np.empty_like(residuals)
        for t in range(self.n_components):
            leaves = self._leaves(t).tolist()
            for leaf, law in zip(leaves, self._laws_of(t, leaves), strict=True):
                members = self._members(t, leaf)
                residuals[t, members], variances[t, members] = self._blocks[t][leaf].leave_one_out(
                    *law
                )
        return residuals, variances

    def draw(self, n_choices: IntArray, rng: np.random.Generator, labels: bool = False) -> Function:
        """Draw a function from the posterior of a random tree.

        The result maps points and rows, as in `predict`, to values of shape (m,); all calls
        evaluate the same function, as long as nothing is learnt, with new noise if it draws labels.
        """
        self.settle()
        tree = int(rng.integers(self.n_components))
        key = int(rng.integers(2**63))
        return draw_from_posterior(
            self._forest,
            tree,
            self._blocks[tree],
            self.covariance,
            self._gamma_1,
            n_choices,
            key,
            rng if labels else None,
        )

    @contextmanager
    def extended(self, points: FloatArray, rows: FloatArray, targets: FloatArray) -> Iterator[None]:
        """Know further points for the time of a ``with`` block, under the same hyper-parameters."""
        self.settle()
        n_rows, saved = len(self._rows), (self._blocks, self._laws, self._n_fitted)
        self._rows.extend(rows)
        self._blocks = [blocks.copy() for blocks in self._blocks]
        self._laws = self._laws.copy()
        self._n_fitted = 2**62
        first = self._n_nodes()
        try:
            with self._forest.extended(points, targets, self._rates()[None]):
                self._mark(points, first)
                yield
        finally:
            self._rows.shorten(n_rows)
            self._blocks, self._laws, self._n_fitted = saved
            for stale in self._stale:
                stale.clear()

    def _extend(self, points: FloatArray, targets: FloatArray) -> None:
        first = self._n_nodes()
        self._forest.extend(points, targets, self._rates()[None])
        self._mark(points, first)

    def _mark(self, points: FloatArray, first: IntArray) -> None:
        """Note which blocks are out of date, after points have been inserted."""
        for t, leaves in enumerate(self._forest.leaves(points).T):
            self._stale[t].update(leaves.tolist())
            if self._forest.arrays.counters[t, N_NODES] > first[t]:
                # What has been split is a leaf no more, and new leaves have no block yet.
                there = set(self._leaves(t).tolist())
                self._blocks[t] = {k: block for k, block in self._blocks[t].items() if k in there}
                self._stale[t] = (self._stale[t] & there) | (there - self._blocks[t].keys())

    def _leaves(self, tree: int) -> IntArray:
        leaves = np.empty(int(self._forest.arrays.counters[tree, N_NODES]), dtype=np.int64)
        return leaves[: all_leaves(self._forest.arrays, tree, leaves)]

    def _n_nodes(self) -> IntArray:
        return self._forest.arrays.counters[:, N_NODES].copy()

    def _forget_blocks(self) -> None:
        for t in range(self._forest.n_trees):
            self._blocks[t].clear()
            self._stale[t] = set(self._leaves(t).tolist())

    def settle(self) -> None:
        """Refit the hyper-parameters if it is time, and bring blocks and messages up to date."""
        if self.n_points >= self._fit_growth * self._n_fitted:
            self._fit()
        for t in range(self.n_components):
            if self._stale[t]:
                self._settle_tree(t)

    def _settle_tree(self, t: int) -> None:
        stale = sorted(self._stale[t])
        with single_threaded_blas():
            messages = np.empty((len(stale), 4))
            for k, leaf in enumerate(stale):
                block = self._block(t, leaf)
                self._blocks[t][leaf] = block
                messages[k] = (
                    block.precision * self._gamma_1,
                    block.location,
                    block.residual * self._gamma_1,
                    block.log_determinant,
                )
        set_messages(
            self._forest.arrays,
            self._forest.node_stats,
            t,
            np.array(stale, dtype=np.int64),
            messages,
            self._forest.hyperparameters.gamma_2,
        )
        self._stale[t].clear()
        self._laws[t] = {}

    @property
    def _gamma_1(self) -> float:
        # What a path spends from time 0 on is half of gamma_1.
        return 2.0 * self._prior.mean_variance

    def _members(self, tree: int, leaf: int) -> IntArray:
        members = np.empty(int(self._forest.arrays.size[tree, leaf]), dtype=np.int64)
        members_of(self._forest.arrays, tree, leaf, members)
        return members

    def _block(self, tree: int, leaf: int) -> GaussianProcessLeaf:
        members = self._members(tree, leaf)
        rows, targets = self._rows.rows[members], self._forest.targets[members]
        return GaussianProcessLeaf(rows, targets, self.covariance, self._scale_strength)

    def _laws_of(self, tree: int, leaves: list[int]) -> list[list[float]]:
        """Return means and variances of the means of blocks; they hold until the tree changes."""
        laws = self._laws[tree]
        new = [leaf for leaf in leaves if leaf not in laws]
        if new:
            found = np.empty((len(new), 2))
            leaf_means(
                self._forest.arrays, self._forest.node_stats, tree, np.array(new), 0.0, found
            )
            found[:, 1] *= self._gamma_1
            laws.update(zip(new, found.tolist(), strict=True))
        return [laws[leaf] for leaf in leaves]

    def _rates(self) -> FloatArray:
        return np.asarray(np.sqrt(self.covariance.precisions) * self._units)

    def _gamma_2(self, n_points: int) -> float:
        # Appendix B of Lakshminarayanan2016, for blocks instead of points.
        n_blocks = max(n_points / self._block_size, 2.0)
        return float(np.sqrt(self.covariance.precisions).sum()) / (20.0 * math.log2(n_blocks))

    def _fit(self) -> None:
        blocks, n_points = [], 0
        rng = np.random.default_rng(self._fit_seed)
        candidates = [
            (t, leaf) for t in range(self.n_components) for leaf in self._leaves(t).tolist()
        ]
        for t, leaf in (candidates[k] for k in rng.permutation(len(candidates))):
            members = self._members(t, leaf)
            if n_points and n_points + len(members) > self._fit_points:
                continue
            n_points += len(members)
            blocks.append((self._rows.rows[members], self._forest.targets[members]))
        iterations = _FIRST_ITERATIONS if self._n_fitted == 0 else _ITERATIONS
        self._candidates = fit(blocks, self._candidates, self._prior, iterations)
        self._n_fitted = self.n_points
        self._forget_blocks()


def _parts(leaves: IntArray) -> tuple[list[int], list[IntArray]]:
    """Return the different leaves and, for each, where it stands."""
    order = np.argsort(leaves, kind="stable")
    found, starts = np.unique(leaves[order], return_index=True)
    return found.tolist(), np.split(order, starts[1:])
