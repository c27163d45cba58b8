"""A Mondrian forest with Gaussian processes in its leaves as a model: scales and prediction.

:class:`GaussianProcessForestModel` has the interface of
:class:`mondrian_bo.surrogates.mondrian_forest.model.HierarchicalGaussianModel`: what the estimator
of both needs. It trusts its input; the estimator validates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.gaussian_process.fit import REGRESSION_PRIOR
from mondrian_bo.surrogates.gaussian_process_forest.forest import GaussianProcessForest
from mondrian_bo.surrogates.gaussian_process_forest.variance_correction import VarianceCorrection
from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest
from mondrian_bo.surrogates.mondrian_forest.model import (
    SMALLEST_RELATIVE_STD,
    label_scale,
    log_evidence,
)
from mondrian_bo.surrogates.shared.growing_array import GrowingArray
from mondrian_bo.surrogates.shared.mixture import GaussianMixture
from mondrian_bo.surrogates.shared.scales import Scales, scaled

_FIT_GROWTH = 1.25
_FIT_POINTS = 1200

_SPREAD_TREES = 50
"""Squared residuals are noisy: they take more trees than processes do, and these cost little."""


class GaussianProcessForestModel:
    """Blocks of at most so many points with a Gaussian process each, over arrays that are sound.

    Features are scaled by their ranges, labels to mean 0 and variance 1. Scales and
    hyper-parameters are refreshed whenever the number of points has grown by a quarter, whatever
    batches they come in.

    Variances are corrected by what leave-one-out residuals say of them, see
    :class:`VarianceCorrection`; that is refreshed with the rest.

    Parameters
    ----------
    n_trees : int
        Number of trees T.
    n_dimensions : int
        Dimension d of the points.
    seed : numpy.random.SeedSequence
        Source of all randomness.
    block_size : int, default=500
        Largest number of points of a block, m.
    scale_strength : float, default=10
        How strongly the variances of the blocks' processes are shrunk towards the common one, see
        :class:`GaussianProcessForest`.
    bounds : tuple of two float64 arrays of shape (d,), or None
        Lower and upper ends of the dimensions; None follows the range of the data.
    feature_weights : float64 array of shape (d,) or None
        Further factors of the scaled features: of their inverse lengthscales, a priori.
    """

    def __init__(
        self,
        n_trees: int,
        n_dimensions: int,
        seed: np.random.SeedSequence,
        *,
        block_size: int = 500,
        scale_strength: float = 10.0,
        bounds: tuple[FloatArray, FloatArray] | None = None,
        feature_weights: FloatArray | None = None,
    ) -> None:
        forest_seed, self._fit_seed, spread_seed = seed.spawn(3)
        self._block_size = block_size
        self._blocks = GaussianProcessForest(
            n_trees,
            n_dimensions,
            forest_seed,
            np.zeros(n_dimensions, dtype=np.bool_),
            block_size=block_size,
            prior=REGRESSION_PRIOR,
            scale_strength=scale_strength,
            fit_growth=_FIT_GROWTH,
            fit_points=_FIT_POINTS,
        )
        self._new_spread = partial(
            VarianceCorrection, _SPREAD_TREES, n_dimensions, spread_seed, bounds, feature_weights
        )
        self.scales = Scales(n_dimensions, bounds, feature_weights)
        self._labels = GrowingArray()
        self._label_mean, self._label_std = 0.0, 1.0
        self._units = self.scales.rates
        self._refreshed_at = 0

    @property
    def n_points(self) -> int:
        """Number of points learnt."""
        return self._blocks.n_points

    @property
    def forest(self) -> GaussianForest:
        """The trees over the blocks."""
        return self._blocks.forest

    def learn(self, points: FloatArray, targets: FloatArray, n_jobs: int | None = 1) -> None:
        """Learn more points: in a batch if they are the first, else one after the other.

        Parameters
        ----------
        points : float64 array of shape (1, m, d)
            The points.
        targets : float64 array of shape (m,)
            Their labels.
        n_jobs : int or None, default=1
            Not used: one thread.
        """
        start = 0
        if self.n_points == 0:
            start = len(targets)
            self._learn_first(points, targets)
        while start < len(targets):
            due = math.ceil(_FIT_GROWTH * self._refreshed_at)
            end = min(len(targets), start + due - self.n_points)
            part, labels = points[:, start:end], targets[start:end]
            self.scales.follow(part)
            self._labels.extend(labels)
            self._blocks.learn(part, self._rows(part), self._standardised(labels))
            if self.n_points == due:
                self._refresh()
            start = end

    def _learn_first(self, points: FloatArray, targets: FloatArray) -> None:
        self.scales.follow(points)
        self._labels.replace(targets.copy())
        self._set_scales()
        rows, labels = self._rows(points), self._standardised(targets)
        self._blocks.rescale(np.empty((0, rows.shape[1])), self._units, np.empty(0))
        if len(targets) > self._block_size:
            # Cuts are drawn at the rates of lengthscales, which a part of the points tells.
            rng = np.random.default_rng(self._fit_seed)
            part = rng.choice(len(targets), self._block_size, replace=False)
            self._blocks.learn_covariance(rows[part], labels[part])
        self._blocks.learn(points, rows, labels)
        self._learn_spread()
        self._refreshed_at = self.n_points

    def _refresh(self) -> None:
        self._set_scales()
        rows = self._rows(self.forest.points)
        self._blocks.rescale(rows, self._units, self._standardised(self._labels.rows))
        self._learn_spread()
        self._refreshed_at = self.n_points

    def _learn_spread(self) -> None:
        points = self.forest.points
        residuals, variances = self._blocks.leave_one_out()
        # As the processes see them: without the features whose weight is 0.
        rows = self._rows(points)
        _, which, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        once = counts[which.ravel()] == 1
        if once.any():
            # A label that an equal input tells says nothing of how well new inputs are predicted.
            points, residuals, variances = points[:, once], residuals[:, once], variances[:, once]
        self._spread = self._new_spread()
        self._spread.learn(points, residuals, variances)

    def predict(self, points: FloatArray, n_jobs: int | None = 1) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of labels by each tree, both of shape (C, m).

        As long as all points fit into one block the trees are alike, and C is 1. The means are
        drawn together, or apart, as the variances are.
        """
        means, variances = self.laws(points)
        spread, centre = self._spread.at(points), means.mean(axis=0)
        return centre + np.sqrt(spread) * (means - centre), spread * variances

    def laws(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what each tree's joint normal law of all labels says, before any correction."""
        prediction = self._blocks.predict(lambda: points, self._rows(points), labels=True)
        return (
            self._label_mean + self._label_std * prediction.means,
            self._label_std**2 * prediction.variances,
        )

    def mixture(self, points: FloatArray) -> GaussianMixture:
        """Return the predictive mixtures over trees."""
        means, variances = self.predict(points)
        n_components, n_points = means.shape
        return GaussianMixture(
            point=np.repeat(np.arange(n_points), n_components),
            weight=np.full(means.size, 1.0 / n_components),
            mean=means.T.ravel(),
            std=np.maximum(np.sqrt(variances.T.ravel()), SMALLEST_RELATIVE_STD * self._label_std),
        )

    def draw_labels(self, rng: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
        """Draw a function from a random tree's posterior, with noise of its own at every call.

        The result maps points of shape (1, m, d) to labels of shape (m,).
        """
        function = self._blocks.draw(np.zeros(len(self._units), np.int64), rng, labels=True)

        def labels(points: FloatArray) -> FloatArray:
            values = function(lambda: points, self._rows(points))
            values = self._label_mean + self._label_std * values
            centre = self.laws(points)[0].mean(axis=0)
            return np.asarray(centre + np.sqrt(self._spread.at(points)) * (values - centre))

        return labels

    def log_marginal_likelihood(self) -> FloatArray:
        """Return the log marginal likelihood of the labels under each tree's law, shape (C,)."""
        self._blocks.settle()
        terms = self.forest.log_likelihood_terms()[: self._blocks.n_components]
        gamma_1 = 2.0 * REGRESSION_PRIOR.mean_variance
        # The blocks' log-determinants are not in units of gamma_1, but labels are in standard ones.
        units = self.n_points * (0.5 * math.log(gamma_1) - math.log(self._label_std))
        return np.asarray(log_evidence(terms, self.n_points, 0.0, gamma_1) + units)

    def _set_scales(self) -> None:
        self._units = self.scales.rates
        labels = self._labels.rows
        self._label_mean = float(labels.mean())
        self._label_std = label_scale(self._label_mean, float(labels.std()))

    def _rows(self, points: FloatArray) -> FloatArray:
        return scaled(points[0], self._units)

    def _standardised(self, labels: FloatArray) -> FloatArray:
        return (labels - self._label_mean) / self._label_std
