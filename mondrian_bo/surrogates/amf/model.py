"""Aggregated Mondrian forests as a model: scales, learning rate, snapshots.

The AMF estimators and the optimizer's surrogate share :class:`AggregationModel`. It trusts its
input; the estimators validate.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.amf.forest import AggregatedForest
from mondrian_bo.surrogates.amf.stacking import Stacking
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.mixture import GaussianMixture
from mondrian_bo.surrogates.shared.relevance import RELEVANCE_START, learnt_rates
from mondrian_bo.surrogates.shared.scales import ScaledForestModel
from mondrian_bo.surrogates.shared.sparse_rows import sparse_rows
from mondrian_bo.trees.aggregation import BEST, FORECAST
from mondrian_bo.trees.aggregation_nodes import MASS, REAL
from mondrian_bo.trees.aggregation_predict import AGGREGATED, AT_LEAF, NO_RATES
from mondrian_bo.trees.layout import ROOT
from mondrian_bo.trees.stacking_forecasts import N_FORECASTS, VARIANCE

Step = float | Literal["corollary", "adaptive"]
"""Learning rate: a number, or the rule that sets it."""

_SLACK = 1.1
"""Smallest factor by which the bound B of targets grows, our choice: each change costs O(T n)."""

_UNKNOWN_VARIANCE = 1.0
"""Predictive variance while nothing is known of how far targets differ: before the second sample.
It is in the squared unit of the targets, as the prior variance of a Gaussian process by default."""

_FIRST_MILESTONE = 4
"""Number of points from which on the learning rate may adapt, at powers of two; our choice."""

_SMALLEST_LOSS = 1e-300
"""Least loss that a learning rate is inversely proportional to: the rate stays finite."""

_SMALLEST_RELATIVE_LOSS = 1e-9
"""Least mean loss that the adaptive rate follows, in units of B^2: targets that are forecast
exactly would make it infinite."""

_RENUMBERED_FROM = 512
"""Number of points from which on nodes are numbered anew whenever it is a power of two: smaller
trees fit into the processor's cache in any order."""

_STACKED_PORTION = 4096
"""Number of points whose forecasts are kept at a time for stacking: 1.6 MB with ten trees."""


class AggregationModel(ScaledForestModel):
    """An aggregated Mondrian forest over arrays that the caller has checked.

    Parameters
    ----------
    ensemble : Ensemble
        Number of trees, dimension of the points, and seed.
    n_classes : int
        Number of classes, or ``REAL`` for real targets.
    dirichlet : float, default=0.5
        Smoothing of the frequencies of classes.
    step : float, "corollary" or "adaptive", default="corollary"
        Learning rate. "corollary" is 1 for classes (Corollary 1) and ``1 / (8 B^2)`` for real
        targets within an interval of length 2 B (Corollary 2). B follows the targets and grows by a
        tenth or more at a time, as each change costs O(T n). "adaptive" is ``n / (2 L)`` with L the
        loss of the best pruning. Then exp(-step loss) is a Gaussian likelihood with the variance
        that the best pruning leaves. It is set anew whenever n reaches a power of two.
    use_aggregation : bool, default=True
        Whether trees predict with all prunings, or with their leaves alone.
    split_pure : bool, default=True
        Whether blocks of one class are split.
    bounds : tuple of two float64 arrays of shape (d,), or None, default=None
        Lower and upper ends of the dimensions; None follows the range of the data.
    unrestricted : bool, default=False
        Whether trees partition the whole box of `bounds`, or are restricted to the data.
    feature_weights : float64 array of shape (d,) or None, default=None
        Factors of the dimensions' split rates.
    feature_relevance : bool, default=False
        Whether to learn further factors, see :mod:`mondrian_bo.surrogates.shared.relevance`.
    record : bool, default=False
        Whether to record forecasts and losses on the way.
    online_to_batch : bool, default=False
        Whether to predict with the forest as it was at a random time (Lemma 2).
    stacking : bool, default=False
        Whether to predict real targets with the linear combination of four forecasts that had the
        least error so far (:mod:`mondrian_bo.surrogates.amf.stacking`). It needs aggregation, and
        has no `online_to_batch` and no :meth:`set_targets`.
    max_nodes : int or None, default=None
        Largest number of nodes of a tree, see :class:`AggregatedForest`.
    """

    forest: AggregatedForest

    def __init__(
        self,
        ensemble: Ensemble,
        *,
        n_classes: int,
        dirichlet: float = 0.5,
        step: Step = "corollary",
        use_aggregation: bool = True,
        split_pure: bool = True,
        bounds: tuple[FloatArray, FloatArray] | None = None,
        unrestricted: bool = False,
        feature_weights: FloatArray | None = None,
        feature_relevance: bool = False,
        record: bool = False,
        online_to_batch: bool = False,
        stacking: bool = False,
        max_nodes: int | None = None,
    ) -> None:
        tree_seed, time_seed = ensemble.seed.spawn(2)
        self.forest = AggregatedForest(
            ensemble._replace(seed=tree_seed),
            n_classes=n_classes,
            dirichlet=dirichlet,
            step=step if isinstance(step, float) else 1.0,
            split_pure=split_pure,
            box=np.stack(bounds) if unrestricted and bounds is not None else None,
            record=record,
            look_ahead=stacking,
            max_nodes=max_nodes,
        )
        super().__init__(ensemble.n_dimensions, bounds, feature_weights)
        self._rule = AGGREGATED if use_aggregation else AT_LEAF
        self.forest.at_leaf = not use_aggregation
        self._step = step
        self._feature_relevance = feature_relevance
        self._record = record
        self._lowest, self._highest = math.inf, -math.inf
        self._half_range = 0.0
        self._times = np.random.default_rng(time_seed) if online_to_batch else None
        self._past: AggregatedForest | None = None
        self.stacking = Stacking(N_FORECASTS) if stacking else None

    @property
    def n_points(self) -> int:
        """Number of points learnt."""
        return self.forest.n_learnt

    @property
    def largest_target(self) -> float:
        """Largest absolute value of the real targets learnt; 0 without any."""
        return max(self._highest, -self._lowest, 0.0)

    @property
    def predictor(self) -> AggregatedForest:
        """The forest that predicts: the current one, or one of the past (`online_to_batch`)."""
        return self.forest if self._past is None else self._past

    def learn(
        self,
        points: NDArray[np.float32],
        targets: AnyArray,
        sample_weights: FloatArray | None = None,
        n_jobs: int | None = 1,
    ) -> None:
        """Learn more points one after the other, however they are divided into calls.

        Parameters
        ----------
        points : float32 array of shape (S, m, d)
            The points, once (S = 1) or as each tree sees them.
        targets : array of shape (m,)
            Real targets, or numbers of classes.
        sample_weights, n_jobs
            See :meth:`AggregatedForest.extend`.
        """
        if len(targets) == 0:
            return
        snapshot = self._snapshot_before(len(targets))
        for start, end in self._portions(targets, snapshot):
            part, new = points[:, start:end], targets[start:end]
            if start == snapshot:
                self._past = copy.deepcopy(self.forest)
            weights = None if sample_weights is None else sample_weights[start:end]
            # What is recorded must not depend on targets that were still to come.
            if not self._record:
                self._follow_targets(new, weights)
            starts, rates = self.scales.follow_changes(part)
            self.forest.extend(part, new, rates, weights, n_jobs, starts)
            if self.stacking is not None:
                self.stacking.learn(self.forest.ahead, new, weights)
            if self._record:
                self._follow_targets(new, weights)
            n_points = self.n_points
            if n_points >= _FIRST_MILESTONE and n_points & (n_points - 1) == 0:
                self._at_milestone()

    def set_targets(self, targets: FloatArray) -> None:
        """Replace all real targets, O(T n log n); the trees do not depend on them."""
        if self.stacking is not None or self.forest.n_dropped > 0:
            raise ValueError("targets cannot be replaced with stacking, or if some are not kept")
        self._lowest, self._highest = math.inf, -math.inf
        self._half_range = 0.0
        self._follow_targets(targets)
        self.forest.set_targets(targets)
        if self._step == "adaptive":
            self._adapt()

    def predict(
        self, points: NDArray[np.float32], n_jobs: int | None = 1
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of each tree's prediction of real targets, both (T, m).

        One sample says nothing of how far targets differ: until the predictor has learnt a second
        one, the variance is B^2, or 1 while all targets are equal.
        """
        if self.predictor.n_points == 0:
            shape = (self.forest.n_trees, points.shape[1])
            return np.zeros(shape), np.full(shape, self._prior_variance)
        if self.stacking is None:
            rates = self._outer_rates()
            means, variances = self.predictor.predict(points, rates, self._rule, n_jobs)
        else:
            ahead = self.forest.forecasts(points, self._outer_rates(), n_jobs)
            means, variances = ahead[:, :, 0], ahead[:, :, VARIANCE]
            forecasts = _pooled(ahead)
            # The trees' means keep their distances, and get the stacked prediction as their mean.
            stacked = self.stacking.combine(forecasts, self._lowest, self._highest)
            means = stacked + math.sqrt(self.stacking.scale) * (means - forecasts[:, 0])
            variances = self.stacking.scale * variances
        if self.predictor.n_learnt == 1:
            variances.fill(self._prior_variance)
        return means, variances

    def weights(self, points: NDArray[np.float32], tolerance: float) -> csr_matrix:
        """Return the weights of real targets in the mean of the forest, shape (m, n)."""
        forest = self.predictor
        if forest.n_points == 0:
            return csr_matrix((points.shape[1], self.n_points))
        if not forest.links_all_points:
            raise ValueError(
                f"weights need all samples, but trees of max_nodes={forest.max_nodes} are full: "
                "the points of their nodes are not kept"
            )
        if self.stacking is None:
            found = forest.weights(points, self._outer_rates(), self._rule, tolerance)
        else:
            found = self._stacked_weights(points, self.stacking, tolerance)
        # A forest of the past knows the first samples only.
        parts = found.data, found.indices, found.indptr
        return csr_matrix(parts, shape=(points.shape[1], self.n_points))

    def mixture(self, points: NDArray[np.float32]) -> GaussianMixture:
        """Return the predictive mixtures of real targets over trees and nodes."""
        # In units of B; equal targets have only their magnitude as a unit.
        equal = abs(self._highest) if self.n_points > 0 else 0.0
        scale = self._half_range or equal or 1.0
        if self.predictor.n_points == 0:
            means, variances = self.predict(points)
            return GaussianMixture.of_components(means[:1], variances[:1], scale)
        parts = self.predictor.components(points, self._outer_rates(), self._rule)
        if self.stacking is not None:
            ahead = self.forest.forecasts(points, self._outer_rates())
            forecasts = _pooled(ahead)
            row = parts[:, 0].astype(np.int64)
            centre = forecasts[row, 0]
            stacked = self.stacking.combine(forecasts, self._lowest, self._highest)
            factor = math.sqrt(self.stacking.scale)
            parts[:, 2] = stacked[row] + factor * (parts[:, 2] - centre)
            parts[:, 3] *= self.stacking.scale
        if self.predictor.n_learnt == 1:
            parts[:, 3] = self._prior_variance
        parts[:, 1] /= self.forest.n_trees
        return GaussianMixture.of_rows(parts, scale)

    def predict_proba(
        self, points: NDArray[np.float32], pooling: int, n_jobs: int | None = 1
    ) -> FloatArray:
        """Return the probabilities of the classes, shape (m, K)."""
        if self.predictor.n_points == 0:
            n_classes = self.forest.n_classes
            return np.full((points.shape[1], n_classes), 1.0 / n_classes)
        # Without rates: split off from their leaves, points would get flatter forecasts.
        return self.predictor.predict_proba(points, np.empty(0), self._rule, pooling, n_jobs)

    def weighted_depths(self, points: NDArray[np.float32]) -> FloatArray:
        """Return the mean depth at which the prunings of each tree end, shape (m, T)."""
        if self.predictor.n_points == 0:
            return np.zeros((points.shape[1], self.forest.n_trees))
        return self.predictor.weighted_depths(points, self._rule)

    def draw(self, rng: np.random.Generator) -> Callable[[NDArray[np.float32]], FloatArray]:
        """Draw a function from a random tree's mixture of prunings, without noise.

        The result maps points of shape (S, m, d) to values of shape (m,); all calls evaluate the
        same function, as long as the forest does not change.
        """
        tree = int(rng.integers(self.forest.n_trees))
        key = int(rng.integers(2**63))
        return lambda points: self.forest.sample_function(
            tree, key, points, self._outer_rates(), self._rule
        )

    @contextmanager
    def extended(self, points: NDArray[np.float32], targets: FloatArray) -> Iterator[None]:
        """Add points for the duration of a ``with`` block; its end restores every bit.

        The scales and the learning rate stay as they are.
        """
        with self.forest.extended(points, targets, self.scales.rates[None]):
            yield

    def losses(self) -> tuple[FloatArray, FloatArray]:
        """Return the recorded loss of each tree's forecasts and of its best pruning, both (T, n).

        The first are those of each point, the second are cumulative. The first real target is not
        charged: before it, all prunings forecast alike.
        """
        trace, targets = self.forest.trace, self.forest.targets
        sample_weights = self.forest.sample_weights if len(self.forest.sample_weights) > 0 else 1.0
        if self.forest.n_classes == REAL:
            own = sample_weights * (trace[:, :, FORECAST] - targets) ** 2
            own[:, :1] = 0.0
        else:
            own = -sample_weights * np.log(trace[:, :, FORECAST])
        return own, trace[:, :, BEST]

    def _stacked_weights(
        self, points: NDArray[np.float32], stacking: Stacking, tolerance: float
    ) -> csr_matrix:
        """Return the weights of the targets in the stacked predictions, shape (m, n)."""
        outer = self._outer_rates()
        kinds = [
            (outer, AGGREGATED),
            (NO_RATES, AGGREGATED),
            (outer, AT_LEAF),
            (NO_RATES, AT_LEAF),
        ]
        b = stacking.coefficients
        sample_weights = self.forest.sample_weights
        everywhere = sample_weights if len(sample_weights) > 0 else np.ones(self.n_points)
        mean = (1.0 - b.sum()) * everywhere / everywhere.sum()

        def rows_of(start: int, end: int) -> FloatArray:
            part = np.ascontiguousarray(points[:, start:end])
            rows = np.tile(mean, (end - start, 1))
            for factor, (rates, rule) in zip(b, kinds, strict=True):
                rows += factor * self.forest.weights(part, rates, rule, 0.0).toarray()
            stacked = rows @ self.forest.targets
            share = stacking.shares(stacked, self._lowest, self._highest)[:, None]
            return np.asarray(share * rows + (1.0 - share) * everywhere / everywhere.sum())

        return sparse_rows(rows_of, points.shape[1], self.n_points, tolerance)

    @property
    def _prior_variance(self) -> float:
        """Predictive variance of a forest that has learnt less than two samples."""
        return self._half_range**2 or _UNKNOWN_VARIANCE

    def _outer_rates(self) -> FloatArray:
        """Return the rates at which predictions split points off from the boxes of nodes.

        Cells of unrestricted partitions leave nothing outside (Algorithm 3): no rates.
        """
        return self.scales.rates if self.forest.restricted else np.empty(0)

    def _snapshot_before(self, n_new: int) -> int | None:
        """Return before which new point to keep the forest, so that each time is equally likely."""
        if self._times is None:
            return None
        times = np.arange(self.n_points + 1, self.n_points + n_new + 1)
        kept = np.flatnonzero(self._times.random(n_new) < 1.0 / times)
        return int(kept[-1]) if len(kept) > 0 else None

    def _portions(self, targets: AnyArray, snapshot: int | None) -> list[tuple[int, int]]:
        """Divide new points at the times when the model changes."""
        known, n_new = self.n_points, len(targets)
        if n_new == 1:
            return [(0, 1)]
        ends = {n_new}
        # Nodes are renumbered there; full trees draw nodes by number.
        renumbers = self.forest.max_nodes is not None
        if self._step == "adaptive" or self._feature_relevance or renumbers:
            ends |= {2**k - known for k in range(2, 63)}
        # The range sets the learning rate: after a target whose loss is recorded, else before it.
        # On it depend recorded losses, forecasts for stacking and which leaves full trees drop.
        follows_range = isinstance(self._step, str) and self.forest.n_classes == REAL
        if follows_range and (self._record or renumbers or self.stacking is not None):
            shift = int(self._record)
            ends |= {index + shift for index, _ in self._growth_of_range(targets)}
        if snapshot is not None:
            ends.add(snapshot)
        if self.stacking is not None:
            ends |= set(range(_STACKED_PORTION, n_new, _STACKED_PORTION))
        inner = sorted(end for end in ends if 0 < end <= n_new)
        return list(zip([0, *inner[:-1]], inner, strict=True))

    def _growth_of_range(self, targets: AnyArray) -> list[tuple[int, float]]:
        """Return the targets after which B changes, and its values."""
        highest = np.maximum(np.maximum.accumulate(targets), self._highest)
        lowest = np.minimum(np.minimum.accumulate(targets), self._lowest)
        half = 0.5 * (highest - lowest)
        changes, value, index = [], self._half_range, 0
        while half[-1] > value:
            index = int(np.searchsorted(half, value, side="right"))
            value = max(float(half[index]), _SLACK * value)
            changes.append((index, value))
        return changes

    def _follow_targets(self, targets: AnyArray, sample_weights: FloatArray | None = None) -> None:
        """Widen the range of the targets, and let the learning rate follow it."""
        if self.forest.n_classes != REAL:
            return
        one = len(targets) == 1
        highest = targets.item() if one else float(targets.max())
        lowest = highest if one else float(targets.min())
        if highest <= self._highest and lowest >= self._lowest:
            return
        changes = self._growth_of_range(targets)
        self._highest, self._lowest = max(self._highest, highest), min(self._lowest, lowest)
        if not changes:
            return
        # A milestone without a range has nothing to adapt to: the first range then sets the rate.
        if self.n_points < _FIRST_MILESTONE:
            followed = changes
        else:
            followed = changes[:1] if self._half_range == 0.0 else []
        self._half_range = changes[-1][1]
        if self._step == "corollary":
            self._set_cautious_step(self._half_range**2)
        elif self._step == "adaptive" and followed:
            index, half_range = followed[-1]
            # As later, in inverse proportion to losses, which have the weights as factors.
            new = None if sample_weights is None else sample_weights[: index + 1]
            self._set_cautious_step(half_range**2 * self._mean_weight(index + 1, new))

    def _set_cautious_step(self, largest: float) -> None:
        """Set the learning rate for losses of at most 4 times `largest`."""
        # Corollary 2: 1 / (8 B^2)
        self.forest.set_step(0.125 / max(largest, _SMALLEST_LOSS))

    def _mean_weight(self, n_new: int, sample_weights: FloatArray | None) -> float:
        """Return the mean weight of the samples so far and the first `n_new` of the portion."""
        # The root knows the weights of samples that are not kept, too.
        root = self.forest.arrays.counters[0, ROOT]
        known = self.n_points > 0
        mass = float(self.forest.node_stats.statistics[0, root, MASS]) if known else 0.0
        # When losses are recorded, the forest has learnt the portion, which ends there.
        if self._record:
            return mass / self.n_points
        weights = np.ones(n_new) if sample_weights is None else sample_weights
        # Added one by one, as the forest does: the sum is the same however samples are divided.
        return float(np.cumsum(np.append(mass, weights))[-1] / (self.n_points + n_new))

    def _at_milestone(self) -> None:
        if self.n_points >= _RENUMBERED_FROM:
            self.forest.renumber()
        if self._step == "adaptive":
            self._adapt()
        if self._feature_relevance and self.n_points >= RELEVANCE_START:
            arrays, loss = self.forest.arrays, self.forest.node_stats.loss
            self.scales.feature_weights = self._own_weights * learnt_rates(arrays, loss)

    def _adapt(self) -> None:
        if self._half_range == 0.0:
            return
        best = float(np.mean(self.forest.best_losses()))
        smallest = max(
            _SMALLEST_RELATIVE_LOSS * self._half_range**2 * self.forest.mass, _SMALLEST_LOSS
        )
        self.forest.set_step(0.5 * self.n_points / max(best, smallest))


def _pooled(ahead: FloatArray) -> FloatArray:
    """Return the forest's forecasts, shape (m, 4), of those of its trees, shape (T, m, 5)."""
    # Trees are added one by one, so that results do not depend on the number of points.
    return np.asarray(np.add.accumulate(ahead, axis=0)[-1, :, :VARIANCE] / len(ahead))
