"""The Mondrian forest for classification as a model: scales, relevance, trees grown anew."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_forest.class_forest import ClassForest
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.regrowth import Regrowth
from mondrian_bo.surrogates.shared.relevance import RELEVANCE_START, learnt_rates
from mondrian_bo.surrogates.shared.scales import ScaledForestModel, Scales


class ClassModel(ScaledForestModel):
    """A Mondrian forest of classes with its scales. It does not validate its input.

    Parameters
    ----------
    ensemble : Ensemble
        Numbers of trees and dimensions, and the seed.
    bounds, feature_weights
        See :class:`Scales`.
    feature_relevance : bool
        Whether splits favour features whose earlier splits reduced the loss.
    **settings : object
        Other parameters of :class:`ClassForest`.

    Attributes
    ----------
    forest : ClassForest
        The trees and their counts.
    scales : Scales
        The scales of the features.
    """

    forest: ClassForest

    def __init__(
        self,
        ensemble: Ensemble,
        *,
        bounds: tuple[FloatArray, FloatArray] | None,
        feature_weights: FloatArray | None,
        feature_relevance: bool,
        **settings: Any,
    ) -> None:
        super().__init__(ensemble.n_dimensions, bounds, feature_weights)
        self.forest = ClassForest(ensemble, **settings)
        self._learns_relevance = feature_relevance
        self._regrowth = Regrowth(self.scales)

    @classmethod
    def of_parts(
        cls, settings: dict[str, Any], forest: ClassForest, scales: Scales, regrowth: Regrowth
    ) -> Self:
        """Return a model of parts that have learnt; `settings` are arguments of the constructor."""
        model = cls(**settings)
        model.forest, model.scales, model._regrowth = forest, scales, regrowth
        return model

    def learn_batch(
        self, points: FloatArray, targets: NDArray[np.int32], n_jobs: int | None = 1
    ) -> None:
        """Grow the trees of a batch; the model must be empty.

        Parameters
        ----------
        points : float64 array of shape (1, n, d)
            The points; kept.
        targets : int32 array of shape (n,)
            Numbers of their classes; kept.
        n_jobs : int or None, default=1
            Number of workers, as joblib counts.
        """
        self.scales.follow(points)
        self.forest.build(points, targets, self.scales.rates, n_jobs)
        if self._learns_relevance and len(targets) >= RELEVANCE_START:
            self._weigh_features()
            self.forest = self.forest.unlearnt()
            self.forest.build(points, targets, self.scales.rates, n_jobs)
        self._regrowth.grown(self.n_points)

    def learn(
        self,
        points: FloatArray,
        targets: NDArray[np.int32],
        sample_weights: FloatArray | None = None,
        n_jobs: int | None = 1,
    ) -> None:
        """Learn points one after the other, however they are divided into calls.

        Parameters
        ----------
        points : float64 array of shape (1, m, d)
            The points.
        targets : int32 array of shape (m,)
            Numbers of their classes.
        sample_weights : float64 array of shape (m,) or None, default=None
            Positive weights of the samples; None is all ones.
        n_jobs : int or None, default=1
            Number of workers, as joblib counts.
        """
        start = 0
        while start < len(targets):
            milestone = RELEVANCE_START
            while milestone <= self.n_points:
                milestone *= 2
            room = milestone - self.n_points if self._learns_relevance else len(targets)
            part = points[:, start : start + room]
            count, is_outgrown = self._regrowth.until_next(part, self.n_points)
            part, end = np.ascontiguousarray(part[:, :count]), start + count
            weights = None if sample_weights is None else sample_weights[start:end]
            rates = self.scales.follow(part)
            self.forest.extend(part, targets[start:end], rates, weights, n_jobs)
            if is_outgrown:
                self.forest.regrow(self.scales.rates, n_jobs)
                self._regrowth.grown(self.n_points)
            if self._learns_relevance and self.n_points == milestone:
                self._weigh_features()
            start = end

    def _weigh_features(self) -> None:
        """Let rates depend on how much the splits of each feature reduced the loss."""
        learnt = learnt_rates(self.forest.arrays, self.forest.code_lengths())
        self.scales.feature_weights = self._own_weights * learnt
