"""Values with known standard errors: the optimizer learns their posterior means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.shared.array_types import FloatArray

_N_TAKEN = 8
"""Number of first values that are learnt unchanged, our choice: a model of fewer trials predicts
too badly to correct them."""

_LARGEST_USUAL = 1e100
"""Errors up to this size, and down to its inverse, have variances that are summed in the units of
the values: their squares are within the range of float64."""

Learn: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray | None], None]
"""Takes rows of shape (m, d), values of k outcomes, shape (m, k), to learn and, of shape (m, k, 2),
the values as observed with their errors, or None."""


class KnownNoise:
    """Combines observations of known error with a model's predictions.

    The model's prediction N(m, s**2) is the prior of a value. An observation y with standard error
    e gives the posterior mean m + k (y - m) and the posterior variance k e**2, where
    k = s**2 / (s**2 + e**2). The model learns the posterior means. It is not told the posterior
    variances; `total_std` adds their average to its variances. Without errors nothing changes.

    Where the errors differ, a model may weigh trials by their errors itself
    (:attr:`OutcomeModel.weighs_errors`). It learns what was observed. The posterior means then only
    rank trials, and nothing is added to predictions.

    Parameters
    ----------
    learn : callable
        See :data:`Learn`.
    predict : callable
        Maps rows to means and standard deviations of the outcomes, both of shape (m, k).
    n_known : int, default=0
        Number of trials that the model knows already, without errors.
    models : callable or None, default=None
        Returns the models of the outcomes as far as there are any; None is no model that weighs
        trials.
    """

    def __init__(
        self,
        learn: Learn,
        predict: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
        n_known: int = 0,
        models: Callable[[], Sequence[OutcomeModel]] | None = None,
    ) -> None:
        self._learn = learn
        self._predict = predict
        self._n_known = n_known
        self._models = models
        # Variances, in units of the squares of these powers of two.
        self._remaining = np.zeros(0)
        self._units = np.ones(0)

    def tell(
        self,
        rows: FloatArray,
        values: FloatArray,
        errors: FloatArray,
        learn: Learn | None = None,
        weighs: bool = True,
    ) -> None:
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
        learn : callable or None, default=None
            What learns these trials; None is that of the constructor.
        weighs : bool, default=True
            Whether models may weigh these trials by their errors.
        """
        learn = learn or self._learn
        observed = None
        if weighs and self._models is not None:
            observed = np.stack([values, np.nan_to_num(errors, posinf=np.inf)], axis=-1)
        errors = np.where(np.isfinite(values), np.nan_to_num(errors, posinf=np.inf), 0.0)
        n_more = max(values.shape[1] - len(self._remaining), 0)
        self._remaining = np.pad(self._remaining, (0, n_more))
        self._units = np.pad(self._units, (0, n_more), constant_values=1.0)
        while len(rows):
            n_next = len(rows)
            if errors.any():
                n_next = min(n_next, max(self._n_known, _N_TAKEN))
            denoised = values[:n_next]
            if errors[:n_next].any() or self._remaining.any():
                denoised = self._posterior_means(rows[:n_next], denoised, errors[:n_next])
            learn(rows[:n_next], denoised, None if observed is None else observed[:n_next])
            self._n_known += int(np.isfinite(denoised).any(axis=1).sum())
            rows, values, errors = rows[n_next:], values[n_next:], errors[n_next:]
            observed = None if observed is None else observed[n_next:]

    def state(self) -> tuple[FloatArray, FloatArray, int]:
        """Return what `restore` needs.

        Returns
        -------
        remaining, units : float64 arrays of shape (k,)
            Average variances that remain in learnt values, in squares of the units. The units are
            powers of two: 1, except where variances would be out of the range of float64.
        n_known : int
            Number of trials that the averages are over.
        """
        return self._remaining.copy(), self._units.copy(), self._n_known

    def restore(self, state: tuple[FloatArray, FloatArray, int]) -> None:
        """Return to a former state."""
        self._remaining, self._units, self._n_known = state[0].copy(), state[1].copy(), state[2]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; pickles of earlier versions have no units, and no model that weighs trials."""
        added = {"_units": np.ones(len(state["_remaining"])), "_models": None}
        self.__dict__.update({**added, **state})

    def total_std(self, std: FloatArray) -> FloatArray:
        """Add the variance that remains in learnt values to predicted deviations (m, k)."""
        if not self._remaining.any():
            return std
        models = () if self._models is None else self._models()
        weighing = [i for i, model in enumerate(models) if model.weighs_errors]
        total = std.copy()
        n_shared = min(std.shape[1], len(self._remaining))
        own, units = std[:, :n_shared], self._units[:n_shared]
        remaining = self._remaining[:n_shared].copy()
        remaining[[i for i in weighing if i < n_shared]] = 0.0
        with np.errstate(over="ignore"):
            scaled = own / units
            noisy = np.sqrt(scaled * scaled + remaining) * units
        # Nothing is added to a deviation whose square is out of range: the rest is far smaller.
        total[:, :n_shared] = np.where((remaining > 0.0) & ~np.isinf(noisy), noisy, own)
        return total

    def _posterior_means(
        self, rows: FloatArray, values: FloatArray, errors: FloatArray
    ) -> FloatArray:
        """Return the values to learn, and update the averages of the variances that remain."""
        n_known = self._n_known
        denoised, gains, deviations = values, np.ones(values.shape), errors
        if n_known >= _N_TAKEN:
            mean, std = self._moments(rows, values.shape[1])
            # Without a prediction, the observation stays as it is.
            noisy = (errors > 0.0) & ~np.isnan(std)
            gains[noisy] = _gains(std[noisy], errors[noisy])
            denoised = np.where(noisy, mean + gains * (values - mean), values)
            # An observation of infinite error, or nearly, leaves the variance of the model.
            is_vast = noisy & (errors / _LARGEST_USUAL > std)
            deviations = np.where(is_vast, std, errors)
            gains[is_vast] = 1.0
        for i, (column, shares) in enumerate(zip(deviations.T, gains.T, strict=True)):
            known = np.isfinite(column) & np.isfinite(values[:, i])
            if self._remaining[i] == 0.0:
                self._units[i] = _unit_of(np.sqrt(shares[known]) * column[known])
            with np.errstate(over="ignore"):
                scaled = column[known] / self._units[i]
                counted = shares[known] * (scaled * scaled)
            counted = counted[np.isfinite(counted)]
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


def _gains(std: FloatArray, errors: FloatArray) -> FloatArray:
    """Return s**2 / (s**2 + e**2) for deviations s >= 0 and errors e > 0, both of shape (m,)."""
    gains = np.where(np.isinf(errors), 0.0, 1.0)
    finite = np.isfinite(errors) & np.isfinite(std)
    # Squares of ratios to a power of two near the larger one do not overflow.
    exponents = np.frexp(np.maximum(std, errors)[finite])[1]
    prior, noise = (np.square(np.ldexp(one[finite], -exponents)) for one in (std, errors))
    gains[finite] = prior / (prior + noise)
    return gains


def _unit_of(sizes: FloatArray) -> float:
    """Return a power of two, the squares of whose multiples are in range if those of sizes are not.

    It is 1 if some size is usual, so that results do not depend on it.
    """
    sizes = sizes[sizes > 0.0]
    usual = (sizes <= _LARGEST_USUAL) & (sizes >= 1.0 / _LARGEST_USUAL)
    if len(sizes) == 0 or usual.any():
        return 1.0
    return float(np.ldexp(1.0, int(np.frexp(sizes.max())[1]) - 1))
