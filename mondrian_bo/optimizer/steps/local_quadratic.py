"""A quadratic model of the trials nearest to the incumbent, and Thompson sampling from it.

A forest of constants has no slope: within a leaf it does not tell in which direction to go. A
quadratic has slopes and curvatures, but it holds only near the incumbent. The model is ridge
regression, a Bayesian linear model with one prior variance for all coefficients. A quadratic
without products of parameters has fewer coefficients. It is used where it predicts left-out trials
better, and where trials are few. The scale of the values on which left-out trials are predicted
best is chosen in the same way: their own, that of the surrogate, or that of their normal scores.

In a narrow valley that is oblique to the axes, the nearest trials say nothing of the direction
along it. The quadratic is therefore fitted again, to the trials that are nearest in other units:
those of its curvatures, and those of the principal axes of the best trials. The fit that predicts
left-out trials best is used. With principal axes this is a form of the metric that CMA-ES learns
(Hansen and Ostermeier (2001), Completely derandomized self-adaptation in evolution strategies).
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from mondrian_bo.optimizer.steps.drawn_quadratic import DrawnQuadratic
from mondrian_bo.optimizer.steps.ridge_regression import RidgeFit, RidgeRegression, ranks_of
from mondrian_bo.search_space.space import row_gaps
from mondrian_bo.shared.array_types import BoolArray, FloatArray, IntArray
from mondrian_bo.shared.float_range import TINY

FEWEST_TRIALS = 8
"""Smallest number of trials that a quadratic is fitted to, our choice."""

_TRIALS_PER_COEFFICIENT = 2
"""Number of nearest trials for each coefficient, our choice: fewer leave the noise to the ridge,
more reach further than the quadratic holds."""

_MOST_FULL = 10
"""Most numeric parameters with products of pairs, our choice: a fit takes O(d^6)."""

_MOST_CHOICES = 12
"""Most choices, among the nearest trials, of a categorical parameter that has coefficients."""

_TRIALS_FOR_PRODUCTS = 1.5
"""Number of trials for each coefficient, those of products among them, from which on products of
parameters have coefficients: our choice, most of the time of a fit is spent on them."""

_DECAY = 2.0
"""Weights of trials fall from 1 for the best of the nearest to exp(-2) for the worst."""

LEAST_CORRELATION = 0.5
"""Smallest rank correlation (Spearman's) of targets and their leave-one-out predictions with which
the quadratic is used, our choice."""

_NEARLY_EXACT = 0.9
"""The same for a search of few trials, our choice: a process explores better than a quadratic that
predicts less well."""

_PROMISING = 0.8
"""Smallest rank correlation along the axes with which a search of few trials tries other
directions, our choice: they take two thirds of the time."""

_BOX = 0.6
"""Half sides of the box where the quadratic holds, in distances within which most of the nearest
trials lie; up to four times as much if predictions are poor."""

_WITHIN = 0.8
"""Share of the nearest trials that lie within these distances, our choice."""

_LEAST_CURVATURE = 1e-8
"""Smallest size of a curvature that gives a direction its unit, in sizes of the largest one: units
differ by a factor of 10,000 at most, our choice."""

_LEAST_SPREAD = 1e-16
"""Smallest mean square of the best trials' offsets in a direction, in those of the longest one."""


def draw_quadratic(
    rows: FloatArray,
    targets: FloatArray,
    centre: FloatArray,
    is_categorical: BoolArray,
    rng: np.random.Generator,
    nearly_exact: bool = False,
) -> DrawnQuadratic | None:
    """Fit a quadratic to the trials nearest to the centre and draw from its posterior.

    Parameters
    ----------
    rows : float64 array of shape (n, d)
        Trials; NaN at inactive parameters.
    targets : float64 array of shape (n, s)
        Their values on one scale or on several ones, which order them alike; finite, larger is
        better. The quadratic has the scale on which it predicts best.
    centre : float64 array of shape (d,)
        The incumbent: one of the rows.
    is_categorical : bool array of shape (d,)
        Which columns hold categories.
    rng : numpy.random.Generator
        Source of the draw.
    nearly_exact : bool, default=False
        Whether predictions of left-out trials must be nearly perfect.

    Returns
    -------
    DrawnQuadratic or None
        None if there are too few trials, or predictions of left-out ones are poor.
    """
    if len(targets) < FEWEST_TRIALS:
        return None
    near = _nearest(rows, targets, centre, is_categorical)
    offsets = near.rows[:, near.numeric] - centre[near.numeric]
    offsets[np.isnan(offsets)] = 0.0
    modelled = {j: found for j, found in near.choices.items() if 1 < len(found) <= _MOST_CHOICES}
    levels = [(near.rows[:, [j]] == found).astype(np.float64) for j, found in modelled.items()]
    products = _products(len(near.numeric), near.is_full)
    fit = _fit(offsets / near.scales, products, levels, near.targets)
    if fit is None:
        return None
    if nearly_exact and fit.ridge.correlation < _PROMISING:
        return None
    least = _NEARLY_EXACT if nearly_exact else LEAST_CORRELATION
    if near.is_full and near.varies and not near.choices and not np.isnan(rows).any():
        turned = _best_turned(rows - centre, targets, fit, near.scales, len(near.rows), least)
        drawn = None if turned is None else _draw_turned(turned, centre, near.numeric, rng)
        if drawn is not None:
            return drawn
    if fit.ridge.correlation < least:
        return None
    return _draw_along_axes(fit, near, centre, modelled, rng)


class _Neighbourhood(NamedTuple):
    """The m trials nearest to the incumbent, that a quadratic is fitted to.

    Attributes
    ----------
    rows : float64 array of shape (m, d)
        The trials.
    targets : float64 array of shape (m, s)
        Their values on several scales.
    gaps : float64 array of shape (m, d)
        Distances from the incumbent by column.
    numeric : int64 array of shape (k,)
        Active numeric columns in which they differ.
    scales : float64 array of shape (k,)
        Root mean square distances in these.
    choices : dict of int to float64 array
        What they have in active categorical columns.
    is_full : bool
        Whether the quadratic has products of different parameters.
    varies : bool
        Whether there are several active numeric columns, and they differ in all of these.
    """

    rows: FloatArray
    targets: FloatArray
    gaps: FloatArray
    numeric: IntArray
    scales: FloatArray
    choices: dict[int, FloatArray]
    is_full: bool
    varies: bool


def _nearest(
    rows: FloatArray, targets: FloatArray, centre: FloatArray, is_categorical: BoolArray
) -> _Neighbourhood:
    """Return as many of the trials as coefficients need; see :func:`draw_quadratic`."""
    active = ~np.isnan(centre)
    numeric = np.flatnonzero(active & ~is_categorical)
    gaps = row_gaps(rows, centre, is_categorical)
    order = np.argsort((gaps**2).sum(axis=1), kind="stable")
    is_full = len(numeric) <= _MOST_FULL
    n_coefficients = 1 + 2 * len(numeric) + is_full * len(numeric) * (len(numeric) - 1) // 2
    n_coefficients += int((active & is_categorical).sum())
    near = order[: max(_TRIALS_PER_COEFFICIENT * n_coefficients, FEWEST_TRIALS)]
    near_rows, gaps = rows[near], gaps[near]
    scales = np.sqrt((gaps[:, numeric] ** 2).mean(axis=0))
    choices = {
        int(j): np.unique(near_rows[:, j][~np.isnan(near_rows[:, j])])
        for j in np.flatnonzero(active & is_categorical)
    }
    differ = scales > 0.0
    return _Neighbourhood(
        near_rows,
        targets[near],
        gaps,
        numeric[differ],
        scales[differ],
        choices,
        is_full,
        len(numeric) > 1 and bool(differ.all()),
    )


def _draw_turned(
    turned: _Turned, centre: FloatArray, numeric: IntArray, rng: np.random.Generator
) -> DrawnQuadratic | None:
    """Draw a quadratic in directions of its own; None if it climbs out of the unit cube."""
    turn = turned.turn
    axes = np.asarray(np.linalg.inv(turn), dtype=np.float64)
    half = _half_sides(np.abs(turned.units), turned.fit.ridge.correlation)
    slopes, curvatures, _ = turned.fit.draw(rng)
    drawn = DrawnQuadratic(centre, numeric, turn, axes, slopes, curvatures, {}, -half, half)
    end = drawn.climb(centre[None])
    return drawn if end.min() >= 0.0 and end.max() <= 1.0 else None


def _draw_along_axes(
    fit: _Fit,
    near: _Neighbourhood,
    centre: FloatArray,
    modelled: dict[int, FloatArray],
    rng: np.random.Generator,
) -> DrawnQuadratic:
    """Draw a quadratic along the axes, with levels of the choices that the fit has."""
    numeric, scales = near.numeric, near.scales
    slopes, curvatures, rest = fit.draw(rng)
    drawn_levels = {j: {float(centre[j]): 0.0} for j in near.choices}
    for j, found in modelled.items():
        some, rest = rest[: len(found)], rest[len(found) :]
        drawn_levels[j] = dict(zip(found.tolist(), some.tolist(), strict=True))
    half = _half_sides(near.gaps[:, numeric], fit.ridge.correlation)
    # Ends of the box lie in the unit cube.
    low = np.maximum(-half, np.minimum(-centre[numeric], 0.0)) / scales
    high = np.minimum(half, np.maximum(1.0 - centre[numeric], 0.0)) / scales
    turn, axes = np.diag(1.0 / scales), np.diag(scales)
    return DrawnQuadratic(centre, numeric, turn, axes, slopes, curvatures, drawn_levels, low, high)


@lru_cache(maxsize=8)
def _products(k: int, is_full: bool) -> tuple[IntArray, IntArray]:
    """Return which of k units the products are of: all pairs, or each with itself."""
    if is_full:
        return np.triu_indices(k)
    return np.arange(k), np.arange(k)


class _Turned(NamedTuple):
    """A quadratic in directions of its own.

    Attributes
    ----------
    turn : float64 array of shape (k, k)
        The product with offsets from the incumbent gives the units.
    units : float64 array of shape (n, k)
        Those of the trials that the quadratic is fitted to.
    fit : _Fit
        The fit in these units.
    """

    turn: FloatArray
    units: FloatArray
    fit: _Fit


def _best_turned(
    offsets: FloatArray,
    targets: FloatArray,
    fit: _Fit,
    scales: FloatArray,
    n_near: int,
    least: float,
) -> _Turned | None:
    """Fit again in two sets of directions, and return the fit that predicts best.

    The first set has the directions and units of the curvatures of a fit. The second one has those
    of the best trials: the principal axes of their offsets. A long valley shows in these even where
    no fit along the axes predicts anything.

    Parameters
    ----------
    offsets : float64 array of shape (n, k)
        All trials, less the incumbent.
    targets : float64 array of shape (n, s)
        Their values on several scales.
    fit : _Fit
        The fit along the axes.
    scales : float64 array of shape (k,)
        Its units.
    n_near : int
        Number of trials to fit to.
    least : float
        Smallest rank correlation of a fit that is used.

    Returns
    -------
    _Turned or None
        None if the fit along the axes predicts better, or none predicts well.
    """
    curvatures, vectors = np.linalg.eigh(fit.curvatures(fit.ridge.mean))
    good = offsets[np.argsort(-targets[:, 0], kind="stable")[:n_near]]
    squares, principal = np.linalg.eigh(good.T @ good)
    squares = np.maximum(squares, _LEAST_SPREAD * squares[-1])
    best, least = None, max(fit.ridge.correlation, least)
    for directions, sizes in (
        (vectors / scales[:, None], np.abs(curvatures)),
        (principal, squares[-1] / np.maximum(squares, TINY)),
    ):
        found = _turned(offsets, targets, directions, sizes, fit.products, n_near)
        if found is not None and found.fit.ridge.correlation >= least:
            best, least = found, found.fit.ridge.correlation
    return best


def _turned(
    offsets: FloatArray,
    targets: FloatArray,
    directions: FloatArray,
    sizes: FloatArray,
    products: tuple[IntArray, IntArray],
    n_near: int,
) -> _Turned | None:
    """Fit to the trials that are nearest in units of some directions.

    Parameters
    ----------
    offsets, targets, n_near
        See :func:`_best_turned`.
    directions : float64 array of shape (k, k)
        Columns are directions, which the product with `offsets` gives the coordinates in.
    sizes : float64 array of shape (k,)
        Squares of the factors that turn these coordinates into comparable units.
    products : pair of int arrays
        See :class:`_Fit`.

    Returns
    -------
    _Turned or None
        None if the nearest trials do not differ in all directions, or in their targets.
    """
    factors = np.sqrt(np.maximum(sizes, _LEAST_CURVATURE * sizes.max()))
    turn = directions * factors
    units = offsets @ turn
    near = np.argsort((units**2).sum(axis=1), kind="stable")[:n_near]
    units, targets = units[near], targets[near]
    spreads = np.sqrt((units**2).mean(axis=0))
    # Without any curvature all factors are 0.
    if not spreads.min() > 0.0:
        return None
    units = units / spreads
    fit = _fit(units, products, [], targets)
    return None if fit is None else _Turned(turn / spreads, units, fit)


def _half_sides(gaps: FloatArray, correlation: float) -> FloatArray:
    """Return half the sides of the box, shape (k,), from distances of trials, (n, k)."""
    poor = 1.0 + 3.0 * (1.0 - correlation)
    # The quantile of each column, in a tenth of the time of `numpy.quantile`.
    ordered, place = np.sort(gaps, axis=0), _WITHIN * (len(gaps) - 1)
    below = int(place)
    lower, upper = ordered[below], ordered[min(below + 1, len(gaps) - 1)]
    return np.asarray(_BOX * poor * (lower + (place - below) * (upper - lower)))


class _Fit(NamedTuple):
    """A ridge regression on units, products of two of them and levels of choices.

    Attributes
    ----------
    ridge : RidgeFit
        The coefficients that are not 0.
    used : int array of shape (p,)
        Which ones these are.
    n_coefficients : int
        Number of all coefficients: units, products, levels.
    n_units : int
        Number of units.
    products : pair of int arrays
        Which units each product is of.
    """

    ridge: RidgeFit
    used: IntArray
    n_coefficients: int
    n_units: int
    products: tuple[IntArray, IntArray]

    def curvatures(self, coefficients: FloatArray) -> FloatArray:
        """Return the symmetric matrix of the products' coefficients, from those that are used."""
        some = np.zeros(self.n_coefficients)
        some[self.used] = coefficients
        matrix = np.zeros((self.n_units, self.n_units))
        matrix[self.products] = some[self.n_units : self.n_units + len(self.products[0])]
        return 0.5 * (matrix + matrix.T)

    def draw(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Draw slopes, the matrix of curvatures and the coefficients of levels."""
        mean, factor = self.ridge.mean, self.ridge.factor
        drawn = mean + factor @ rng.standard_normal(len(mean))
        some = np.zeros(self.n_coefficients)
        some[self.used] = drawn
        n_before = self.n_units + len(self.products[0])
        return some[: self.n_units], self.curvatures(drawn), some[n_before:]


def _fit(
    units: FloatArray,
    products: tuple[IntArray, IntArray],
    levels: list[FloatArray],
    targets: FloatArray,
) -> _Fit | None:
    """Fit with and without products, and return the fit that predicts left-out ranks best.

    Each is fitted to the targets on each scale, shape (n, s), and to their normal scores. None if
    all targets are equal.
    """
    features = np.concatenate(
        [units, units[:, products[0]] * units[:, products[1]], *levels], axis=1
    )
    k, n_products = units.shape[1], len(products[0])
    is_product = np.zeros(features.shape[1], dtype=bool)
    is_product[k : k + n_products] = products[0] != products[1]
    n, columns = len(targets), np.ascontiguousarray(targets.T)
    ranks = ranks_of(columns[0])
    weights = np.exp(-_DECAY * (n - 1 - ranks) / n)
    scales = np.concatenate([columns, _normal_scores(ranks, n)[None]])
    sizes = scales.std(axis=1)
    # Beside an outlier all other values may be so small that their squares are 0.
    varied = sizes > 0.0
    if not varied.any():
        return None
    scales = scales[varied] / sizes[varied, None]
    options = [np.flatnonzero(~is_product)]
    if is_product.any() and n >= _TRIALS_FOR_PRODUCTS * len(is_product):
        options.insert(0, np.arange(len(is_product)))
    best = None
    for used in options:
        ridge = RidgeRegression(features[:, used], weights).fit(scales, ranks)
        if best is None or ridge.correlation > best.ridge.correlation:
            best = _Fit(ridge, used, len(is_product), k, products)
    return best


def _normal_scores(ranks: FloatArray, n: int) -> FloatArray:
    """Return the normal quantiles of ranks, which are multiples of 1/2 below n."""
    return _quantiles(n)[(2.0 * ranks).astype(np.int64)]


@lru_cache(maxsize=8)
def _quantiles(n: int) -> FloatArray:
    """Return the normal quantiles of the ranks 0, 1/2, 1, ..., n - 1 of n values."""
    # That of the standard library: a search need not load scipy for it.
    quantile = NormalDist().inv_cdf
    return np.array([quantile((0.5 * k + 0.5) / n) for k in range(2 * n - 1)])
