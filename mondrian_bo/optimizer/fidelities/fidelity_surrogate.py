"""A surrogate that expects trials of different fidelities to be correlated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from mondrian_bo.optimizer.fidelities.fidelity import Fidelity
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.base import Gradients, RandomFunction, Surrogate
from mondrian_bo.surrogates.gaussian_process_forest.surrogate import GaussianProcessForestSurrogate

_SQUEEZE = 0.3
"""Factor of the distances of fidelities that the inner surrogate sees. The prior of a Gaussian
process expects a lengthscale of 1: both ends of the fidelity then have a correlation of 0.9, until
trials say otherwise. Chosen among 0.2, 0.3, 0.5 and 1 on the development problems of the suite
``fidelities``."""


class FidelitySurrogate:
    """A surrogate to which fidelities are nearer to the target; implements ``Surrogate``.

    At the target it is the inner surrogate.

    Parameters
    ----------
    surrogate : Surrogate
        An empty surrogate.
    fidelity : Fidelity
        The fidelity.
    """

    def __init__(self, surrogate: Surrogate, fidelity: Fidelity) -> None:
        self._surrogate = surrogate
        self._fidelity = fidelity

    def learn(self, rows: FloatArray, targets: FloatArray) -> None:
        """Learn more rows."""
        self._surrogate.learn(self._squeezed(rows), targets)

    def set_targets(self, targets: FloatArray) -> None:
        """Replace the targets of all rows."""
        self._surrogate.set_targets(targets)

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of the components, both of shape (C, m)."""
        return self._surrogate.predict(self._squeezed(rows))

    def draw(self, rng: np.random.Generator) -> RandomFunction:
        """Draw a function from the posterior."""
        function = self._surrogate.draw(rng)
        return lambda rows: function(self._squeezed(rows))

    @contextmanager
    def extended(self, rows: FloatArray, targets: FloatArray) -> Iterator[None]:
        """Learn further rows inside a ``with`` block."""
        with self._surrogate.extended(self._squeezed(rows), targets):
            yield

    def _squeezed(self, rows: FloatArray) -> FloatArray:
        unit = self._fidelity.unit
        return self._fidelity.at(rows, unit + _SQUEEZE * (rows[:, self._fidelity.column] - unit))


class SmoothFidelitySurrogate(FidelitySurrogate):
    """The same over Gaussian processes, with gradients, joint moments and known noise."""

    weighs_targets = True

    _surrogate: GaussianProcessForestSurrogate

    def learn(
        self, rows: FloatArray, targets: FloatArray, known_noise: FloatArray | None = None
    ) -> None:
        """Learn more rows; see :class:`mondrian_bo.surrogates.base.WeighingSurrogate`."""
        self._surrogate.learn(self._squeezed(rows), targets, known_noise)

    def set_targets(self, targets: FloatArray, known_noise: FloatArray | None = None) -> None:
        """Replace the targets of all rows."""
        self._surrogate.set_targets(targets, known_noise)

    @property
    def n_components(self) -> int:
        """Number of components of predictions."""
        return self._surrogate.n_components

    def fix_lengthscales(self, like: SmoothFidelitySurrogate, factor: float) -> None:
        """Take the hyper-parameters of another surrogate, and its lengthscales times a factor."""
        self._surrogate.fix_lengthscales(like._surrogate, factor)

    def predict_targets(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of new targets, noise included, both (C, m)."""
        return self._surrogate.predict_targets(self._squeezed(rows))

    def draw_at(self, rows: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw functions jointly and return their values at rows, shape (n_draws, m)."""
        return self._surrogate.draw_at(self._squeezed(rows), n_draws, rng)

    def joint(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means, shape (m,), and covariances, (m, m), of the function at rows."""
        return self._surrogate.joint(self._squeezed(rows))

    def gradients(self, rows: FloatArray) -> Gradients:
        """Return predictions with their gradients."""
        found = self._surrogate.gradients(self._squeezed(rows))
        for gradients in (found.mean_gradients, found.std_gradients):
            gradients[:, :, self._fidelity.column] *= _SQUEEZE
        return found


def with_fidelity(surrogate: Surrogate, fidelity: Fidelity) -> FidelitySurrogate:
    """Return an empty surrogate that expects fidelities to be correlated."""
    if isinstance(surrogate, GaussianProcessForestSurrogate):
        return SmoothFidelitySurrogate(surrogate, fidelity)
    return FidelitySurrogate(surrogate, fidelity)
