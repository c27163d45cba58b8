"""The model of the objective: a transform of the values and a surrogate over the trials."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from mondrian_bo.acquisitions.base import Prediction, mixture_moments
from mondrian_bo.array_types import FloatArray
from mondrian_bo.optimizer.calibration import VarianceCalibration
from mondrian_bo.optimizer.outcome_transform import OutcomeTransform
from mondrian_bo.optimizer.trials import Trials
from mondrian_bo.surrogates.base import Gradients, RandomFunction, SmoothSurrogate, Surrogate

_REFIT_GROWTH = 1.1
"""Factor of the number of trials at which the transform is refitted: the cost of all refits is O(1)
per trial."""


class ObjectiveModel:
    """A surrogate of trials. It learns new trials at the next prediction or draw.

    Parameters
    ----------
    surrogate : Surrogate
        An empty surrogate.
    trials : Trials
        The trials. More may be added later.
    power : bool, default=True
        Whether a power transform makes the values nearly Gaussian.
    """

    def __init__(self, surrogate: Surrogate, trials: Trials, power: bool = True) -> None:
        self.trials = trials
        self._surrogate = surrogate
        # An isinstance check of a protocol takes as long as a small prediction.
        self._smooth = surrogate if isinstance(surrogate, SmoothSurrogate) else None
        self._power = power
        self._n_learnt = 0
        self._n_fitted = 0
        self._transform = OutcomeTransform(np.zeros(1), power)
        self._calibration = VarianceCalibration()

    @property
    def n_gradients(self) -> int:
        """Number of components of predictions with gradients; 0 if there are none."""
        self._learn()
        return 0 if self._smooth is None else self._smooth.n_components

    def predict(self, rows: FloatArray, calibrated: bool = True) -> Prediction:
        """Predict transformed values at rows of shape (m, d).

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Where to predict.
        calibrated : bool, default=True
            Whether standard deviations are multiplied by the root mean square of the latest
            standardised errors.
        """
        self._learn()
        means, stds = self._surrogate.predict(rows)
        return Prediction(means, (self._calibration.scale if calibrated else 1.0) * stds)

    def gradients(self, rows: FloatArray, calibrated: bool = True) -> Gradients:
        """Predict as `predict` does, with gradients; the surrogate must be smooth."""
        self._learn()
        assert self._smooth is not None
        means, stds, mean_gradients, std_gradients = self._smooth.gradients(rows)
        scale = self._calibration.scale if calibrated else 1.0
        return Gradients(means, scale * stds, mean_gradients, scale * std_gradients)

    def draw(self, rng: np.random.Generator) -> RandomFunction:
        """Draw a function from the surrogate's posterior."""
        self._learn()
        return self._surrogate.draw(rng)

    def value_to_beat(self) -> float:
        """Return the largest predicted mean among the best feasible trials; -inf without any.

        Without noise this is the best transformed value. With noise a single lucky trial does not
        set it.
        """
        rows = self.trials.incumbents(feasible=True)
        if not len(rows):
            return -math.inf
        mean, _ = mixture_moments(self.predict(rows))
        return float(mean.max())

    def outcome_moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation in the units of the values, both of shape (m,)."""
        mean, std = mixture_moments(self.predict(rows))
        nodes, weights = np.polynomial.hermite_e.hermegauss(31)
        values = self._transform.inverse(mean[:, None] + std[:, None] * nodes)
        weights = weights / weights.sum()
        # With halves and relative deviations neither differences nor squares overflow.
        halves = 0.5 * values
        expected = halves @ weights
        deviations = halves - expected[:, None]
        size = np.maximum(np.abs(deviations).max(axis=1), np.finfo(np.float64).tiny)
        spread = size * np.sqrt((deviations / size[:, None]) ** 2 @ weights)
        largest = 0.5 * np.finfo(np.float64).max
        return 2.0 * np.clip(expected, -largest, largest), 2.0 * np.minimum(spread, largest)

    @contextmanager
    def pending(self, rows: FloatArray) -> Iterator[None]:
        """Impute running trials with the model's prediction inside a ``with`` block."""
        if len(rows) == 0:
            yield
            return
        imputed, _ = mixture_moments(self.predict(rows, calibrated=False))
        with self._surrogate.extended(rows, imputed):
            yield

    def _learn(self) -> None:
        n_trials = len(self.trials)
        if self._n_learnt == n_trials:
            return
        rows = self.trials.rows[self._n_learnt :]
        first = self._n_learnt == 0
        refit = n_trials >= _REFIT_GROWTH * self._n_fitted
        if refit and first:
            self._transform = OutcomeTransform(self.trials.values, self._power)
        values = self._transform(self.trials.values[self._n_learnt :])
        if not first:
            predicted = mixture_moments(Prediction(*self._surrogate.predict(rows)))
            self._calibration.update(values, *predicted)
        self._surrogate.learn(rows, values)
        self._n_learnt = n_trials
        if refit and not first:
            self._transform = OutcomeTransform(self.trials.values, self._power)
            self._surrogate.set_values(self._transform(self.trials.values))
        if refit:
            self._n_fitted = n_trials


def mixed_moments(
    moments: Sequence[tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of equally weighted mixtures, both of shape (m,).

    Parameters
    ----------
    moments : sequence of (mean, std), at least one
        Means and standard deviations of the components, float64 arrays of shape (m,), finite. A
        single component is returned unchanged.
    """
    if len(moments) == 1:
        return moments[0]
    # With shares and relative deviations neither sums nor squares overflow.
    shares = np.array(moments) / len(moments)
    mean = shares[:, 0].sum(axis=0)
    deviations = np.hypot(shares[:, 1], shares[:, 0] - mean / len(moments))
    size = np.maximum(deviations.max(axis=0), np.finfo(np.float64).tiny)
    spread = size * np.sqrt(((deviations / size) ** 2).mean(axis=0))
    return mean, np.minimum(spread, np.finfo(np.float64).max / len(moments)) * len(moments)
