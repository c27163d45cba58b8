"""The Mondrian forest for regression as a model: scales, hyper-parameters, prediction.

The scikit-learn estimator and the optimizer's surrogate share :class:`HierarchicalGaussianModel`,
the predictor of Lakshminarayanan2016. It does not validate its input; the estimator does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import softmax

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.gaussian_process.lengthscales import inverse_lengthscales
from mondrian_bo.surrogates.mondrian_forest.evidence import learn_by_evidence, log_evidence
from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest
from mondrian_bo.surrogates.mondrian_forest.hyperparameters import Learnt, learn_hyperparameters
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.mixture import GaussianMixture
from mondrian_bo.surrogates.shared.regrowth import Regrowth
from mondrian_bo.surrogates.shared.relevance import RELEVANCE_START, learnt_rates
from mondrian_bo.surrogates.shared.scales import ScaledForestModel
from mondrian_bo.surrogates.shared.target_scale import is_constant, target_scale
from mondrian_bo.trees.hierarchical_gaussian import (
    SQUARES,
    Hyperparameters,
)
from mondrian_bo.trees.predict import BRIDGE, EMPIRICAL, PAPER, REMAINING

Posterior = Literal["exact", "empirical"]
"""Exact posterior of the leaf means, or empirical moments (Lakshminarayanan2016, section 5.3)."""

BranchOff = Literal["remaining", "bridge", "paper"]
"""Prediction of a point that branches off before a node (docs/regression.md)."""

Learning = Literal["paper", "leave_one_out", "marginal_likelihood"]
"""Source of the hyper-parameters; "paper" is Lakshminarayanan2016, Appendix B."""

Relevance = bool | Literal["lengthscales"]
"""Split rates: the paper's, by the loss that splits reduced, or by learnt lengthscales."""

_LEARNING_START = 8
"""Smallest number of targets from which three hyper-parameters are learnt: our choice."""


def appendix_b(n_points: int, extent: float) -> Hyperparameters:
    """Return gamma_2 and the noise by the heuristic of Lakshminarayanan2016, Appendix B.

    Parameters
    ----------
    n_points : int
        Number of points N.
    extent : float
        Sum of the scaled extents of the data, which is D for data scaled to the unit cube.

    Returns
    -------
    Hyperparameters
        ``gamma_2 = D / (20 log2 N)`` and the noise ``1 / min(2000, 2 N)`` in units of gamma_1.
    """
    return Hyperparameters(  # Lakshminarayanan2016, Appendix B
        gamma_2=extent / (20.0 * math.log2(max(n_points, 2))),
        noise=1.0 / min(2000, 2 * n_points),
    )


class HierarchicalGaussianModel(ScaledForestModel):
    """A Mondrian forest with the hierarchical Gaussian, over validated arrays.

    Parameters
    ----------
    ensemble : Ensemble
        Number of trees, dimension of the points, and seed.
    min_samples_split : int, default=2
        Blocks with fewer points are not split.
    lifetime : float, default=inf
        Blocks are not split later than this, in the time of data scaled to the unit cube.
    posterior : {"exact", "empirical"}, default="exact"
        Exact belief propagation, or the empirical mean and variance of each node plus the noise
        (Lakshminarayanan2016, section 5.3).
    branch_off : {"remaining", "bridge", "paper"}, default="remaining"
        Prediction of a point that branches off before a node: the posterior of that node ("paper"),
        the same plus the prior variance below it ("remaining"), or the posterior of the node that
        is inserted there ("bridge").
    hyperparameters : {"paper", "leave_one_out", "marginal_likelihood"}, default="paper"
        The heuristic of Lakshminarayanan2016, Appendix B, or the maximum of the forest's
        leave-one-out density, found whenever the number of points has doubled, or that of the
        evidence of its trees, which also gives a lifetime. The heuristic also applies to fewer than
        8 targets and to constant ones.
    weigh_trees : bool, default=False
        Whether trees have weights in proportion to their evidence, or equal ones.
    bounds : tuple of two float64 arrays of shape (d,), or None
        Lower and upper ends of the dimensions; None follows the range of the data.
    feature_weights : float64 array of shape (d,) or None
        Factors of the dimensions' split rates.
    feature_relevance : bool or "lengthscales", default=False
        Whether to learn further factors of the rates, from the gains of splits
        (:mod:`mondrian_bo.surrogates.shared.relevance`) or from the lengthscales of a Gaussian
        process (:mod:`mondrian_bo.surrogates.gaussian_process.lengthscales`). They apply to all
        splits of a first batch, and to new splits whenever the number of points has doubled.
    max_nodes : int or None, default=None
        Largest number of nodes of a tree, see :class:`GaussianForest`.
    """

    forest: GaussianForest
    _forest_class: type[GaussianForest] = GaussianForest

    def __init__(
        self,
        ensemble: Ensemble,
        *,
        min_samples_split: int = 2,
        lifetime: float = np.inf,
        posterior: Posterior = "exact",
        branch_off: BranchOff = "remaining",
        hyperparameters: Learning = "paper",
        weigh_trees: bool = False,
        bounds: tuple[FloatArray, FloatArray] | None = None,
        feature_weights: FloatArray | None = None,
        feature_relevance: Relevance = False,
        max_nodes: int | None = None,
    ) -> None:
        self._ensemble = ensemble
        self._other_seed = ensemble.seed.spawn(1)[0] if feature_relevance else None
        self._by_lengthscales = feature_relevance == "lengthscales"
        self._new_forest = partial(
            self._forest_class,
            min_samples_split=min_samples_split,
            lifetime=lifetime,
            max_nodes=max_nodes,
        )
        self.forest = self._new_forest(ensemble)
        if posterior == "empirical":
            self._rule = EMPIRICAL
        else:
            self._rule = {"remaining": REMAINING, "bridge": BRIDGE, "paper": PAPER}[branch_off]
        super().__init__(ensemble.n_dimensions, bounds, feature_weights)
        self._regrowth = Regrowth(self.scales)
        self._refreshed_at = 0
        self._learns = hyperparameters != "paper" and self._rule != EMPIRICAL
        self._by_evidence = hyperparameters == "marginal_likelihood"
        self._longest_lifetime = lifetime
        self._weigh_trees = weigh_trees
        self._learnt_ratio: float | None = None

    @property
    def rates(self) -> FloatArray:
        """Split rates of the dimensions, shape (d,): feature weights over ranges."""
        return self.scales.rates

    @property
    def samples(self) -> tuple[FloatArray, FloatArray]:
        """The points and their targets; after an interruption, at least those learnt before."""
        return self.forest.samples[:2]

    @property
    def weighs_trees(self) -> bool:
        """Whether trees have weights in proportion to their evidence."""
        return self._weigh_trees

    @property
    def tree_weights(self) -> FloatArray:
        """The weights of the trees in the mixture, shape (T,): posterior probabilities, or equal.

        The posterior is that of one of the trees being the right one, under a uniform prior.
        """
        if not self._weigh_trees or self.n_points == 0:
            return np.full(self.forest.n_trees, 1.0 / self.forest.n_trees)
        return np.asarray(softmax(self.log_marginal_likelihood()))

    @property
    def mean_prior(self) -> float:
        """The prior mean mu_H: the mean of the targets (Lakshminarayanan2016, Appendix B)."""
        return self.forest.target_moments()[0]

    @property
    def gamma_1(self) -> float:
        """The prior variance scale gamma_1.

        It matches the variance of the targets (Lakshminarayanan2016, Appendix B), or keeps its
        learnt ratio to that variance.
        """
        variance = self.forest.target_moments()[1]
        if self._learnt_ratio is not None:
            return self._learnt_ratio * variance
        return variance / self.forest.prior_variance(self.forest.hyperparameters)

    def learn(self, points: FloatArray, targets: FloatArray, n_jobs: int | None = 1) -> None:
        """Learn more points: the first ones in a batch, later ones one after the other.

        Where the range of the data grows the trees are grown anew at times, from all points
        (:class:`mondrian_bo.surrogates.shared.regrowth.Regrowth`).

        Parameters
        ----------
        points : float64 array of shape (S, m, d)
            The points, once (S = 1) or as each tree sees them.
        targets : float64 array of shape (m,)
            The targets.
        n_jobs : int or None, default=1
            Number of workers for a first batch and for trees that are grown anew.
        """
        if len(targets) == 0:
            return
        if self.n_points == 0:
            self.scales.follow(points)
            n_points = len(targets)
            is_due = n_points >= RELEVANCE_START
            if self._by_lengthscales and is_due:
                self._weigh_features(points, targets)
            self.forest.build(points, targets, self.rates, self._heuristic(n_points), n_jobs)
            if self._other_seed is not None and not self._by_lengthscales and is_due:
                self._weigh_features(points, targets)
                other = self._ensemble._replace(seed=self._other_seed)
                self.forest = self._new_forest(other)
                self.forest.build(points, targets, self.rates, self._heuristic(n_points), n_jobs)
            self._learn_hyperparameters()
            self._refreshed_at = n_points
            self._regrowth.grown(n_points)
            return
        start = 0
        while start < len(targets):
            # Hyper-parameters are refreshed exactly when the number of points has doubled, so that
            # the result does not depend on how a stream is divided into batches.
            room = 2 * self._refreshed_at - self.n_points
            part = points[:, start : start + room]
            count, is_outgrown = self._regrowth.until_next(part, self.n_points)
            end = start + count
            part = part[:, :count]
            # Also before trees are grown anew: how many random numbers are drawn must not depend on
            # how a stream is divided.
            self.forest.extend(part, targets[start:end], self.scales.follow(part))
            if is_outgrown:
                self.forest.regrow(self.rates, n_jobs)
                self._regrowth.grown(self.n_points)
            if self.n_points == 2 * self._refreshed_at:
                if not self._learn_hyperparameters() and self._learnt_ratio is None:
                    self.forest.set_hyperparameters(self._heuristic(self.n_points))
                self._refreshed_at = self.n_points
                if self._other_seed is not None and self.n_points >= RELEVANCE_START:
                    self._weigh_features(self.forest.points, self.forest.targets)
            start = end

    def set_targets(self, targets: FloatArray) -> None:
        """Replace all targets, O(T n); the trees do not depend on them."""
        self.forest.set_targets(targets)

    def predict(self, points: FloatArray, n_jobs: int | None = 1) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of each tree's prediction, both of shape (T, m)."""
        return self.forest.predict(points, *self._settings(), n_jobs)

    def weights(self, points: FloatArray, tolerance: float) -> csr_matrix:
        """Return the weights of the targets in the mean of the forest, shape (m, n).

        The prior mean has the rest, ``1 - weights.sum(axis=1)``.
        """
        return self.forest.weights(points, self.rates, self._rule, tolerance, self.tree_weights)

    def mixture(self, points: FloatArray) -> GaussianMixture:
        """Return the mixtures over trees and nodes (Lakshminarayanan2016, eq. 3 and 5)."""
        rows = self.forest.components(points, *self._settings(), self.tree_weights)
        mean, variance = self.forest.target_moments()
        return GaussianMixture.of_rows(rows, target_scale(mean, math.sqrt(variance)))

    def draw(self, rng: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
        """Draw a function, without noise, from the posterior of a random tree.

        The result maps points of shape (S, m, d) to values of shape (m,). All calls evaluate the
        same function as long as the forest does not change.
        """
        if self._weigh_trees:
            tree = int(rng.choice(self.forest.n_trees, p=self.tree_weights))
        else:
            tree = int(rng.integers(self.forest.n_trees))
        key = int(rng.integers(2**63))
        return lambda points: self.forest.sample_function(tree, key, points, *self._settings())

    def draw_targets(self, rng: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
        """Draw a function as `draw` does; every evaluation adds new noise."""
        function = self.draw(rng)
        noise = self.noise_std()
        return lambda points: function(points) + noise * rng.standard_normal(points.shape[1])

    def noise_std(self) -> float:
        """Return the standard deviation of the noise, sqrt(gamma_1 / K)."""
        return math.sqrt(self.gamma_1 * self.forest.hyperparameters.noise)

    def log_marginal_likelihood(self) -> FloatArray:
        """Return the log marginal likelihood of the targets under each tree, shape (T,)."""
        gamma_1 = max(self.gamma_1, np.finfo(np.float64).tiny)
        terms = self.forest.log_likelihood_terms()
        return log_evidence(terms, self.n_points, self.mean_prior, gamma_1)

    @contextmanager
    def extended(self, points: FloatArray, targets: FloatArray) -> Iterator[None]:
        """Add points for the duration of a ``with`` block; its end restores every bit.

        Scales and hyper-parameters do not change.
        """
        with self.forest.extended(points, targets, self.rates[None]):
            yield

    def _learn_hyperparameters(self) -> bool:
        """Learn hyper-parameters if asked to, and return whether the data suffice."""
        heuristic = self._heuristic(self.n_points)
        if not self._learns or self.n_points < _LEARNING_START or heuristic.gamma_2 == 0.0:
            return False
        mean, variance = self.forest.target_moments()
        if is_constant(mean, math.sqrt(variance)):
            return False
        if self._by_evidence:
            self._maximise_evidence(heuristic, mean, variance)
            return True
        first = heuristic if self._learnt_ratio is None else self.forest.hyperparameters
        learnt = self._search(mean, variance, heuristic, first)
        self._learnt_ratio = learnt.gamma_1 / variance
        return True

    def _search(self, mean: float, variance: float, heuristic: Any, first: Any) -> Learnt:
        """Search for hyper-parameters, which the forest has afterwards."""
        return learn_hyperparameters(self.forest, mean, variance, heuristic, first)

    def _maximise_evidence(self, heuristic: Hyperparameters, mean: float, variance: float) -> None:
        """Learn hyper-parameters and lifetime, and grow the trees anew where it changes."""
        if self.forest.lifetime < self._longest_lifetime:
            self.forest.lifetime = self._longest_lifetime
            self.forest.regrow(self.rates)
        learnt, lifetime = learn_by_evidence(self.forest, mean, variance, heuristic)
        self._learnt_ratio = learnt.gamma_1 / variance
        self.forest.set_hyperparameters(learnt.hyperparameters)
        if lifetime < self.forest.lifetime:
            self.forest.lifetime = lifetime
            self.forest.regrow(self.rates)

    def _weigh_features(self, points: FloatArray, targets: FloatArray) -> None:
        if not self._by_lengthscales:
            arrays, squares = self.forest.arrays, self.forest.node_stats.moments[:, :, SQUARES]
            learnt = learnt_rates(arrays, squares, squares / np.maximum(arrays.size - 1, 1))
            self.scales.feature_weights = self._own_weights * learnt
            return
        mean, std = float(targets.mean()), float(targets.std())
        if not is_constant(mean, std):
            self.scales.feature_weights = self._own_weights
            learnt = inverse_lengthscales(
                points[0],
                self.rates,
                (targets - mean) / std,
                np.random.default_rng(self._other_seed),
            )
            self.scales.feature_weights = self._own_weights * learnt

    def _settings(self) -> tuple[FloatArray, Any]:
        settings = self.forest.prediction_settings(self.mean_prior, self.gamma_1, self._rule)
        return self.rates, settings

    def _heuristic(self, n_points: int) -> Any:
        return appendix_b(n_points, self.scales.total_rate)
