"""Values that come with standard errors: an optimizer is told what is believed of them."""

from __future__ import annotations

import numpy as np

from mondrian_bo.array_types import BoolArray, FloatArray
from mondrian_bo.optimizer.optimizer import MondrianOptimizer

_N_TAKEN = 8
"""So many first values are taken as they are: too little is known to doubt them."""


class KnownNoise:
    """Weighs observations with known errors against what an optimizer's model expects.

    Where N(m, s**2) is expected, a value y with standard error e is believed to be
    m + k (y - m), with k = s**2 / (s**2 + e**2), and the variance k e**2 is left: the posterior
    of Gaussian observations, with the model's prediction as the prior. The optimizer learns the
    believed values. It knows nothing of the variance that is left, whose average is therefore
    added to its predictions here. Without errors nothing changes.

    Parameters
    ----------
    optimizer : MondrianOptimizer
        Who learns; it must be told through this object alone.
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

        Many at once are weighed in portions, each no larger than what is known before it.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Encoded points.
        values : float64 array of shape (m,)
            Their values; NaN for trials that failed.
        errors : float64 array of shape (m,)
            Their standard errors, in the same units; NaN where they are not known, which leaves
            it to the model to tell noise from signal.
        feasible : bool array of shape (m,)
            Which of them satisfy the constraints.
        """
        errors = np.where(np.isfinite(values), np.nan_to_num(errors, posinf=np.inf), 0.0)
        while len(rows):
            n_known = self.optimizer.n_trials
            n_next = len(rows)
            if errors.any():
                n_next = min(n_next, max(n_known, _N_TAKEN))
            believed = values[:n_next]
            if errors[:n_next].any() or self._remaining > 0.0:
                believed = self._believe(rows[:n_next], believed, errors[:n_next])
            self.optimizer.tell_rows(rows[:n_next], believed, feasible[:n_next])
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

    def _believe(self, rows: FloatArray, values: FloatArray, errors: FloatArray) -> FloatArray:
        n_known = self.optimizer.n_trials
        # Squares beyond the range of float64 are infinite, as errors may be.
        with np.errstate(over="ignore"):
            noise = errors * errors
        gains = np.ones(len(values))
        believed = values
        if n_known >= _N_TAKEN:
            mean, std = self.predict_rows(rows)
            prior = std * std
            noisy = noise > 0.0
            gains[noisy] = prior[noisy] / (prior[noisy] + noise[noisy])
            believed = np.where(noisy, mean + gains * (values - mean), values)
            left = np.where(np.isinf(noise), prior, gains * np.where(np.isinf(noise), 0.0, noise))
        else:
            left = noise
        left = left[np.isfinite(left) & np.isfinite(values)]
        if len(left):
            total = self._remaining * n_known + float(left.sum())
            self._remaining = total / (n_known + len(left))
        return believed
