"""The model of the Gaussian process forest regressor: scales, variance correction, predictions.

:class:`GaussianProcessForestModel` has the interface of
:class:`mondrian_bo.surrogates.mondrian_forest.model.HierarchicalGaussianModel`. It does not
validate its input; the estimator does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.sparse import csr_matrix

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.shared.growing_array import GrowingArray
from mondrian_bo.surrogates.gaussian_process.fit import REGRESSION_PRIOR
from mondrian_bo.surrogates.gaussian_process_forest.forest import GaussianProcessForest
from mondrian_bo.surrogates.gaussian_process_forest.variance_correction import VarianceCorrection
from mondrian_bo.surrogates.mondrian_forest.evidence import log_evidence
from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.mixture import GaussianMixture
from mondrian_bo.surrogates.shared.parallel import FEW_POINTS
from mondrian_bo.surrogates.shared.scales import Scales, scaled
from mondrian_bo.surrogates.shared.target_scale import deviation_of

_FIT_GROWTH = 1.25
"""Factor of the number of points between two fits, our choice: their sizes add up to O(n)."""

_FIT_POINTS = 1200
"""Largest number of points in a fit of the hyper-parameters, our choice: it bounds the time."""

_CORRECTION_TREES = 50
"""Trees of the variance correction, our choice: squared residuals are noisy, and trees cheap."""


class GaussianProcessForestModel:
    """A Gaussian process forest over scaled features and standardised targets.

    Features are scaled by their ranges, targets to mean 0 and variance 1. Scales, hyper-parameters
    and the :class:`VarianceCorrection` are refreshed whenever the number of points has grown by a
    quarter, independently of the batches.

    Parameters
    ----------
    ensemble : Ensemble
        Number of trees, dimension of the points, and seed.
    block_size : int, default=500
        Largest number of points of a leaf, m.
    scale_strength : float, default=10
        Shrinkage of the variances of the leaves' processes towards the common variance, see
        :class:`GaussianProcessForest`.
    bounds : tuple of two float64 arrays of shape (d,), or None
        Lower and upper ends of the dimensions; None follows the range of the data.
    feature_weights : float64 array of shape (d,) or None
        Factors of the scaled features, and so of their inverse lengthscales a priori.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        *,
        block_size: int = 500,
        scale_strength: float = 10.0,
        bounds: tuple[FloatArray, FloatArray] | None = None,
        feature_weights: FloatArray | None = None,
    ) -> None:
        n_dimensions = ensemble.n_dimensions
        forest_seed, self._fit_seed, correction_seed = ensemble.seed.spawn(3)
        self._block_size = block_size
        self._processes = GaussianProcessForest(
            ensemble._replace(seed=forest_seed),
            np.zeros(n_dimensions, dtype=np.bool_),
            block_size=block_size,
            prior=REGRESSION_PRIOR,
            scale_strength=scale_strength,
            fit_growth=_FIT_GROWTH,
            fit_points=_FIT_POINTS,
        )
        self._new_correction = partial(
            VarianceCorrection,
            Ensemble(_CORRECTION_TREES, n_dimensions, correction_seed),
            bounds,
            feature_weights,
        )
        self.scales = Scales(n_dimensions, bounds, feature_weights)
        self._targets = GrowingArray()
        self._target_mean, self._target_std = 0.0, 1.0
        self._units = self.scales.rates
        self._refreshed_at = 0

    @property
    def n_points(self) -> int:
        """Number of points learnt."""
        return self._processes.n_points

    @property
    def forest(self) -> GaussianForest:
        """The trees, with the hierarchical Gaussian of the leaf means."""
        return self._processes.trees

    @property
    def samples(self) -> tuple[FloatArray, FloatArray]:
        """The points and their targets; after an interruption, at least those learnt before."""
        return self._processes.points, self._targets.rows

    @property
    def target_mean(self) -> float:
        """The prior mean: that of the targets at the latest refresh of the scales."""
        return self._target_mean

    def learn(self, points: FloatArray, targets: FloatArray, n_jobs: int | None = 1) -> None:
        """Learn the first points in a batch, later ones one after the other.

        Parameters
        ----------
        points : float64 array of shape (1, m, d)
            The points.
        targets : float64 array of shape (m,)
            Their targets.
        n_jobs : int or None, default=1
            Ignored: learning uses one thread. The search for hyper-parameters goes step by step,
            and scipy's factorisations let no other Python thread run.
        """
        start = 0
        if self.n_points == 0:
            start = len(targets)
            self._learn_first(points, targets)
        while start < len(targets):
            due = math.ceil(_FIT_GROWTH * self._refreshed_at)
            end = min(len(targets), start + due - self.n_points)
            new_points, new_targets = points[:, start:end], targets[start:end]
            self.scales.follow(new_points)
            self._targets.extend(new_targets)
            self._processes.learn(
                new_points, self._rows(new_points), self._standardised(new_targets)
            )
            if self.n_points == due:
                self._refresh()
            start = end

    def _learn_first(self, points: FloatArray, targets: FloatArray) -> None:
        self.scales.follow(points)
        self._targets.replace(targets.copy())
        self._set_scales()
        rows, standardised = self._rows(points), self._standardised(targets)
        self._processes.rescale(np.empty((0, rows.shape[1])), self._units, np.empty(0))
        if len(targets) > self._block_size:
            # Split rates are inverse lengthscales, which a part of the points determines.
            rng = np.random.default_rng(self._fit_seed)
            part = rng.choice(len(targets), self._block_size, replace=False)
            self._processes.learn_covariance(rows[part], standardised[part])
        self._processes.learn(points, rows, standardised)
        self._learn_correction()
        self._refreshed_at = self.n_points

    def _refresh(self) -> None:
        self._set_scales()
        rows = self._rows(self._processes.points)
        self._processes.rescale(rows, self._units, self._standardised(self._targets.rows))
        self._learn_correction()
        self._refreshed_at = self.n_points

    def _learn_correction(self) -> None:
        points = self._processes.points
        residuals, variances = self._processes.leave_one_out()
        # Equal as the processes see them: features with weight 0 do not count.
        rows = self._rows(points)
        _, groups, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        unique = counts[groups.ravel()] == 1
        if unique.any():
            # Residuals of duplicates are too small: each is predicted from its equals.
            points = points[:, unique]
            residuals, variances = residuals[:, unique], variances[:, unique]
        self._correction = self._new_correction()
        self._correction.learn(points, residuals, variances)

    def predict(self, points: FloatArray, n_jobs: int | None = 1) -> tuple[FloatArray, FloatArray]:
        """Return corrected means and variances of targets in each tree, both of shape (C, m).

        While all points fit into one leaf, all trees are equal and C is 1. The correction
        multiplies the variances and the squared deviations of the means from their average. With
        many points `n_jobs` threads share the trees.
        """
        n_jobs = n_jobs if points.shape[1] > FEW_POINTS else 1
        means, variances = self.predict_uncorrected(points, n_jobs)
        factors, centre = self._correction.factors(points, n_jobs), means.mean(axis=0)
        return centre + np.sqrt(factors) * (means - centre), factors * variances

    def predict_uncorrected(
        self, points: FloatArray, n_jobs: int | None = 1
    ) -> tuple[FloatArray, FloatArray]:
        """Return the means and variances of targets in each tree, both of shape (C, m)."""
        rows = self._rows(points)
        prediction = self._processes.predict(points, rows, with_noise=True, n_jobs=n_jobs)
        return (
            self._target_mean + self._target_std * prediction.means,
            self._target_std**2 * prediction.variances,
        )

    def weights(self, points: FloatArray, tolerance: float) -> csr_matrix:
        """Return the weights of the targets in the means of targets, shape (m, n).

        `target_mean` has the rest. The correction of variances does not change means.
        """
        # Loaded here: few users ask for weights.
        from mondrian_bo.surrogates.gaussian_process_forest.equivalent_weights import forest_weights

        return forest_weights(self._processes, points, self._rows(points), tolerance)

    def mixture(self, points: FloatArray) -> GaussianMixture:
        """Return the predictive mixtures over trees."""
        return GaussianMixture.of_components(*self.predict(points), self._target_std)

    def draw_targets(self, rng: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
        """Draw a function from a random tree's posterior; every call adds new noise.

        The result maps points of shape (1, m, d) to targets of shape (m,).
        """
        # Loaded here: few models draw functions.
        from mondrian_bo.surrogates.gaussian_process_forest.posterior_draw import draw_from_forest

        no_choices = np.zeros(len(self._units), np.int64)
        function = draw_from_forest(self._processes, no_choices, rng, with_noise=True)

        def targets(points: FloatArray) -> FloatArray:
            values = self._target_mean + self._target_std * function(points, self._rows(points))
            centre = self.predict_uncorrected(points)[0].mean(axis=0)
            factors = self._correction.factors(points)
            return np.asarray(centre + np.sqrt(factors) * (values - centre))

        return targets

    def log_marginal_likelihood(self) -> FloatArray:
        """Return the log marginal likelihood of the targets under each tree, shape (C,)."""
        forest = self.forest
        self._processes.update()
        terms = forest.log_likelihood_terms()[: self._processes.n_components]
        gamma_1 = 2.0 * REGRESSION_PRIOR.mean_variance
        # The leaves' log-determinants are not in units of gamma_1, and the density of the targets
        # is that of the standardised ones over their standard deviation.
        units = self.n_points * (0.5 * math.log(gamma_1) - math.log(self._target_std))
        return np.asarray(log_evidence(terms, self.n_points, 0.0, gamma_1) + units)

    def _set_scales(self) -> None:
        self._units = self.scales.rates
        targets = self._targets.rows
        self._target_mean = float(targets.mean())
        self._target_std = deviation_of(targets) or abs(self._target_mean) or 1.0

    def _rows(self, points: FloatArray) -> FloatArray:
        """Return points of shape (1, m, d) as the processes see them, shape (m, d)."""
        return scaled(points[0], self._units)

    def _standardised(self, targets: FloatArray) -> FloatArray:
        return (targets - self._target_mean) / self._target_std
