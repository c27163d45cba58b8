"""A surrogate of trials of several fidelities, with a trend as its prior mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.optimizer.fidelity import Fidelity
from mondrian_bo.surrogates.base import Gradients, RandomFunction, Surrogate
from mondrian_bo.surrogates.gaussian_process_forest.surrogate import GaussianProcessForestSurrogate
from mondrian_bo.surrogates.shared.growing_array import GrowingArray

_MOST_TRIALS = 300
"""Number of latest trials that the trend is fitted to: a few milliseconds."""

_LENGTHSCALE = 0.5
"""Lengthscale of the process that the trend is told from, in diagonals of the unit cube; our
choice."""

_NOISE = 0.05
"""Variance of its noise, in variances of the values; our choice."""

_MEAN_VARIANCE = 10.0
"""Prior variance of its mean, as that of the optimizer's process."""

_SLOPE_VARIANCE = 1.0
"""Prior variance of the slopes, for offsets of up to 1 and values of variance 1; our choice."""

_SQUEEZE = 0.3
"""Factor of the distances of fidelities that the surrogate sees. Its prior expects lengthscales of
1, so fidelities are correlated by 0.9 until trials say otherwise; chosen on development problems.
"""

_STEP = 1e-6
"""Step of the derivative of the trend, in sides of the unit cube."""


class FidelityTrend:
    """A surrogate of the difference to a trend in the fidelity; implements ``Surrogate``.

    The trend is the part of the values that changes with the fidelity in the same way everywhere,
    such as a loss that falls with the number of epochs. A product kernel would have to learn it
    again at each point. It is a linear function of the two offsets of :meth:`Fidelity.offsets`, and
    0 at the target. The slopes are the posterior mean in a Gaussian process with a fixed kernel
    (Rasmussen2006, section 2.7): trials at the target are better than others as they are chosen,
    and the process knows which trials are next to each other.

    Parameters
    ----------
    surrogate : Surrogate
        An empty surrogate, which learns the residuals.
    fidelity : Fidelity
        The fidelity.
    n_choices : int64 array of shape (d,)
        Number of choices of categorical columns, 0 for numeric ones.
    """

    def __init__(self, surrogate: Surrogate, fidelity: Fidelity, n_choices: IntArray) -> None:
        self._surrogate = surrogate
        self._fidelity = fidelity
        self._is_categorical = n_choices > 0
        self._rows, self._values = GrowingArray(len(n_choices)), GrowingArray()
        self.slopes: FloatArray = np.zeros(2)

    def learn(self, rows: FloatArray, values: FloatArray) -> None:
        """Learn more rows."""
        is_first = len(self._values) == 0
        self._rows.extend(rows)
        self._values.extend(values)
        if is_first:
            self._fit()
        self._surrogate.learn(self._squeezed(rows), values - self._mean(rows))

    def set_values(self, values: FloatArray) -> None:
        """Replace the values of all rows, and fit the trend again."""
        self._values.replace(values.copy())
        self._fit()
        self._surrogate.set_values(values - self._mean(self._rows.rows))

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of the components, both of shape (C, m)."""
        means, stds = self._surrogate.predict(self._squeezed(rows))
        return means + self._mean(rows), stds

    def draw(self, rng: np.random.Generator) -> RandomFunction:
        """Draw a function from the posterior."""
        residual = self._surrogate.draw(rng)
        return lambda rows: self._mean(rows) + residual(self._squeezed(rows))

    @contextmanager
    def extended(self, rows: FloatArray, values: FloatArray) -> Iterator[None]:
        """Learn further rows inside a ``with`` block."""
        with self._surrogate.extended(self._squeezed(rows), values - self._mean(rows)):
            yield

    def _squeezed(self, rows: FloatArray) -> FloatArray:
        """Return rows as the surrogate sees them: fidelities are nearer to the target."""
        unit = self._fidelity.unit
        return self._fidelity.at(rows, unit + _SQUEEZE * (rows[:, self._fidelity.column] - unit))

    def _mean(self, rows: FloatArray) -> FloatArray:
        return np.asarray(self._fidelity.offsets(rows) @ self.slopes)

    def _fit(self) -> None:
        rows, values = self._rows.rows[-_MOST_TRIALS:], self._values.rows[-_MOST_TRIALS:]
        offsets = self._fidelity.offsets(rows)
        if not offsets.any():
            self.slopes = np.zeros(2)
            return
        # Distances of parameters that one row lacks, and of choices, are those of opposite ends.
        gaps = np.abs(rows[:, None] - rows[None])
        gaps[:, :, self._is_categorical] = gaps[:, :, self._is_categorical] != 0.0
        gaps[np.isnan(rows)[:, None] != np.isnan(rows)[None]] = 1.0
        gaps[np.isnan(gaps)] = 0.0
        squares = (gaps * gaps).sum(axis=2) / (_LENGTHSCALE**2 * rows.shape[1])
        covariance = np.exp(-0.5 * squares) + _MEAN_VARIANCE + _NOISE * np.eye(len(rows))
        weighted = np.linalg.solve(covariance, np.column_stack([offsets, values]))
        precision = offsets.T @ weighted[:, :2] + np.eye(2) / _SLOPE_VARIANCE
        self.slopes = np.asarray(np.linalg.solve(precision, offsets.T @ weighted[:, 2]))  # eq. 2.41


class SmoothFidelityTrend(FidelityTrend):
    """The same over Gaussian processes, with gradients, joint moments and known noise."""

    _surrogate: GaussianProcessForestSurrogate

    @property
    def n_components(self) -> int:
        """Number of components of predictions."""
        return self._surrogate.n_components

    def predict_values(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of new values, noise included, both (C, m)."""
        means, stds = self._surrogate.predict_values(self._squeezed(rows))
        return means + self._mean(rows), stds

    def draw_at(self, rows: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw functions jointly and return their values at rows, shape (n_draws, m)."""
        draws = self._surrogate.draw_at(self._squeezed(rows), n_draws, rng)
        return np.asarray(self._mean(rows) + draws)

    def joint(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means, shape (m,), and covariances, (m, m), of the function at rows."""
        means, covariances = self._surrogate.joint(self._squeezed(rows))
        return means + self._mean(rows), covariances

    def gradients(self, rows: FloatArray) -> Gradients:
        """Return predictions with their gradients."""
        means, stds, mean_gradients, std_gradients = self._surrogate.gradients(self._squeezed(rows))
        column = self._fidelity.column
        mean_gradients[:, :, column] *= _SQUEEZE
        std_gradients[:, :, column] *= _SQUEEZE
        ends = [
            self._mean(self._fidelity.at(rows, rows[:, column] + move)) for move in (-_STEP, _STEP)
        ]
        slopes = np.zeros(rows.shape)
        slopes[:, column] = (ends[1] - ends[0]) / (2.0 * _STEP)
        return Gradients(means + self._mean(rows), stds, mean_gradients + slopes, std_gradients)


def with_trend(surrogate: Surrogate, fidelity: Fidelity, n_choices: IntArray) -> FidelityTrend:
    """Return an empty surrogate with a trend as its prior mean."""
    if isinstance(surrogate, GaussianProcessForestSurrogate):
        return SmoothFidelityTrend(surrogate, fidelity, n_choices)
    return FidelityTrend(surrogate, fidelity, n_choices)
