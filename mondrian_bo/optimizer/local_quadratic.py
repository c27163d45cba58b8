"""A quadratic model of the trials nearest to the incumbent, and Thompson sampling from it.

A forest of constants has no slope: within a leaf it does not tell in which direction to go. A
quadratic has slopes and curvatures, but it holds only near the incumbent. The model is ridge
regression, a Bayesian linear model with one prior variance for all coefficients. A quadratic
without products of parameters has fewer coefficients. It is used where it predicts left-out trials
better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.array_types import BoolArray, FloatArray, IntArray

FEWEST_TRIALS = 8
"""Smallest number of trials that a quadratic is fitted to, our choice."""

_TRIALS_PER_COEFFICIENT = 2
"""Number of nearest trials for each coefficient, our choice: fewer leave the noise to the ridge,
more reach further than the quadratic holds."""

_MOST_FULL = 10
"""Most numeric parameters with products of pairs, our choice: a fit takes O(d^6)."""

_MOST_CHOICES = 12
"""Most choices, among the nearest trials, of a categorical parameter that has coefficients."""

_DECAY = 2.0
"""Weights of trials fall from 1 for the best of the nearest to exp(-2) for the worst."""

_RIDGES = 10.0 ** np.linspace(-6.0, 2.0, 17)
"""Ratios of the noise variance to the prior variance among which the evidence chooses."""

_LEAST_NOISE = 1e-12
"""Smallest noise variance, in units of the variance of the targets: above rounding errors."""

_LEAST_FREEDOM = 1e-9
"""Smallest share of a target that the others determine: above rounding errors."""

LEAST_CORRELATION = 0.5
"""Smallest rank correlation of targets and their leave-one-out predictions with which the quadratic
is used, our choice."""

_BOX = 0.6
"""Half sides of the box where the quadratic holds, in distances within which 80 % of the nearest
trials lie; up to four times as much if predictions are poor."""

_SWEEPS = 10
"""Rounds of coordinate ascent: more than a draw's precision needs."""

_OUTSIDE = 1e3
"""Penalty of the score for each unit of distance outside the box, in sums of coefficients."""


class RidgeFit(NamedTuple):
    """The posterior of the coefficients of a ridge regression, a normal distribution.

    Attributes
    ----------
    mean : float64 array of shape (p,)
        Its mean.
    factor : float64 array of shape (p, p)
        A matrix whose product with its transpose is the covariance.
    left_out : float64 array of shape (n,)
        Predictions of the targets, each given all others.
    """

    mean: FloatArray
    factor: FloatArray
    left_out: FloatArray


@dataclass(frozen=True)
class DrawnQuadratic:
    """A quadratic function of the numeric columns, plus a level for each choice, within a box.

    Attributes
    ----------
    centre : float64 array of shape (d,)
        The incumbent.
    numeric : int array of shape (k,)
        Columns of the quadratic.
    scales : float64 array of shape (k,)
        Units of these columns.
    slopes : float64 array of shape (k,)
        Coefficients of the columns.
    curvatures : float64 array of shape (k, k)
        Symmetric matrix of the coefficients of products.
    levels : dict of int to dict of float to float
        For each categorical column the choices that were seen, with their coefficients.
    low, high : float64 arrays of shape (k,)
        Ends of the box in units from the centre.
    """

    centre: FloatArray
    numeric: IntArray
    scales: FloatArray
    slopes: FloatArray
    curvatures: FloatArray
    levels: dict[int, dict[float, float]]
    low: FloatArray
    high: FloatArray

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return scores of rows, shape (m,): the values, less a penalty outside of the box."""
        units = self._units(rows)
        values = units @ self.slopes + ((units @ self.curvatures) * units).sum(axis=1)
        outside = np.maximum(units - self.high, self.low - units).clip(0.0).sum(axis=1)
        outside += (np.isnan(rows) != np.isnan(self.centre)).sum(axis=1)
        for j, levels in self.levels.items():
            level = np.full(len(rows), np.nan)
            for choice, value in levels.items():
                level[rows[:, j] == choice] = value
            unseen = np.isnan(level)
            values += np.where(unseen, 0.0, level)
            outside += unseen
        size = np.abs(self.slopes).sum() + np.abs(self.curvatures).sum()
        return np.asarray(values - _OUTSIDE * (1.0 + size) * outside)

    def climb(self, rows: FloatArray) -> FloatArray:
        """Return rows after coordinate ascent within the box: a copy of `rows`, (m, d)."""
        units = np.clip(self._units(rows), self.low, self.high)
        _ascend(units, self.slopes, self.curvatures, self.low, self.high)
        moved = rows.copy()
        kept = np.isnan(rows[:, self.numeric])
        ends = self.centre[self.numeric] + self.scales * units
        moved[:, self.numeric] = np.where(kept, np.nan, ends)
        return moved

    def _units(self, rows: FloatArray) -> FloatArray:
        units = (rows[:, self.numeric] - self.centre[self.numeric]) / self.scales
        return np.nan_to_num(units, nan=0.0)


@njit(cache=True, nogil=True)
def _ascend(units, slopes, curvatures, low, high):  # type: ignore[no-untyped-def]
    """Move each row of `units` to the best place along each coordinate in turn, in sweeps."""
    for i in range(units.shape[0]):
        for _ in range(_SWEEPS):
            for j in range(units.shape[1]):
                bend = 2.0 * curvatures[j, j]
                slope = slopes[j]
                for k in range(units.shape[1]):
                    if k != j:
                        slope += 2.0 * curvatures[j, k] * units[i, k]
                if bend < 0.0:
                    units[i, j] = min(max(-slope / bend, low[j]), high[j])
                else:
                    gain = (slope + 0.5 * bend * (low[j] + high[j])) * (high[j] - low[j])
                    units[i, j] = high[j] if gain > 0.0 else low[j]


def draw_quadratic(
    rows: FloatArray,
    targets: FloatArray,
    centre: FloatArray,
    is_categorical: BoolArray,
    rng: np.random.Generator,
) -> DrawnQuadratic | None:
    """Fit a quadratic to the trials nearest to the centre and draw from its posterior.

    Parameters
    ----------
    rows : float64 array of shape (n, d)
        Trials; NaN at inactive parameters.
    targets : float64 array of shape (n,)
        Their transformed values; finite, larger is better.
    centre : float64 array of shape (d,)
        The incumbent: one of the rows.
    is_categorical : bool array of shape (d,)
        Which columns hold categories.
    rng : numpy.random.Generator
        Source of the draw.

    Returns
    -------
    DrawnQuadratic or None
        None if there are too few trials, or predictions of left-out ones are poor.
    """
    if len(targets) < FEWEST_TRIALS:
        return None
    active = ~np.isnan(centre)
    numeric = np.flatnonzero(active & ~is_categorical)
    gaps = _distances(rows, centre, is_categorical)
    order = np.argsort((gaps**2).sum(axis=1), kind="stable")
    is_full = len(numeric) <= _MOST_FULL
    n_coefficients = 1 + 2 * len(numeric) + is_full * len(numeric) * (len(numeric) - 1) // 2
    n_coefficients += int((active & is_categorical).sum())
    near = order[: max(_TRIALS_PER_COEFFICIENT * n_coefficients, FEWEST_TRIALS)]
    rows, targets, gaps = rows[near], targets[near], gaps[near]
    scales = np.sqrt((gaps[:, numeric] ** 2).mean(axis=0))
    numeric, scales = numeric[scales > 0.0], scales[scales > 0.0]
    choices = {
        int(j): np.unique(rows[:, j][~np.isnan(rows[:, j])])
        for j in np.flatnonzero(active & is_categorical)
    }
    units = np.nan_to_num((rows[:, numeric] - centre[numeric]) / scales, nan=0.0)
    alone = np.arange(len(numeric))
    pairs = np.triu_indices(len(numeric)) if is_full else (alone, alone)
    columns = [units, units[:, pairs[0]] * units[:, pairs[1]]]
    for j, found in choices.items():
        if 1 < len(found) <= _MOST_CHOICES:
            columns.append((rows[:, [j]] == found).astype(np.float64))
    features = np.concatenate(columns, axis=1)
    k, n_pairs = len(numeric), len(pairs[0])
    is_product = np.zeros(features.shape[1], dtype=bool)
    is_product[k : k + n_pairs] = pairs[0] != pairs[1]
    found_fit, correlation = _best_fit(features, is_product, targets)
    if found_fit is None or correlation < LEAST_CORRELATION:
        return None
    fit, used = found_fit
    drawn = np.zeros(features.shape[1])
    drawn[used] = fit.mean + fit.factor @ rng.standard_normal(len(fit.mean))
    curvatures = np.zeros((k, k))
    curvatures[pairs] = drawn[k : k + n_pairs]
    start, levels = k + n_pairs, {}
    for j, found in choices.items():
        if 1 < len(found) <= _MOST_CHOICES:
            some = drawn[start : start + len(found)]
            start += len(found)
            levels[j] = dict(zip(found.tolist(), some.tolist(), strict=True))
        else:
            levels[j] = {float(centre[j]): 0.0}
    half = _BOX * (1.0 + 3.0 * (1.0 - correlation)) * np.quantile(gaps[:, numeric], 0.8, axis=0)
    # Ends of the box lie in the unit cube.
    low = np.maximum(-half, np.minimum(-centre[numeric], 0.0)) / scales
    high = np.minimum(half, np.maximum(1.0 - centre[numeric], 0.0)) / scales
    return DrawnQuadratic(
        centre, numeric, scales, drawn[:k], 0.5 * (curvatures + curvatures.T), levels, low, high
    )


def _distances(rows: FloatArray, centre: FloatArray, is_categorical: BoolArray) -> FloatArray:
    """Return the distances of columns from the centre: 1 between choices, and to an absence."""
    gaps = np.abs(rows - centre)
    gaps[:, is_categorical] = gaps[:, is_categorical] > 0.0
    absent, centre_absent = np.isnan(rows), np.isnan(centre)
    return np.where(absent & centre_absent, 0.0, np.where(absent | centre_absent, 1.0, gaps))


def _best_fit(
    features: FloatArray, is_product: BoolArray, targets: FloatArray
) -> tuple[tuple[RidgeFit, IntArray] | None, float]:
    """Fit with and without products, and return the fit that predicts left-out ranks best.

    Each is fitted to the targets and to their normal scores. The fit comes with the columns of the
    features that it uses, and with the rank correlation of its predictions.
    """
    n = len(targets)
    ranks = _ranks(targets)
    weights = np.exp(-_DECAY * (n - 1 - ranks) / n)
    scaled = [
        some / some.std() for some in (targets, _normal_scores(ranks, n)) if some.max() > some.min()
    ]
    best, best_correlation = None, -1.0
    for used in [np.arange(len(is_product)), np.flatnonzero(~is_product)][: 1 + is_product.any()]:
        regression = RidgeRegression(features[:, used], weights)
        for some in scaled:
            fit = regression.fit(some)
            correlation = _correlation(_ranks(fit.left_out), ranks)
            if correlation > best_correlation:
                best, best_correlation = (fit, used), correlation
    return best, best_correlation


class RidgeRegression:
    """Weighted Bayesian linear regression with an intercept and one prior variance.

    The noise variance of a target is in inverse proportion to its weight, the intercept has a flat
    prior, and the other coefficients have one prior variance. It maximises the evidence, as does
    the noise variance.

    Parameters
    ----------
    features : float64 array of shape (n, p)
        Features without the intercept.
    weights : float64 array of shape (n,)
        Positive weights; only their ratios matter.
    """

    def __init__(self, features: FloatArray, weights: FloatArray) -> None:
        self._weights = weights / weights.sum()
        self._roots = np.sqrt(self._weights)
        centred = (features - self._weights @ features) * self._roots[:, None]
        values, self._vectors = np.linalg.eigh(centred.T @ centred)
        self._values = np.maximum(values, 0.0)
        self._rotated = centred @ self._vectors

    def fit(self, targets: FloatArray) -> RidgeFit:
        """Return the posterior given targets of shape (n,)."""
        n = len(targets)
        weighted = (targets - self._weights @ targets) * self._roots
        projected = self._rotated.T @ weighted
        total = weighted @ weighted
        # The ratios are those of a target of average weight, 1 / n.
        explained = (projected**2 / (self._values + _RIDGES[:, None] / n)).sum(axis=1)
        noise = np.maximum(total - explained, _LEAST_NOISE * total)
        determinants = np.log1p(n * self._values / _RIDGES[:, None]).sum(axis=1)
        chosen = int(np.argmin((n - 1) * np.log(noise) + determinants))
        precisions = self._values + _RIDGES[chosen] / n
        leverages = (self._rotated**2 / precisions).sum(axis=1) + self._weights
        errors = (weighted - self._rotated @ (projected / precisions)) / self._roots
        return RidgeFit(
            self._vectors @ (projected / precisions),
            np.sqrt(noise[chosen] / (n - 1)) * self._vectors / np.sqrt(precisions),
            targets - errors / np.maximum(1.0 - leverages, _LEAST_FREEDOM),
        )


def _ranks(values: FloatArray) -> FloatArray:
    """Return the ranks of values, from 0; equal ones share their mean."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - 0.5 * (counts + 1))[which])


def _normal_scores(ranks: FloatArray, n: int) -> FloatArray:
    # Loaded here: a sampler is constructed without scipy.
    from scipy.special import ndtri

    return np.asarray(ndtri((ranks + 0.5) / n))


def _correlation(one: FloatArray, other: FloatArray) -> float:
    """Return the correlation of two arrays, 0 if one is constant."""
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size > 0.0 else 0.0
