"""A fine scale of values for objectives with a cliff, and when it is used.

Where some values are worse than the others by orders of magnitude, all good values are nearly equal
on the scale of :class:`OutcomeTransform`. Often this does no harm: a smooth function is predicted
from its large differences. Where it falls off a cliff, the large differences say nothing of the
small ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mondrian_bo.optimizer.models.outcome_transform import OutcomeTransform
from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.shared.float_range import SHRINK
from mondrian_bo.surrogates.base import ComparingSurrogate

_GOOD = 0.05
"""Share of the trials within the unit of the fine scale of the best one, our choice."""

_JUMP = math.log(10.0)
"""Width on the fine scale, without any value in it, from which on it counts as the height of a
cliff: our choice."""

_BAD_SLOPE = 0.1
"""Factor of the slope of the fine scale for bad values where there is a cliff, our choice. With the
full slope the height of the cliff takes most of the range, and the process shuns the whole
neighbourhood of it."""

_HEAVY = 30.0
"""Interquartile range of the values in units of the fine scale, from which on it is considered: our
choice. With less the two scales differ little."""

_FEWEST = 30
"""Smallest number of trials that decide between the scales: the order of the better half of fewer
ones says little; our choice."""

_GROWTH = 1.5
"""Factor of the number of trials between two decisions, our choice: they take about a twentieth of
the time of all suggestions."""

_MOST = 64
"""Largest number of trials that a decision rests on, our choice: half of them are the best, and
others are evenly spaced in the order of the values. It bounds the time."""

_GAIN = 0.2
"""Gain in rank correlation from which on the fine scale is used, our choice. It is used as long as
there is a gain, so that the scale does not change with each decision."""

_LIKELIER = 0.4
"""Gain of the mean log density of left-out values from which on the fine scale is used: our choice.
Later any gain is enough, as for the rank correlation."""

_LARGER = 10.0
"""Largest factor of errors on the fine scale, in standard deviations of all values: with more of it
the function has no cliff, and is predicted from its large differences; our choice."""

_LEAST_ERROR = 1e-9
"""Errors below it, in standard deviations, count as equal to it: they are rounding errors."""


class FineTransform:
    """The logarithm of the gap to the best value plus a unit, standardised.

    The unit is the gap to the best value within which a twentieth of the values lie, so that they
    differ about linearly. Values better than all fitted ones continue the curve symmetrically, and
    infinity counts as the best fitted one.

    Values may have a cliff: an interval on this scale that is wider than a decade and has no
    values, as between valid settings and those with a penalty. Then the slope is smaller for the
    worse half of the values, and for all values beyond the cliff: that a value is bad counts there
    more than how bad it is.

    Parameters
    ----------
    values : float64 array of shape (n,)
        Values to fit to; larger is better. Minus infinity counts as the worst finite value.
    bad_slope : float, default=0.1
        Factor of the slope for bad values where there is a cliff, in (0, 1].

    Attributes
    ----------
    unit : float
        The unit, in values; 0 if a twentieth of the values are equal to the best one, or if one is
        infinite. There is no fine scale then.
    """

    def __init__(self, values: FloatArray, bad_slope: float = _BAD_SLOPE) -> None:
        self._bad_slope = bad_slope
        finite = values[np.isfinite(values)] * SHRINK
        self.unit, self._unit = 0.0, 0.0
        if len(finite) == 0 or values.max() == np.inf:
            return
        self._best = float(finite.max())
        gaps = self._best - finite
        self._widest = float(gaps.max())
        self._unit = float(np.quantile(gaps, _GOOD))
        self.unit = self._unit / SHRINK
        if self._unit > 0.0:
            self._bend = _bend(self._in_units(np.sort(gaps)))
            logs = self._logs(values)
            self._mean, self._std = float(logs.mean()), float(logs.std())

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the transformed values."""
        return np.asarray((self._logs(values) - self._mean) / self._std)

    def log_slopes(self, values: FloatArray) -> FloatArray:
        """Return the logarithms of the derivatives at values."""
        gaps = np.abs(self._gaps(values))
        factors = np.where(self._in_units(gaps) > self._bend, self._bad_slope, 1.0)
        units = np.log(gaps + self._unit)
        return np.asarray(math.log(SHRINK) + np.log(factors) - units - math.log(self._std))

    def inverse(self, transformed: FloatArray) -> FloatArray:
        """Return the values of transformed ones.

        Results are clipped to the range of the fitted values, extended by its width on both sides,
        as those of :class:`OutcomeTransform` are.
        """
        bent = transformed * self._std + self._mean
        beyond = np.maximum(np.abs(bent) - self._bend, 0.0)
        logs = bent + np.copysign(beyond / self._bad_slope - beyond, bent)
        with np.errstate(over="ignore"):
            gaps = -np.copysign(self._unit * np.expm1(np.abs(logs)), logs)
            gaps = np.clip(gaps, -self._widest, 2.0 * self._widest)
            values = (self._best - gaps) / SHRINK
        largest = np.finfo(np.float64).max
        return np.asarray(np.clip(values, -largest, largest))

    def _gaps(self, values: FloatArray) -> FloatArray:
        """Return gaps to the best value, negative for better ones."""
        gaps = np.minimum(self._best - values * SHRINK, self._widest)
        return np.where(np.isposinf(values), 0.0, gaps)

    def _logs(self, values: FloatArray) -> FloatArray:
        """Return the negative logarithms of 1 plus gaps in units, with the slope of bad values."""
        gaps = self._gaps(values)
        logs = self._in_units(np.abs(gaps))
        beyond = np.maximum(logs - self._bend, 0.0)
        return np.asarray(-np.copysign(logs - beyond + self._bad_slope * beyond, gaps))

    def _in_units(self, gaps: FloatArray) -> FloatArray:
        """Return the logarithms of 1 plus gaps in units: the ratio itself might overflow."""
        return np.asarray(np.log(gaps + self._unit) - math.log(self._unit))


def _bend(logs: FloatArray) -> float:
    """Return where bad values begin, of ascending logarithms; infinity if there is no cliff.

    They begin at the median, or at the cliff if that comes before it.
    """
    widths = np.diff(logs)
    place = int(np.argmax(widths))
    return float(min(logs[place], np.median(logs))) if widths[place] > _JUMP else math.inf


class ScaleChoice:
    """The choice between the usual scale of values and the fine one.

    It is made for values with heavy tails only. On both scales a Gaussian process predicts each
    value of some trials from the others. The fine scale is chosen if the values have a larger
    density under its predictions, if these order the better half of the trials better, and if their
    errors are not much larger. The fine scale has its full slope in the comparison: how bad values
    are is a part of what is predicted.
    """

    def __init__(self) -> None:
        self._is_fine = False
        self._n_decided = 0

    def fine_transform(
        self,
        rows: FloatArray,
        values: FloatArray,
        usual: OutcomeTransform,
        surrogate: ComparingSurrogate,
    ) -> FineTransform | None:
        """Return the fine scale, or None where the usual one is better.

        Parameters
        ----------
        rows : float64 array of shape (n, d)
            All trials.
        values : float64 array of shape (n,)
            Their values.
        usual : OutcomeTransform
            The usual transform of the values.
        surrogate : ComparingSurrogate
            Predicts left-out values.
        """
        n_trials = len(values)
        is_due = n_trials >= max(_GROWTH * self._n_decided, _FEWEST)
        if not is_due and not self._is_fine:
            return None
        fine = FineTransform(values)
        if is_due:
            self._n_decided = n_trials
            straight = FineTransform(values, bad_slope=1.0)
            self._is_fine = self._decide(rows, values, usual, straight, surrogate)
        return fine if self._is_fine and fine.unit > 0.0 else None

    def _decide(
        self,
        rows: FloatArray,
        values: FloatArray,
        usual: OutcomeTransform,
        fine: FineTransform,
        surrogate: ComparingSurrogate,
    ) -> bool:
        """Return whether the fine scale is the better one."""
        if fine.unit == 0.0:
            return False
        lower, upper = np.percentile(values[np.isfinite(values)] * SHRINK, (25.0, 75.0))
        if upper - lower < _HEAVY * SHRINK * fine.unit:
            return False
        order = _chosen(values)
        better = values[order[: len(order) // 2]]
        if len(np.unique(better)) < len(better):
            return False  # a function with steps has no finer differences
        scales: tuple[OutcomeTransform | FineTransform, ...] = (usual, fine)
        least_gain, least_density = (0.0, 0.0) if self._is_fine else (_GAIN, _LIKELIER)
        qualities = []
        for scale in scales:
            qualities.append(_quality(scale, rows[order], values[order], surrogate))
            if qualities[0].agreement + least_gain >= 1.0:
                return False  # the usual scale leaves no room for a gain
        first, other = qualities
        return (
            other.density - first.density > least_density
            and other.agreement - first.agreement > least_gain
            and other.error - first.error < math.log(_LARGER)
        )


class _Quality(NamedTuple):
    """How well each value is predicted from the others on a scale.

    Attributes
    ----------
    density : float
        The mean log density of the values, up to a constant.
    agreement : float
        The rank correlation (Kendall's tau) of predictions and values of the better half.
    error : float
        The mean log error of the better half, in standard deviations of all values on the scale.
    """

    density: float
    agreement: float
    error: float


def _quality(
    scale: OutcomeTransform | FineTransform,
    rows: FloatArray,
    values: FloatArray,
    surrogate: ComparingSurrogate,
) -> _Quality:
    """Return how well values are predicted on a scale.

    Parameters
    ----------
    scale : OutcomeTransform or FineTransform
        The scale.
    rows : float64 array of shape (n, d)
        Trials.
    values : float64 array of shape (n,)
        Their values, in descending order.
    surrogate : ComparingSurrogate
        Predicts left-out values.
    """
    transformed = scale(values)
    std = float(transformed.std())
    if std == 0.0:
        return _Quality(math.inf, 1.0, 0.0)
    targets = (transformed - transformed.mean()) / std
    means, stds = surrogate.left_out(rows, targets)
    standardised = (targets - means) / stds
    # The density of values is that of the targets times the slope of these.
    logs = scale.log_slopes(values) - math.log(std) - np.log(stds) - 0.5 * standardised**2
    half = len(values) // 2
    errors = np.abs(targets[:half] - means[:half])
    return _Quality(
        float(logs.mean()),
        _rank_correlation(means[:half], values[:half]),
        float(np.mean(np.log(errors + _LEAST_ERROR))),
    )


def _chosen(values: FloatArray) -> IntArray:
    """Return the indices of the trials that a decision rests on, in descending order of values."""
    order = np.argsort(-values, kind="stable")
    if len(order) <= _MOST:
        return np.asarray(order)
    n_best = _MOST // 2
    places = np.linspace(n_best, len(order) - 1, _MOST - n_best).astype(np.int64)
    return np.concatenate([order[:n_best], order[places]])


def _rank_correlation(one: FloatArray, other: FloatArray) -> float:
    """Return Kendall's tau, the mean over all pairs of the product of the signs of differences."""
    first, second = np.triu_indices(len(one), 1)
    signs = np.sign(one[first] - one[second]) * np.sign(other[first] - other[second])
    return float(signs.mean())
