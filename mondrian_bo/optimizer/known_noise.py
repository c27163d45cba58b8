"""Values with known standard errors: the optimizer learns their posterior means."""

from __future__ import annotations

import numpy as np

from mondrian_bo.array_types import BoolArray, FloatArray
from mondrian_bo.optimizer.optimizer import MondrianOptimizer

_N_TAKEN = 8
"""Number of first values that are learnt unchanged, our choice: a model of fewer trials predicts
too badly to correct them."""


class KnownNoise:
    """Combines observations of known error with an optimizer's predictions.

    The model's prediction N(m, s**2) is the prior of a value. An observation y with standard error
    e gives the posterior mean m + k (y - m) and the posterior variance k e**2, where
    k = s**2 / (s**2 + e**2). The optimizer learns the posterior means. It is not told the posterior
    variances; `predict_rows` adds their average to its variances. Without errors nothing changes.

    Parameters
    ----------
    optimizer : MondrianOptimizer
        Learns the values. All of its trials must be told through this object.
    """

    def __init__(self, optimizer: MondrianOptimizer) -> None:
        self.optimizer = optimizer
        self._remaining = 0.0

    def tell_rows(
        self,
        rows: FloatArray,
        values: FloatArray,
        errors: FloatArray,
        feasible: BoolArray,
    ) -> None:
        """Report trials as :meth:`MondrianOptimizer.tell_rows` does.

        Many trials are told in portions, each no larger than the number of trials before it, so
        that a model corrects each portion.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Encoded points.
        values : float64 array of shape (m,)
            Their values; NaN for trials that failed.
        errors : float64 array of shape (m,)
            Their standard errors, in the same units; NaN where they are not known: the optimizer
            then estimates the noise.
        feasible : bool array of shape (m,)
            Which of them satisfy the constraints.
        """
        errors = np.where(np.isfinite(values), np.nan_to_num(errors, posinf=np.inf), 0.0)
        while len(rows):
            n_known = self.optimizer.n_trials
            n_next = len(rows)
            if errors.any():
                n_next = min(n_next, max(n_known, _N_TAKEN))
            denoised = values[:n_next]
            if errors[:n_next].any() or self._remaining > 0.0:
                denoised = self._posterior_means(rows[:n_next], denoised, errors[:n_next])
            self.optimizer.tell_rows(rows[:n_next], denoised, feasible[:n_next])
            rows, values, errors = rows[n_next:], values[n_next:], errors[n_next:]
            feasible = feasible[n_next:]

    def predict_rows(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict mean and standard deviation of the noise-free outcome, both of shape (m,).

        Raises
        ------
        ValueError
            If no trial has been told.
        """
        mean, std = self.optimizer.predict_rows(rows)
        return mean, np.sqrt(std * std + self._remaining)

    def _posterior_means(
        self, rows: FloatArray, values: FloatArray, errors: FloatArray
    ) -> FloatArray:
        """Return the values to learn, and update the average of the variances that remain."""
        n_known = self.optimizer.n_trials
        # Squares beyond the range of float64 are infinite, as errors may be.
        with np.errstate(over="ignore"):
            noise = errors * errors
        gains = np.ones(len(values))
        denoised = values
        if n_known >= _N_TAKEN:
            mean, std = self.predict_rows(rows)
            prior = std * std
            noisy = noise > 0.0
            gains[noisy] = prior[noisy] / (prior[noisy] + noise[noisy])
            denoised = np.where(noisy, mean + gains * (values - mean), values)
            remaining = np.where(
                np.isinf(noise), prior, gains * np.where(np.isinf(noise), 0.0, noise)
            )
        else:
            remaining = noise
        remaining = remaining[np.isfinite(remaining) & np.isfinite(values)]
        if len(remaining):
            total = self._remaining * n_known + float(remaining.sum())
            self._remaining = total / (n_known + len(remaining))
        return denoised
