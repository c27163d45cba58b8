"""The transform of a constraint's values: the sign stays, and outliers are compressed."""

from __future__ import annotations

import math

import numpy as np

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.shared.float_range import SHRINK, TINY

_LINEAR = 100.0
"""Margin, in median sizes, up to which the transform is linear, our choice: it then only compresses
what differs by orders of magnitude. A linear constraint stays linear, which a surrogate learns from
few trials, so that suggestions next to it hold it."""

_LINEAR_IF_HEAVY = 1.0
"""The same for margins with heavy tails, our choice: from the median on, orders of magnitude
count."""

_HEAVY = 1.0 / 3.0
"""Gain of the mean log-likelihood of margins as Gaussians, by the compression of heavy tails, from
which on it is used. Linear and quadratic constraints rarely gain as much, and an exponential one
gains several times as much; our choice."""

_FIRST = 10
"""Number of first trials that decide it, our choice. Later ones gather around the bound, and any
constraint then has heavy tails."""

_FEWEST_EQUAL = 2
"""Number of equal values on one side of the bound, other than 0, from which they count as a mere
"satisfied" or "violated": two measurements are rarely equal."""


class ConstraintTransform:
    """A monotone map of margins to a scale that a surrogate models well.

    A margin is positive where the constraint holds with room, and negative where it is violated.
    Margins are divided by their median size. Sizes v above c become ``c (1 + log(v / c))``, which
    continues the identity with the same slope. All are then standardised. Infinite margins count as
    twice the largest finite one. The constant c is 100, or 1 if the first margins have heavy tails:
    their likelihood as Gaussians decides (Box and Cox (1964), An analysis of transformations).

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

    Notes
    -----
    Eriksson and Poloczek (2021), Scalable constrained Bayesian optimization, section 3.3, compress
    the margins of every constraint, by ``sign(v) log(1 + |v|)``. That bends a linear constraint,
    most of all at 0, and about half of the suggestions next to it then violate it.
    """

    def __init__(self, margins: FloatArray) -> None:
        finite = SHRINK * np.abs(margins[np.isfinite(margins)])
        sizes = finite[finite > 0.0]
        self._size = float(np.median(sizes)) if len(sizes) else 1.0
        self._largest = 2.0 * float(finite.max(initial=self._size))
        is_heavy = _has_heavy_tails(self._scaled(margins[:_FIRST]))
        self._linear = _LINEAR_IF_HEAVY if is_heavy else _LINEAR
        self._satisfied: float | None = None
        self._violated: float | None = None
        values = _compressed(self._scaled(margins), self._linear)
        holds = margins >= 0.0
        is_step = _is_step(margins[holds], margins[~holds])
        was_step = _is_step(margins[~holds], margins[holds])
        if is_step:
            self._satisfied = 1.0 if was_step else -float(np.median(values[~holds]))
        if was_step:
            self._violated = -1.0 if is_step else -float(np.median(values[holds]))
        values = self._steps(margins, values)
        self._mean, self._std = float(values.mean()), float(values.std())
        if self._std > 0.0:
            self.threshold = -self._mean / self._std
        else:
            # All margins are equal: one deviation of the prior on their side of the bound.
            self.threshold = -1.0 if holds[0] else 1.0

    def __call__(self, margins: FloatArray) -> FloatArray:
        """Return transformed margins, shape (m,)."""
        if self._std == 0.0:
            return np.zeros(len(margins))
        compressed = _compressed(self._scaled(margins), self._linear)
        return np.asarray((self._steps(margins, compressed) - self._mean) / self._std)

    def log_slopes(self, margins: FloatArray) -> FloatArray:
        """Return the logarithms of the derivatives at margins, shape (m,).

        Steps are taken as linear, and margins clipped to the largest have its slope. The slope is 0
        if all fitted margins are equal.
        """
        if self._std == 0.0:
            return np.full(len(margins), -np.inf)
        sizes = np.maximum(np.abs(self._scaled(margins)), self._linear)
        slopes = math.log(SHRINK) - math.log(self._size) - math.log(self._std)
        return np.asarray(slopes - np.log(sizes / self._linear))

    def inverse(self, transformed: FloatArray) -> FloatArray:
        """Return the margins of transformed ones; at most twice the largest that was fitted."""
        values = self._mean + self._std * np.asarray(transformed)
        sizes, linear = np.abs(values), self._linear
        with np.errstate(over="ignore"):
            large = linear * np.exp(np.maximum(sizes / linear - 1.0, 0.0))
            sizes = np.minimum(self._size * np.where(sizes > linear, large, sizes), self._largest)
        largest = np.finfo(np.float64).max
        return np.asarray(np.sign(values) * np.minimum(sizes, SHRINK * largest) / SHRINK)

    def _scaled(self, margins: FloatArray) -> FloatArray:
        """Return margins in median sizes."""
        sizes = np.minimum(SHRINK * np.abs(margins), self._largest)
        with np.errstate(over="ignore"):
            scaled = np.minimum(sizes / self._size, np.finfo(np.float64).max)
        return np.asarray(np.sign(margins) * scaled)

    def _steps(self, margins: FloatArray, compressed: FloatArray) -> FloatArray:
        """Return compressed margins, those of a side without sizes replaced by its step."""
        if self._satisfied is not None:
            compressed = np.where(margins >= 0.0, self._satisfied, compressed)
        if self._violated is not None:
            compressed = np.where(margins < 0.0, self._violated, compressed)
        return compressed


def _compressed(scaled: FloatArray, linear: float) -> FloatArray:
    """Return margins, in median sizes, that are linear up to a size and logarithmic beyond."""
    sizes = np.abs(scaled)
    large = linear * (1.0 + np.log(np.maximum(sizes, linear) / linear))
    return np.asarray(np.sign(scaled) * np.where(sizes > linear, large, sizes))


def _has_heavy_tails(margins: FloatArray) -> bool:
    """Whether margins, in any unit, are far more likely to be Gaussian with compressed tails."""
    sizes = np.abs(margins)
    with np.errstate(over="ignore"):
        scaled = margins / np.median(sizes[sizes > 0.0]) if sizes.any() else margins
    scaled = np.clip(scaled, -np.finfo(np.float64).max, np.finfo(np.float64).max)
    heavy, light = (_log_likelihood(scaled, one) for one in (_LINEAR_IF_HEAVY, _LINEAR))
    return heavy - light > _HEAVY


def _log_likelihood(scaled: FloatArray, linear: float) -> float:
    """Return the largest mean log-likelihood of margins that are Gaussian once compressed."""
    variance = max(float(_compressed(scaled, linear).var()), TINY)
    slopes = np.maximum(np.abs(scaled), linear) / linear
    return -0.5 * math.log(variance) - float(np.log(slopes).mean())


def _is_step(side: FloatArray, other: FloatArray) -> bool:
    """Whether the margins of one side of the bound are equal and there are some on the other."""
    if len(side) == 0 or len(other) == 0 or (side != side[0]).any():
        return False
    return bool(side[0] == 0.0) or len(side) >= _FEWEST_EQUAL
