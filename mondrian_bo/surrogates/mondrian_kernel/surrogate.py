"""The Mondrian kernel as a surrogate of the optimizer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.base import Columns
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.surrogates.mondrian_kernel.hyperparameters import (
    choose_hyperparameters,
    profiled_variance,
)
from mondrian_bo.surrogates.mondrian_kernel.model import KernelModel
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.tree_surrogate import TreeSurrogate

_LIFETIMES = 2.0 ** np.arange(-4.0, 5.0)
"""Choices of the lifetime, per side of the unit cube: widths from 16 sides to 1/16 of a side.

The largest one is the lifetime of the partitions.
"""

_RIDGES = 10.0 ** np.arange(-4.0, 0.0)
"""Choices of the noise variance over the prior variance; 1e-4 is that of Balog2016, section 8."""

_GROWTH = 1.2
"""Hyper-parameters are chosen anew when the number of points has grown by this factor: the O(n^3)
of a choice then costs O(n^2) for each point in the long run."""

_N_WAVES = 256
"""Number of random waves in a draw from the prior; their kernel has an error of about 1/16."""


class KernelSurrogate(TreeSurrogate):
    """Bayesian ridge regression with the Mondrian kernel over rows of a search space.

    All trees are fitted jointly, so the prediction is a single Gaussian. Lifetime, noise and prior
    variance maximise the marginal likelihood. Learning a row costs O(n^2), and so does predicting
    one: the surrogate is for up to some thousand trials.

    Parameters
    ----------
    columns, seed, n_estimators
        See :class:`TreeSurrogate`; the trees are the partitions.
    """

    def __init__(
        self, columns: Columns, seed: np.random.SeedSequence, *, n_estimators: int = 50
    ) -> None:
        super().__init__(columns, seed, n_estimators, AdaptiveKernelModel)


class AdaptiveKernelModel:
    """A kernel model over the unit cube that chooses its hyper-parameters.

    Parameters
    ----------
    ensemble
        See :class:`PartitionForest`.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        rates = np.ones(ensemble.n_dimensions)
        lifetime = float(_LIFETIMES[-1])
        self._partitions = PartitionForest(ensemble, rates, lifetime)
        self._model: KernelModel | None = None
        self._n_chosen = 0

    def learn(self, points: FloatArray, targets: FloatArray) -> None:
        """Learn more points, O(n^2) each in the long run beside the choice of hyper-parameters."""
        if len(targets) == 0:
            return
        if self._model is None:
            self._partitions.build(points, targets)
        else:
            self._model.learn(points, targets)
        n_points = self._partitions.n_points
        if self._model is None or n_points >= _GROWTH * self._n_chosen:
            self._choose()
        self._set_variance()

    def set_targets(self, targets: FloatArray) -> None:
        """Replace the targets of all points."""
        self._known().set_targets(targets)
        self._set_variance()

    def predict(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the function, each of shape (1, m)."""
        mean, variance = self._known().predict(points)
        return mean[None], variance[None]

    def draw(self, rng: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
        """Draw a function from the posterior.

        The weights of all cells are drawn from their posterior. The prior variance that the
        features of a point leave out, outside of the known cells, is that of a sum of random waves.
        """
        model = self._known()
        weights = model.draw_weights(rng)
        n_dimensions = len(self._partitions.rates)
        frequencies = self._partitions.cell_lifetime * rng.standard_cauchy((n_dimensions, _N_WAVES))
        phases = rng.uniform(0.0, 2.0 * np.pi, _N_WAVES)
        heights = rng.normal(size=_N_WAVES) * np.sqrt(2.0 * model.prior_variance / _N_WAVES)

        def function(points: FloatArray) -> FloatArray:
            rows = model.features(points)
            inside = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
            waves = np.cos(points[0] @ frequencies + phases) @ heights
            values = model.mean + rows @ weights + np.sqrt(np.maximum(1.0 - inside, 0.0)) * waves
            return np.asarray(values)

        return function

    def extended(self, points: FloatArray, targets: FloatArray) -> AbstractContextManager[None]:
        """Learn points within a ``with`` block, and restore the model bit for bit at its end."""
        return self._known().extended(points, targets)

    def _known(self) -> KernelModel:
        if self._model is None:
            raise ValueError("nothing has been learnt yet")
        return self._model

    def _choose(self) -> None:
        """Choose lifetime and noise, and fit from scratch."""
        chosen = choose_hyperparameters(self._partitions, _LIFETIMES, _RIDGES)
        self._partitions.assign_cells(chosen.lifetime)
        self._model = KernelModel(
            self._partitions, chosen.ridge, chosen.prior_variance, form="dual"
        )
        self._n_chosen = self._partitions.n_points

    def _set_variance(self) -> None:
        """Set the prior variance with the largest evidence for the targets."""
        model = self._known()
        model.prior_variance = profiled_variance(model.quadratic(), self._partitions.n_points)
