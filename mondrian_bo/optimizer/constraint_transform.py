"""The transform of a constraint's values: the sign stays, and large values are compressed."""

from __future__ import annotations

import numpy as np

from mondrian_bo.array_types import FloatArray

_SHRINK = 0.25
"""Factor of all values, a power of two: it is exact and makes all differences finite."""

_FEWEST_EQUAL = 2
"""Number of equal values on one side of the bound, other than 0, from which they count as a mere
"satisfied" or "violated": two measurements are rarely equal."""


class ConstraintTransform:
    """A monotone map of margins to a scale that a surrogate models well.

    A margin is positive where the constraint holds with room, and negative where it is violated.
    Margins are divided by their median size, and compressed by the bilog function
    ``sign(v) log(1 + |v|)``: the change at 0, which decides, is resolved best. They are then
    standardised. Infinite margins count as twice the largest finite one.

    Some constraints tell no more than "satisfied" or "violated" on one side or on both, such as
    ``max(0, violation)``. All margins of that side are then equal. They are put as far from 0 as
    the median margin of the other side, so that the surrogate sees a step.

    Parameters
    ----------
    margins : float64 array of shape (n,)
        Margins to fit to, n >= 1; infinities are allowed, NaN is not.

    Attributes
    ----------
    threshold : float
        The bound on the transformed scale: a point is feasible where the transformed margin is at
        least this.

    References
    ----------
    Eriksson and Poloczek (2021), Scalable constrained Bayesian optimization, section 3.3 (bilog).
    """

    def __init__(self, margins: FloatArray) -> None:
        finite = _SHRINK * np.abs(margins[np.isfinite(margins)])
        sizes = finite[finite > 0.0]
        self._size = float(np.median(sizes)) if len(sizes) else 1.0
        self._largest = 2.0 * float(finite.max(initial=self._size))
        self._satisfied: float | None = None
        self._violated: float | None = None
        logs = self._bilog(margins)
        holds = margins >= 0.0
        is_step = _is_step(margins[holds], margins[~holds])
        was_step = _is_step(margins[~holds], margins[holds])
        if is_step:
            self._satisfied = 1.0 if was_step else -float(np.median(logs[~holds]))
        if was_step:
            self._violated = -1.0 if is_step else -float(np.median(logs[holds]))
        logs = self._steps(margins, logs)
        self._mean, self._std = float(logs.mean()), float(logs.std())
        if self._std > 0.0:
            self.threshold = -self._mean / self._std
        else:
            # All margins are equal: one deviation of the prior on their side of the bound.
            self.threshold = -1.0 if holds[0] else 1.0

    def __call__(self, margins: FloatArray) -> FloatArray:
        """Return transformed margins, shape (m,)."""
        if self._std == 0.0:
            return np.zeros(len(margins))
        return np.asarray((self._steps(margins, self._bilog(margins)) - self._mean) / self._std)

    def inverse(self, transformed: FloatArray) -> FloatArray:
        """Return the margins of transformed ones; at most twice the largest that was fitted."""
        logs = self._mean + self._std * np.asarray(transformed)
        with np.errstate(over="ignore"):
            sizes = np.minimum(self._size * np.expm1(np.abs(logs)), self._largest)
        largest = np.finfo(np.float64).max
        return np.asarray(np.sign(logs) * np.minimum(sizes, _SHRINK * largest) / _SHRINK)

    def _bilog(self, margins: FloatArray) -> FloatArray:
        sizes = np.minimum(_SHRINK * np.abs(margins), self._largest)
        with np.errstate(over="ignore"):
            scaled = np.minimum(sizes / self._size, np.finfo(np.float64).max)
        return np.asarray(np.sign(margins) * np.log1p(scaled))

    def _steps(self, margins: FloatArray, logs: FloatArray) -> FloatArray:
        """Return bilogs, those of a side without sizes replaced by its step."""
        if self._satisfied is not None:
            logs = np.where(margins >= 0.0, self._satisfied, logs)
        if self._violated is not None:
            logs = np.where(margins < 0.0, self._violated, logs)
        return logs


def _is_step(side: FloatArray, other: FloatArray) -> bool:
    """Whether the margins of one side of the bound are equal and there are some on the other."""
    if len(side) == 0 or len(other) == 0 or (side != side[0]).any():
        return False
    return bool(side[0] == 0.0) or len(side) >= _FEWEST_EQUAL
