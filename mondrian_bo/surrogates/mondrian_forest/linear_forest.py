"""A growing forest of Mondrian trees with an affine function at each node."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest, Kernels
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.trees.affine_draw import sample_affine
from mondrian_bo.trees.affine_messages import (
    AffineSettings,
    affine_likelihood_terms,
    extend_affine,
    n_columns,
    refresh_affine,
)
from mondrian_bo.trees.affine_predict import AffinePrediction, affine_components, predict_affine
from mondrian_bo.trees.affine_weights import affine_weights
from mondrian_bo.trees.hierarchical_gaussian import Gaussian, empty_gaussian

_FARTHEST = 1e5
"""Largest scaled distance from the first point; squares in messages then keep five digits of 1."""


class LinearHyperparameters(NamedTuple):
    """Parameters of the hierarchy of affine functions, as floats.

    Attributes
    ----------
    gamma_2, noise : float
        As in :class:`mondrian_bo.trees.hierarchical_gaussian.Hyperparameters`.
    slope : float
        Deviation of a slope's increments, in units of the value's and of the inverse range.
    """

    gamma_2: float
    noise: float
    slope: float


class LinearForest(GaussianForest):
    """Mondrian trees with the messages of :mod:`mondrian_bo.trees.affine_messages`.

    Parameters are those of :class:`GaussianForest`. Features are scaled by the split rates of the
    latest refresh of all messages. A point that is much farther from the first one than the range
    of a feature has all messages refreshed, with slopes in units of its distance.
    """

    _kernels: ClassVar[Kernels] = Kernels(
        refresh_affine,
        extend_affine,
        predict_affine,
        affine_components,
        sample_affine,
        affine_likelihood_terms,
        affine_weights,
    )

    def __init__(self, ensemble: Ensemble, **options: Any) -> None:
        super().__init__(ensemble, **options)
        self.hyperparameters: Any = LinearHyperparameters(1.0, 1.0, 1.0)
        self._reference, self._rates = 0.0, np.ones(ensemble.n_dimensions)
        self._largest_rates = np.full(ensemble.n_dimensions, np.inf)

    def build(
        self,
        points: FloatArray,
        targets: FloatArray,
        rates: FloatArray,
        hyperparameters: Any,
        n_jobs: int | None = 1,
    ) -> None:
        """Grow the trees from a batch, see :meth:`GaussianForest.build`."""
        self._reference, self._rates = float(targets.mean()), rates
        distances = self._distances(points, points[:, :1])
        self._limit_rates(distances.max(axis=0))
        super().build(points, targets, rates, hyperparameters, n_jobs)

    def extend(self, points: FloatArray, targets: FloatArray, rates: FloatArray) -> None:
        """Insert points one after the other, see :meth:`GaussianForest.extend`."""
        start, end = 0, points.shape[1]
        distances = self._distances(points, self.points[:, :1])
        while start < end:
            is_far = (distances[start:] * self._rates > _FARTHEST).any(axis=1)
            stop = start + int(np.argmax(is_far)) if is_far.any() else end
            if start < stop:
                part = slice(start, stop)
                own_rates = rates[part] if len(rates) > 1 else rates
                super().extend(points[:, part], targets[part], own_rates)
            if stop < end:
                self._limit_rates(distances[stop])
                self._refresh()
            start = stop

    @staticmethod
    def _distances(points: FloatArray, origin: FloatArray) -> FloatArray:
        """Return the largest distances of points from the origin in each feature, shape (m, d)."""
        with np.errstate(over="ignore"):
            # The largest number instead of infinity, whose product with a rate of 0 is undefined.
            return np.asarray(np.nan_to_num(np.abs(points - origin).max(axis=0)))

    def _limit_rates(self, distances: FloatArray) -> None:
        """Make the distances of a point the units of slopes where they are far, in use from now on.

        The next refresh must follow before a point is inserted.
        """
        is_far = distances * self._rates > _FARTHEST
        self._largest_rates[is_far] = 1.0 / distances[is_far]
        self.set_scales(self._rates)

    @property
    def scales(self) -> FloatArray:
        """Units of slopes: the split rates of the latest refresh of all messages, shape (d,)."""
        return self._rates

    def set_scales(self, rates: FloatArray) -> None:
        """Set the scales of slopes, in use from the next refresh of all messages on."""
        self._rates = np.minimum(rates, self._largest_rates)

    def message_settings(self, hyperparameters: LinearHyperparameters) -> AffineSettings:
        """Return what messages depend on."""
        gamma_2, noise, slope = hyperparameters
        return AffineSettings(float(gamma_2), float(noise), self._reference, slope * self._rates)

    def _refresh(self) -> None:
        if self.n_points > 0:
            self._reference = float(self.targets.mean())
        super()._refresh()

    def _empty_stats(self, n_trees: int, n_dimensions: int) -> Gaussian:
        messages = np.empty((n_trees, 0, n_columns(n_dimensions)))
        return empty_gaussian(n_trees)._replace(messages=messages)

    def _message_settings(self) -> AffineSettings:
        return self.message_settings(self.hyperparameters)

    def prediction_settings(self, mean_prior: float, gamma_1: float, rule: int) -> AffinePrediction:
        """Return the settings of the kernels of predictions."""
        floor = self.remaining_at_lifetime()
        return AffinePrediction(
            float(mean_prior), float(gamma_1), floor, int(rule), self._message_settings()
        )
