"""What is known of the objective: the trials, their transform and the surrogate over them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.acquisitions.base import Prediction, mixture_moments
from mondrian_bo.outcomes import OutcomeTransform
from mondrian_bo.surrogates.base import RandomFunction, Surrogate

FloatArray = NDArray[np.float64]

_REFIT_GROWTH = 1.1
"""The transform is fitted anew when the number of trials has grown by this factor."""

_N_INCUMBENTS = 10

_CALIBRATION_MEMORY = 20.0
"""Number of trials over which the calibration of the variances looks back."""

_LARGEST_SCORE = 3.0
"""Standardised errors beyond this count as this: one surprise is not a bad model."""


class ObjectiveModel:
    """Trials as rows of the unit cube, and a surrogate that learns them when it is needed.

    Telling a trial is O(1); the next question lets the surrogate learn what is new.

    Parameters
    ----------
    surrogate : Surrogate
        An empty surrogate.
    n_dimensions : int
        Dimension d of the rows.
    """

    def __init__(self, surrogate: Surrogate, n_dimensions: int) -> None:
        self._surrogate = surrogate
        self._rows = np.empty((0, n_dimensions))
        self._values = np.empty(0)
        self._n_trials = 0
        self._n_learnt = 0
        self._n_fitted = 0
        self._transform = OutcomeTransform(np.zeros(1))
        self._best: list[tuple[float, int]] = []
        # Rows by which of their entries are NaN.
        self._known: dict[bytes, tuple[NDArray[np.bool_], set[bytes]]] = {}
        self._squared_scores, self._score_weight = 1.0, 1.0

    @property
    def n_trials(self) -> int:
        """Number of trials told."""
        return self._n_trials

    def tell(self, row: FloatArray, value: float) -> None:
        """Add a trial.

        Parameters
        ----------
        row : float64 array of shape (d,)
            The point; NaN at inactive parameters.
        value : float
            Its value, larger is better; may be infinite, not NaN.
        """
        if self._n_trials == len(self._values):
            capacity = max(64, len(self._values) + len(self._values) // 2)
            self._rows = np.resize(self._rows, (capacity, self._rows.shape[1]))
            self._values = np.resize(self._values, capacity)
        self._rows[self._n_trials] = row
        self._values[self._n_trials] = value
        # Of equal values the earlier trial ranks higher.
        entry = (value, -self._n_trials)
        if len(self._best) < _N_INCUMBENTS:
            heapq.heappush(self._best, entry)
        else:
            heapq.heappushpop(self._best, entry)
        self.avoid(row)
        self._n_trials += 1

    def is_known(self, row: FloatArray) -> bool:
        """Whether this trial has been told, or refused with `avoid`.

        One that lacked parameters is met again by every row with the values that it had.
        """
        return any(
            np.where(gaps, np.nan, row).tobytes() in rows for gaps, rows in self._known.values()
        )

    def avoid(self, row: FloatArray) -> None:
        """Count a row as known without a value, as for a trial that failed."""
        gaps = np.isnan(row)
        self._known.setdefault(gaps.tobytes(), (gaps, set()))[1].add(row.tobytes())

    def incumbents(self) -> FloatArray:
        """Return the rows of the best trials, best first, shape (k, d)."""
        return self._rows[[-index for _, index in sorted(self._best, reverse=True)]]

    def best_trial(self) -> tuple[FloatArray, float]:
        """Return row and value of the best trial."""
        value, index = max(self._best)
        return self._rows[-index], value

    def predict(self, rows: FloatArray, calibrated: bool = True) -> Prediction:
        """Predict transformed values at rows of shape (m, d).

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Where to predict.
        calibrated : bool, default=True
            Whether to scale the standard deviations by how wrong recent predictions were.
        """
        self._learn()
        return self._predict(rows, calibrated)

    def draw(self, rng: np.random.Generator) -> RandomFunction:
        """Draw a function from the surrogate's posterior."""
        self._learn()
        return self._surrogate.draw(rng)

    def value_to_beat(self) -> float:
        """Return the largest predicted mean among the best trials.

        Without noise this is the best transformed value; with noise, it does not believe a single
        lucky trial.
        """
        mean, _ = mixture_moments(self.predict(self.incumbents()))
        return float(mean.max())

    def outcome_moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation in the units of the values, both of shape (m,)."""
        mean, std = mixture_moments(self.predict(rows))
        nodes, weights = np.polynomial.hermite_e.hermegauss(31)
        values = self._transform.inverse(mean[:, None] + std[:, None] * nodes)
        weights = weights / weights.sum()
        # Halves and relative deviations: neither differences nor squares overflow.
        halves = 0.5 * values
        expected = halves @ weights
        deviations = halves - expected[:, None]
        size = np.maximum(np.abs(deviations).max(axis=1), np.finfo(np.float64).tiny)
        spread = size * np.sqrt((deviations / size[:, None]) ** 2 @ weights)
        largest = 0.5 * np.finfo(np.float64).max
        return 2.0 * np.clip(expected, -largest, largest), 2.0 * np.minimum(spread, largest)

    @contextmanager
    def pending(self, rows: FloatArray) -> Iterator[None]:
        """Believe, for the time of a ``with`` block, that running trials give what is predicted."""
        self._learn()
        if len(rows) == 0:
            yield
            return
        believed, _ = mixture_moments(self._predict(rows, calibrated=False))
        with self._surrogate.extended(rows, believed):
            yield

    def _predict(self, rows: FloatArray, calibrated: bool) -> Prediction:
        means, stds = self._surrogate.predict(rows)
        scale = math.sqrt(self._squared_scores / self._score_weight) if calibrated else 1.0
        return Prediction(means, scale * stds)

    def _learn(self) -> None:
        if self._n_learnt == self._n_trials:
            return
        rows = self._rows[self._n_learnt : self._n_trials]
        first = self._n_learnt == 0
        refit = self._n_trials >= _REFIT_GROWTH * self._n_fitted
        if refit and first:
            self._transform = OutcomeTransform(self._values[: self._n_trials])
        values = self._transform(self._values[self._n_learnt : self._n_trials])
        if not first:
            self._calibrate(rows, values)
        self._surrogate.learn(rows, values)
        self._n_learnt = self._n_trials
        if refit and not first:
            self._transform = OutcomeTransform(self._values[: self._n_trials])
            self._surrogate.set_values(self._transform(self._values[: self._n_trials]))
        if refit:
            self._n_fitted = self._n_trials

    def _calibrate(self, rows: FloatArray, values: FloatArray) -> None:
        """Compare what was predicted for new trials with what they gave."""
        mean, std = mixture_moments(Prediction(*self._surrogate.predict(rows)))
        scores = np.minimum(np.abs(values - mean) / np.maximum(std, 1e-9), _LARGEST_SCORE)
        for score in scores[std > 0.0]:
            forget = 1.0 - 1.0 / _CALIBRATION_MEMORY
            self._squared_scores = forget * self._squared_scores + float(score) ** 2
            self._score_weight = forget * self._score_weight + 1.0
