"""A step on a plateau: a point among the good trials, far from each of them.

Some objectives take few values: an accuracy is a number of samples. Around the incumbent there is a
plateau then, on which models predict no gain. Higher plateaus are small and lie anywhere among the
good trials. So a search spreads points there: it draws some from a kernel density estimate of the
good trials, as the tree-structured Parzen estimator does (Bergstra, Bardenet, Bengio and Kegl
(2011), Algorithms for hyper-parameter optimization), and takes the one that is farthest from all of
them.
"""

from __future__ import annotations

import numpy as np

from mondrian_bo.search_space import SearchSpace
from mondrian_bo.search_space.space import row_gaps
from mondrian_bo.shared.array_types import BoolArray, FloatArray

_GOOD_SHARE = 0.2
"""Share of all trials that are good, our choice."""

_FEWEST_GOOD = 5
"""Smallest number of good trials, our choice."""

_MOST_GOOD = 100
"""Largest number of good trials, our choice: the cost of a step is proportional to it."""

_N_DRAWN = 10
"""Number of points of which the farthest is taken, our choice: a single one gains less."""

_LEAST_DEVIATION = 0.02
"""Smallest standard deviation of the good trials in a coordinate, in sides of the unit cube."""

_OTHER_CHOICE = 0.2
"""Probability that a point has the choice of another good trial, for each categorical parameter."""


_FEW_CATEGORICAL = 3
"""Number of categorical parameters beyond which points get any choices, instead of those of other
good trials: our choice. What all good trials have in common may keep them on their plateau."""


def plateau_steps(
    space: SearchSpace,
    rows: FloatArray,
    values: FloatArray,
    pending: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw points among the good trials; O(n).

    Each starts from a good trial. A number moves by a normal step: its deviation is that of the
    good trials times k^(-1 / (d + 4)) for k of them (Scott's rule), and at least one cell of a
    grid. Choices are exchanged among good trials. Beyond three categorical parameters, about one of
    them gets any of its choices instead.

    Parameters
    ----------
    space : SearchSpace
        The space.
    rows : float64 array of shape (n, d)
        The trials, n >= 1; NaN at inactive parameters.
    values : float64 array of shape (n,)
        Their values, larger is better.
    pending : float64 array of shape (k, d)
        Trials that are running.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    float64 array of shape (10, d)
        Snapped rows, the one farthest from all good and all running trials first. The distance is
        the largest difference of a number; another choice, or a parameter that one row alone has,
        counts as 1.
    """
    good = rows[_good(values, rng)]
    n_good, d = good.shape
    parents = good[rng.integers(n_good, size=_N_DRAWN)]
    # A change of a choice can activate parameters that the parent lacks.
    uniform = rng.random((_N_DRAWN, d))
    missing = np.where(space.is_categorical, np.floor(uniform * space.n_choices), uniform)
    parents = np.where(np.isnan(parents), missing, parents)
    if space.is_categorical.sum() > _FEW_CATEGORICAL:
        others, moved = _new_choices(space, rng)
    else:
        others = good[rng.integers(n_good, size=(_N_DRAWN, d)), np.arange(d)]
        moved = space.is_categorical & ~np.isnan(others)
        moved = moved & (rng.random((_N_DRAWN, d)) < _OTHER_CHOICE)
    steps = _deviations(space, good) * rng.standard_normal((_N_DRAWN, d))
    drawn = np.where(moved, others, parents + np.where(space.is_categorical, 0.0, steps))
    drawn = space.snap(drawn)
    known = np.concatenate([good, pending])
    return np.asarray(drawn[np.argsort(-_distances(space, drawn, known), kind="stable")])


def _new_choices(space: SearchSpace, rng: np.random.Generator) -> tuple[FloatArray, BoolArray]:
    """Draw choices for ten points, and which of them they get: one each on average, at least one.

    Both arrays have shape (10, d).
    """
    shape = _N_DRAWN, space.n_dimensions
    categorical = np.flatnonzero(space.is_categorical)
    is_new = space.is_categorical & (rng.random(shape) < 1.0 / len(categorical))
    is_new[np.arange(_N_DRAWN), rng.choice(categorical, _N_DRAWN)] = True
    return np.floor(rng.random(shape) * space.n_choices), is_new


def _good(values: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the indices of the good trials; of equal values, random ones."""
    n_good = min(max(int(_GOOD_SHARE * len(values)), _FEWEST_GOOD), _MOST_GOOD, len(values))
    worst = np.partition(values, -n_good)[-n_good]
    better, equal = np.flatnonzero(values > worst), np.flatnonzero(values == worst)
    return np.concatenate([better, rng.permutation(equal)[: n_good - len(better)]])


def _deviations(space: SearchSpace, good: FloatArray) -> FloatArray:
    """Return the standard deviations of steps, shape (d,)."""
    n_good, d = good.shape
    active = ~np.isnan(good)
    n_active = np.maximum(active.sum(axis=0), 1)
    numbers = np.where(active, good, 0.0)
    means = numbers.sum(axis=0) / n_active
    squares = np.where(active, (numbers - means) ** 2, 0.0).sum(axis=0) / n_active
    spread = np.maximum(np.sqrt(squares), _LEAST_DEVIATION) * n_good ** (-1.0 / (d + 4))
    cells = np.where(space.grid_sizes > 0, 1.0 / np.maximum(space.grid_sizes, 1), 0.0)
    return np.asarray(np.maximum(spread, cells))


def _distances(space: SearchSpace, rows: FloatArray, known: FloatArray) -> FloatArray:
    """Return the distance of each row from the nearest known one, shape (m,)."""
    gaps = row_gaps(rows[:, None], known, space.is_categorical)
    return np.asarray(gaps.max(axis=2).min(axis=1))
