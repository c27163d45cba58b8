"""The Mondrian kernel as a surrogate of the optimizer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.surrogates.mondrian_kernel.hyperparameters import (
    choose_hyperparameters,
    profiled_variance,
)
from mondrian_bo.surrogates.mondrian_kernel.model import KernelModel
from mondrian_bo.surrogates.shared.encoding import TreeEncoding
from mondrian_bo.surrogates.shared.tree_surrogate import TreeSurrogate

_LIFETIMES = 2.0 ** np.arange(-4.0, 5.0)
"""In units of the cube's side; 16 is the lifetime of the partitions."""

_RIDGES = 10.0 ** np.arange(-4.0, 0.0)

_GROWTH = 1.2
"""Hyper-parameters are chosen anew when the number of points has grown by this factor."""

_N_WAVES = 256


class KernelSurrogate(TreeSurrogate):
    """Bayesian ridge regression with the Mondrian kernel over rows of a search space.

    All trees are fitted jointly, so that the prediction is a single Gaussian. Lifetime, noise and
    variance are those of the largest marginal likelihood. A row is learnt at O(n^2), as is
    predicting one: for up to some thousand trials.

    Parameters
    ----------
    n_choices : int array of shape (d,)
        Number of choices of categorical columns, 0 for numeric ones.
    may_be_absent : bool
        Whether rows may hold NaN, for inactive parameters.
    seed : numpy.random.SeedSequence
        Source of all randomness.
    n_estimators : int, default=50
        Number of partitions, M.
    """

    def __init__(
        self,
        n_choices: IntArray,
        may_be_absent: bool,
        seed: np.random.SeedSequence,
        *,
        n_estimators: int = 50,
    ) -> None:
        partition_seed, place_seed = seed.spawn(2)
        places = np.random.default_rng(place_seed)
        super().__init__(
            AdaptiveKernelModel(n_estimators, len(n_choices), partition_seed),
            TreeEncoding.if_needed(n_choices, may_be_absent, n_estimators, places),
        )


class AdaptiveKernelModel:
    """A kernel model over the unit cube that chooses its own hyper-parameters.

    Parameters
    ----------
    n_trees : int
        Number of partitions, M.
    n_dimensions : int
        Dimension d of the points.
    seed : numpy.random.SeedSequence
        Source of the partitions.
    """

    def __init__(self, n_trees: int, n_dimensions: int, seed: np.random.SeedSequence) -> None:
        weights = np.ones(n_dimensions)
        lifetime = float(_LIFETIMES[-1])
        self._partitions = PartitionForest(n_trees, n_dimensions, seed, weights, lifetime)
        self._model: KernelModel | None = None
        self._n_chosen = 0

    def learn(self, points: FloatArray, targets: FloatArray) -> None:
        """Learn more points, O(n^2) each in the long run but for the choice of parameters."""
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
        """Replace the labels of all points."""
        self._known().set_targets(targets)
        self._set_variance()

    def predict(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the function, each of shape (1, m)."""
        mean, variance = self._known().predict(points)
        return mean[None], variance[None]

    def draw(self, rng: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
        """Draw a function from the posterior.

        The weights of all cells are a draw from their posterior. Where a point may be outside of
        all cells, the function goes on as one of the prior: a sum of random waves.
        """
        model = self._known()
        weights = model.draw_weights(rng)
        n_dimensions = len(self._partitions.weights)
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
        """Know further points for the time of a ``with`` block; exactly undone at its end."""
        return self._known().extended(points, targets)

    def _known(self) -> KernelModel:
        if self._model is None:
            raise ValueError("nothing has been learnt yet")
        return self._model

    def _choose(self) -> None:
        """Choose lifetime and noise, and solve from scratch."""
        chosen = choose_hyperparameters(self._partitions, _LIFETIMES, _RIDGES)
        self._partitions.label(chosen.lifetime)
        self._model = KernelModel(
            self._partitions, chosen.ridge, chosen.prior_variance, form="dual"
        )
        self._n_chosen = self._partitions.n_points

    def _set_variance(self) -> None:
        """Follow the labels with the prior variance."""
        model = self._known()
        model.prior_variance = profiled_variance(model.quadratic(), self._partitions.n_points)
