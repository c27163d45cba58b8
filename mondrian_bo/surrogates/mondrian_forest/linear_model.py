"""The Mondrian forest with linear leaves as a model: hyper-parameters and their search."""

from __future__ import annotations

import math

import numpy as np

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_forest.hyperparameters import (
    Learnt,
    best_amplitude,
    gamma_bounds,
    maximise,
    some_of,
)
from mondrian_bo.surrogates.mondrian_forest.linear_forest import LinearForest, LinearHyperparameters
from mondrian_bo.surrogates.mondrian_forest.model import HierarchicalGaussianModel, appendix_b
from mondrian_bo.surrogates.shared.parallel import points_of, trees_of
from mondrian_bo.trees.affine_leave_one_out import AffineTargets, affine_leave_one_out, sort_by_leaf
from mondrian_bo.trees.affine_messages import centres_of_rows, n_columns
from mondrian_bo.trees.layout import NONE
from mondrian_bo.trees.leave_one_out import restrict_forest

_AFFINE_NOISE_BOUNDS = (1.0 / 50.0, 2.0)
"""Bounds of the noise variance of affine leaves in units of gamma_1.

The increment of a leaf of one point acts like noise, so only repeated inputs could show less noise
than the lower bound. Both are our choice, on the sets of docs/appendix/regression.md.
"""

_SLOPE_BOUNDS = (0.03, 1000.0)
"""Bounds of the deviation of slopes over the range of a feature, in deviations of the value.

Our choice, on the sets of docs/appendix/regression.md: from nearly constant to steep functions.
"""

_BUDGET = 40_000
"""Largest cost of a sweep, in leaves with constants; our choice, not measured.

An affine leaf costs more (see :func:`learn_linear`), so there are fewer of them.
"""

_FEWEST_TREES = 8
"""Smallest number of trees by which the budget is divided; our choice, not measured."""

_FEWEST_TARGETS = 300
"""Number of targets used beyond the budget, if there are as many; our choice, not measured.

Leave-one-out densities of fewer targets vary too much between samples.
"""

_EVALUATIONS = 50
"""Largest number of evaluations of the density: our choice, not measured; it bounds the cost.

There are ten more than for constant leaves, as the slope is one more parameter.
"""

_SMALLEST_SHARE = 1e-3
"""Smallest ratio of a target's prior variance without the trend to the variance of the targets.

Our choice, not measured. The trend may explain nearly all of the variance.
"""


class LinearLeafModel(HierarchicalGaussianModel):
    """A Mondrian forest with an affine function at each node, over validated arrays.

    Parameters are those of :class:`HierarchicalGaussianModel`, without the empirical posterior and
    without "bridge". The heuristic of Appendix B has slopes with the deviation of values over the
    range of the feature.
    """

    forest: LinearForest
    _forest_class = LinearForest

    def _heuristic(self, n_points: int) -> LinearHyperparameters:
        gamma_2, noise = appendix_b(n_points, self.scales.total_rate)
        return LinearHyperparameters(gamma_2, noise, slope=1.0)

    def _learn_hyperparameters(self) -> bool:
        self.forest.set_scales(self.rates)
        return super()._learn_hyperparameters()

    def _search(
        self,
        mean_prior: float,
        variance: float,
        heuristic: LinearHyperparameters,
        first: LinearHyperparameters,
    ) -> Learnt:
        return learn_linear(self.forest, mean_prior, variance, heuristic, first)


def learn_linear(
    forest: LinearForest,
    mean_prior: float,
    variance: float,
    heuristic: LinearHyperparameters,
    first: LinearHyperparameters,
) -> Learnt:
    """Maximise the leave-one-out log density of the targets and set the forest's hyper-parameters.

    As :func:`mondrian_bo.surrogates.mondrian_forest.hyperparameters.learn_hyperparameters`, with
    the standard deviation of slopes as a further parameter. The lower bound of a target's prior
    variance is 1/1000 of the variance of the targets, since the trend explains a part of it.

    Notes
    -----
    A leaf takes ``1 + d^2 / 50 + d^3 / 500`` times as long as a constant one. The number of targets
    and trees bounds the time of an evaluation to that of 40,000 constant leaves, but at least 300
    targets in 4 trees are used. There are at most 50 evaluations.
    """
    n_features = forest.points.shape[2]
    n_leaves = int(_BUDGET / (1.0 + n_features**2 / 50.0 + n_features**3 / 500.0))
    kept = some_of(forest.n_points, max(n_leaves // _FEWEST_TREES, _FEWEST_TARGETS))
    scale = math.sqrt(variance)
    targets = (forest.targets[kept] - mean_prior) / scale
    part = slice(0, max(n_leaves // len(kept), _FEWEST_TREES // 2))
    trees = restrict_forest(trees_of(forest.arrays, part), kept, targets)
    tree_of = np.cumsum(trees.parent == NONE) - 1
    data = AffineTargets(
        np.ascontiguousarray(points_of(forest.points, part)[:, kept]),
        targets,
        centres_of_rows(forest.node_stats.messages[tree_of, trees.node], n_features),
        *sort_by_leaf(trees),
    )
    state = np.empty((2, len(trees.parent), n_columns(n_features)))
    moments = np.empty((3, len(kept)))

    def evaluate(logs: FloatArray) -> Learnt:
        gamma_2, noise, slope = np.exp(logs).tolist()
        hyperparameters = LinearHyperparameters(gamma_2, noise, slope)
        settings = forest.message_settings(hyperparameters)
        affine_leave_one_out(trees, data, settings, state, moments)
        mean, within, between = moments
        least = _SMALLEST_SHARE / forest.prior_variance(hyperparameters)
        ratio, log_density = best_amplitude(targets - mean, within, between, least)
        return Learnt(hyperparameters, ratio * variance, log_density - len(kept) * math.log(scale))

    bounds = np.log([gamma_bounds(heuristic.gamma_2), _AFFINE_NOISE_BOUNDS, _SLOPE_BOUNDS])
    learnt = maximise(evaluate, np.log(np.array(first)), bounds, _EVALUATIONS)
    forest.set_hyperparameters(learnt.hyperparameters)
    return learnt
