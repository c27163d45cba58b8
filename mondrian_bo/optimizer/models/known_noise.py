"""Values with known standard errors: the optimizer learns their posterior means."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mondrian_bo.shared.array_types import FloatArray

_N_TAKEN = 8
"""Number of first values that are learnt unchanged, our choice: a model of fewer trials predicts
too badly to correct them."""


class KnownNoise:
    """Combines observations of known error with a model's predictions.

    The model's prediction N(m, s**2) is the prior of a value. An observation y with standard error
    e gives the posterior mean m + k (y - m) and the posterior variance k e**2, where
    k = s**2 / (s**2 + e**2). The model learns the posterior means. It is not told the posterior
    variances; `total_std` adds their average to its variances. Without errors nothing changes.

    Parameters
    ----------
    learn : callable
        Takes rows of shape (m, d) and values of k outcomes, shape (m, k), to learn.
    predict : callable
        Maps rows to means and standard deviations of the outcomes, both of shape (m, k).
    n_known : int, default=0
        Number of trials that the model knows already, without errors.
    """

    def __init__(
        self,
        learn: Callable[[FloatArray, FloatArray], None],
        predict: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
        n_known: int = 0,
    ) -> None:
        self._learn = learn
        self._predict = predict
        self._n_known = n_known
        self._remaining = np.zeros(0)

    def tell(self, rows: FloatArray, values: FloatArray, errors: FloatArray) -> None:
        """Learn the posterior means of trials.

        Many trials are learnt in portions, each no larger than the number of trials before it, so
        that a model corrects each portion.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Encoded points.
        values : float64 array of shape (m, k)
            Their values; NaN where there is none. More columns than before add outcomes.
        errors : float64 array of shape (m, k)
            Their standard errors, in the same units; NaN where they are not known: the model then
            estimates the noise.
        """
        errors = np.where(np.isfinite(values), np.nan_to_num(errors, posinf=np.inf), 0.0)
        n_more = max(values.shape[1] - len(self._remaining), 0)
        self._remaining = np.pad(self._remaining, (0, n_more))
        while len(rows):
            n_next = len(rows)
            if errors.any():
                n_next = min(n_next, max(self._n_known, _N_TAKEN))
            denoised = values[:n_next]
            if errors[:n_next].any() or self._remaining.any():
                denoised = self._posterior_means(rows[:n_next], denoised, errors[:n_next])
            self._learn(rows[:n_next], denoised)
            self._n_known += int(np.isfinite(denoised).any(axis=1).sum())
            rows, values, errors = rows[n_next:], values[n_next:], errors[n_next:]

    def state(self) -> tuple[FloatArray, int]:
        """Return what `restore` needs."""
        return self._remaining.copy(), self._n_known

    def restore(self, state: tuple[FloatArray, int]) -> None:
        """Return to a former state."""
        self._remaining, self._n_known = state[0].copy(), state[1]

    def total_std(self, std: FloatArray) -> FloatArray:
        """Add the variance that remains in learnt values to predicted deviations (m, k)."""
        if not self._remaining.any():
            return std
        remaining = np.zeros(std.shape[1])
        n_shared = min(len(remaining), len(self._remaining))
        remaining[:n_shared] = self._remaining[:n_shared]
        return np.sqrt(std * std + remaining)

    def _posterior_means(
        self, rows: FloatArray, values: FloatArray, errors: FloatArray
    ) -> FloatArray:
        """Return the values to learn, and update the averages of the variances that remain."""
        n_known = self._n_known
        # Squares beyond the range of float64 are infinite, as errors may be.
        with np.errstate(over="ignore"):
            noise = errors * errors
        denoised, remaining = values, noise
        if n_known >= _N_TAKEN:
            mean, std = self._moments(rows, values.shape[1])
            prior = std * std
            # Without a prediction, the observation stays as it is.
            noisy = (noise > 0.0) & ~np.isnan(prior)
            gains = np.ones(values.shape)
            gains[noisy] = prior[noisy] / (prior[noisy] + noise[noisy])
            denoised = np.where(noisy, mean + gains * (values - mean), values)
            remaining = np.where(
                np.isinf(noise), prior, gains * np.where(np.isinf(noise), 0.0, noise)
            )
        for i, column in enumerate(remaining.T):
            counted = column[np.isfinite(column) & np.isfinite(values[:, i])]
            if len(counted):
                total = self._remaining[i] * n_known + float(counted.sum())
                self._remaining[i] = total / (n_known + len(counted))
        return denoised

    def _moments(self, rows: FloatArray, n_outcomes: int) -> tuple[FloatArray, FloatArray]:
        """Predict, with NaN for outcomes that the model does not have yet."""
        mean, std = np.full((2, len(rows), n_outcomes), np.nan)
        known_mean, known_std = self._predict(rows)
        n_known = min(n_outcomes, known_mean.shape[1])
        mean[:, :n_known], std[:, :n_known] = known_mean[:, :n_known], known_std[:, :n_known]
        return mean, self.total_std(std)
